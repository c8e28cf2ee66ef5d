// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/receiver.h"

#include <poll.h>

#include <utility>

#include "base/blocking.h"
#include "base/log.h"

namespace lccfs::fuse {

namespace {
/// From then on work goes to the pool, whose threads are more.
constexpr std::size_t most_blocked = 64;
constexpr std::chrono::seconds blocks_unannounced_after{1};
constexpr std::uint64_t no_turn = UINT64_MAX;
}  // namespace

/// Not on the calling thread: that one has to see the end even if a request blocks for ever.
void Receiver::run(std::function<bool()> receive) {
  receive_ = std::move(receive);
  turn_ = 1;
  threads_.post([this] { receive_as(1); });
  ended_.wait(false);
}

void Receiver::receive_as(std::uint64_t turn) {
  threads_.post([this, turn] { stand_by_for(turn + 1); });
  bool goes_on = true;
  while (goes_on && turn_ == turn) goes_on = receive_();
  auto expected = turn;
  if (!turn_.compare_exchange_strong(expected, no_turn)) return static_cast<void>(--blocked_);
  turn_.notify_all();
  ended_ = true;
  ended_.notify_all();
}

void Receiver::stand_by_for(std::uint64_t turn) {
  stands_by_ = turn;
  turn_.wait(turn - 1);
  if (turn_ == turn) receive_as(turn);
}

bool Receiver::may_serve_here(int fd) const {
  pollfd requests{.fd = fd, .events = POLLIN, .revents = 0};
  return blocked_ < most_blocked && stands_by_ == turn_ + 1 && poll(&requests, 1, 0) == 0;
}

void Receiver::serve(std::move_only_function<void()> work) {
  const auto turn = turn_.load();
  since_ = clock_.elapsed();
  served_ = turn;
  {
    const BeforeBlocking before([this, turn] { hand_over(turn); });
    work();
    work = nullptr;
  }
  auto expected = turn;
  // If `look` has taken the turn, it is about to be another's.
  if (!served_.compare_exchange_strong(expected, 0)) turn_.wait(turn);
}

void Receiver::hand_over(std::uint64_t turn) {
  ++blocked_;
  auto expected = turn;
  if (!turn_.compare_exchange_strong(expected, turn + 1)) --blocked_;
  turn_.notify_all();
}

void Receiver::look() {
  auto turn = served_.load();
  if (turn == 0 || turn != turn_ || clock_.elapsed() - since_.load() < blocks_unannounced_after) return;
  if (!served_.compare_exchange_strong(turn, 0)) return;
  hand_over(turn);
  log::warning("a request held up those behind it; another thread receives them now");
}

}  // namespace lccfs::fuse
