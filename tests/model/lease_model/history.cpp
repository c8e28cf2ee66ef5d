// SPDX-License-Identifier: LGPL-2.1-or-later
#include "history.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace lease_model {

namespace {

constexpr int places = 10;

/// A file in one possible order, and which operations have taken effect in it, in one number: 3 bits the size, 3 the
/// durable size, 3 for each block, a bit for each place whether its operation has taken effect, 4 bits of result for
/// each thread.
class Order {
 public:
  explicit Order(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits() const { return bits_; }

  int size() const { return get(0, 3); }
  void set_size(int size) { set(0, 3, size); }
  int durable() const { return get(3, 3); }
  void set_durable(int size) { set(3, 3, size); }
  int block(int i) const { return get(6 + 3 * i, 3); }
  void set_block(int i, int value) { set(6 + 3 * i, 3, value); }
  bool took_effect(int place) const { return get(18 + place, 1) != 0; }
  void set_took_effect(int place, bool yes) { set(18 + place, 1, yes ? 1 : 0); }
  int result(int place) const { return get(28 + 4 * (place / 2), 4); }
  void set_result(int place, int result) { set(28 + 4 * (place / 2), 4, result); }

 private:
  int get(int at, int width) const { return static_cast<int>(bits_ >> at & ((1ULL << width) - 1)); }
  void set(int at, int width, int value) {
    const auto mask = ((1ULL << width) - 1) << at;
    bits_ = (bits_ & ~mask) | (static_cast<std::uint64_t>(value) << at & mask);
  }
  std::uint64_t bits_;
};

struct What {
  Effect kind;
  int begin, end, value;
  explicit What(u16 packed)
      : kind(static_cast<Effect>(packed & 7)), begin(packed >> 3 & 7), end(packed >> 6 & 7), value(packed >> 9 & 15) {}
  bool answers() const { return kind == Effect::read || kind == Effect::stat; }
};

struct History {
  std::array<u16, places> pending{};
  std::vector<std::uint64_t> orders;
  auto operator<=>(const History&) const = default;
};

std::vector<History> histories;
std::map<History, int> numbers;
std::unordered_map<std::uint64_t, int> transitions;
std::unordered_map<int, std::set<std::uint32_t>> contents;

int number_of(History history) {
  auto& orders = history.orders;
  std::sort(orders.begin(), orders.end());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  if (orders.empty()) return -1;
  const auto [found, is_new] = numbers.try_emplace(history, static_cast<int>(histories.size()));
  if (is_new) histories.push_back(std::move(history));
  return found->second;
}

void take_effect(Order& order, int place, const What& what) {
  const int size = order.size();
  switch (what.kind) {
    case Effect::write:
      for (int i = what.begin; i < what.end; ++i) order.set_block(i, what.value);
      order.set_size(std::max(size, what.end));
      break;
    case Effect::truncate:
      for (int i = what.begin; i < blocks; ++i) order.set_block(i, 0);
      order.set_size(what.begin);
      order.set_durable(what.begin);
      break;
    case Effect::punch:
      for (int i = what.begin; i < what.end && i < size; ++i) order.set_block(i, 0);
      break;
    case Effect::append:
      if (size < blocks) order.set_block(size, what.value);
      order.set_size(std::min(size + 1, blocks));
      break;
    case Effect::read:
      order.set_result(place, what.begin < size ? order.block(what.begin) : end_of_file);
      break;
    case Effect::stat:
      order.set_result(place, size);
      break;
    case Effect::none:
      break;
  }
  order.set_took_effect(place, true);
}

/// Adds all orders in which any of the operations under way have taken effect, in any order.
void complete(History& history) {
  std::unordered_set<std::uint64_t> found(history.orders.begin(), history.orders.end());
  auto waiting = history.orders;
  while (!waiting.empty()) {
    const Order order(waiting.back());
    waiting.pop_back();
    for (int place = 0; place < places; ++place) {
      if (history.pending[place] == 0 || order.took_effect(place)) continue;
      Order next = order;
      take_effect(next, place, What(history.pending[place]));
      if (found.insert(next.bits()).second) waiting.push_back(next.bits());
    }
  }
  history.orders.assign(found.begin(), found.end());
}

enum class Event { begun, answered, failed, fenced_off, growth_lost, made_durable };

void answer(History& history, int place, int given) {
  complete(history);
  const What what(history.pending[place]);
  std::vector<std::uint64_t> left;
  for (const auto bits : history.orders) {
    Order order(bits);
    if (!order.took_effect(place) || (what.answers() && order.result(place) != given)) continue;
    order.set_took_effect(place, false);
    if (what.answers()) order.set_result(place, 0);
    left.push_back(order.bits());
  }
  history.orders = std::move(left);
  history.pending[place] = 0;
}

/// All of it, nothing, or blocks inside the size: any of them, or of a dead client all.
void fail(History& history, int place, bool of_dead_client) {
  complete(history);
  const What what(history.pending[place]);
  std::vector<std::uint64_t> left;
  for (const auto bits : history.orders) {
    Order order(bits);
    if (!order.took_effect(place) && what.kind == Effect::write) {
      for (int some = of_dead_client ? 15 : 1; some < 16; ++some) {
        Order partly = order;
        for (int i = what.begin; i < what.end && i < order.size(); ++i) {
          if ((some >> i & 1) != 0) partly.set_block(i, what.value);
        }
        left.push_back(partly.bits());
      }
    }
    order.set_took_effect(place, false);
    left.push_back(order.bits());
  }
  history.orders = std::move(left);
  history.pending[place] = 0;
}

void fence_off(History& history, int which) {
  complete(history);
  for (auto& bits : history.orders) {
    Order order(bits);
    for (int place = 0; place < places; ++place) {
      if ((which >> place & 1) == 0) continue;
      order.set_took_effect(place, false);
      order.set_result(place, 0);
    }
    bits = order.bits();
  }
  for (int place = 0; place < places; ++place) {
    if ((which >> place & 1) != 0) history.pending[place] = 0;
  }
}

void lose_growth(History& history) {
  complete(history);
  std::vector<std::uint64_t> left;
  for (const auto bits : history.orders) {
    const Order order(bits);
    for (int size = order.size(); size >= order.durable(); --size) {
      Order shorter = order;
      for (int i = size; i < blocks; ++i) shorter.set_block(i, 0);
      shorter.set_size(size);
      left.push_back(shorter.bits());
    }
  }
  history.orders = std::move(left);
}

void make_durable(History& history, int size) {
  for (auto& bits : history.orders) {
    Order order(bits);
    order.set_durable(std::max(order.durable(), std::min(order.size(), size)));
    bits = order.bits();
  }
}

int after(int before, Event event, int place, int argument) {
  if (before < 0) return before;
  const auto key = static_cast<std::uint64_t>(before) << 32 | static_cast<std::uint64_t>(event) << 28 |
                   static_cast<std::uint64_t>(place) << 16 | static_cast<std::uint64_t>(argument & 0xffff);
  if (const auto known = transitions.find(key); known != transitions.end()) return known->second;
  History history = histories[before];
  switch (event) {
    case Event::begun:
      history.pending[place] = static_cast<u16>(argument);
      break;
    case Event::answered:
      answer(history, place, argument);
      break;
    case Event::failed:
      fail(history, place, argument != 0);
      break;
    case Event::fenced_off:
      fence_off(history, argument);
      break;
    case Event::growth_lost:
      lose_growth(history);
      break;
    case Event::made_durable:
      make_durable(history, argument);
      break;
  }
  return transitions[key] = number_of(std::move(history));
}

}  // namespace

u16 effect(Effect kind, int begin, int end, int value) {
  return static_cast<u16>(static_cast<int>(kind) | begin << 3 | end << 6 | value << 9);
}

std::uint64_t content_of(int size, const int (&block)[blocks]) {
  Order order(0);
  order.set_size(size);
  order.set_durable(size);
  for (int i = 0; i < blocks; ++i) order.set_block(i, block[i]);
  return order.bits();
}

int first_history(std::uint64_t content) { return number_of({{}, {content}}); }
int begun(int history, int place, u16 what) { return after(history, Event::begun, place, what); }
int answered_with(int history, int place, int answer) { return after(history, Event::answered, place, answer); }
int failed(int history, int place, bool of_dead_client) {
  return after(history, Event::failed, place, of_dead_client ? 1 : 0);
}
int fenced_off(int history, int which) { return after(history, Event::fenced_off, 0, which); }
int growth_lost(int history) { return after(history, Event::growth_lost, 0, 0); }
int made_durable(int history, int size) { return after(history, Event::made_durable, 0, size); }

int under_way(int history) {
  int which = 0;
  if (history < 0) return which;
  for (int place = 0; place < places; ++place) {
    if (histories[history].pending[place] != 0) which |= 1 << place;
  }
  return which;
}

bool is_possible(int history, std::uint32_t size, std::uint32_t digits) {
  auto [found, is_new] = contents.try_emplace(history);
  if (is_new) {
    History all = histories[history];
    complete(all);
    for (const auto bits : all.orders) {
      found->second.insert(static_cast<std::uint32_t>((bits & 7) | (bits >> 6 & 0xfff) << 3));
    }
  }
  return found->second.contains(size | digits << 3);
}

void forget_if_many() {
  constexpr std::size_t many = 1'000'000;
  if (histories.size() < many && transitions.size() < many) return;
  histories.clear();
  numbers.clear();
  transitions.clear();
  contents.clear();
}

}  // namespace lease_model
