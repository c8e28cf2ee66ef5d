// SPDX-License-Identifier: LGPL-2.1-or-later
// A place is free, being taken, or says since when it is in use. The thread that takes it writes the subject first,
// then the time; a reader reads the time, the subject, and the time again: the same time means that the subject is of
// that use. All loads acquire and all stores release, which is what makes that order hold.
#include "metrics/in_flight_table.h"

#include <algorithm>
#include <cstring>

#include "metrics/sharded.h"

namespace lccfs::metrics {
namespace {

constexpr std::uint32_t own_places = 16;  // of a shard: looked at first, so that few cache lines are in use
constexpr std::uint32_t most_tries = 64;

template <class Words>
std::string text_of(const Words& words) {
  char text[InFlightTable::longest_subject];
  std::size_t at = 0;
  for (const auto& word : words) {
    const std::uint64_t value = word.load(std::memory_order_acquire);
    std::memcpy(text + at, &value, sizeof value);
    at += sizeof value;
  }
  return {text, strnlen(text, sizeof text)};
}

}  // namespace

bool InFlightTable::take(Place& place) {
  std::int64_t expected = free;
  return place.began_ns.load(std::memory_order_relaxed) == free &&
         place.began_ns.compare_exchange_strong(expected, being_taken, std::memory_order_acq_rel);
}

std::uint32_t InFlightTable::begin(std::chrono::nanoseconds now, unsigned kind, std::string_view subject) {
  const auto own = static_cast<std::uint32_t>(own_shard()) * (places / shards);
  std::uint32_t found = no_place;
  for (std::uint32_t i = 0; found == no_place && i < own_places; ++i) {
    if (take(places_[own + i])) found = own + i;
  }
  for (std::uint32_t i = 0; found == no_place && i < most_tries; ++i) {
    const std::uint32_t next = next_.fetch_add(1, std::memory_order_relaxed) % places;
    if (take(places_[next])) found = next;
  }
  if (found == no_place) return no_place;
  Place& place = places_[found];
  place.kind.store(kind, std::memory_order_release);
  // What an earlier use has left behind the NUL is never looked at.
  for (std::size_t i = 0, at = 0; i < words && at <= subject.size(); ++i, at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    std::memcpy(&value, subject.data() + at, std::min(subject.size() - at, sizeof value));
    place.subject[i].store(value, std::memory_order_release);
  }
  place.began_ns.store(std::max<std::int64_t>(1, now.count()), std::memory_order_release);
  return found;
}

void InFlightTable::end(std::uint32_t place) {
  if (place != no_place) places_[place].began_ns.store(free, std::memory_order_release);
}

std::string InFlightTable::subject(std::uint32_t place) const {
  return place == no_place ? "" : text_of(places_[place].subject);
}

void InFlightTable::look(std::chrono::nanoseconds before, const std::function<void(const Seen&)>& tell) const {
  for (std::uint32_t i = 0; i < places; ++i) {
    const Place& place = places_[i];
    const std::int64_t began = place.began_ns.load(std::memory_order_acquire);
    if (began <= 0 || began > before.count()) continue;
    const Seen seen{i, place.kind.load(std::memory_order_acquire), std::chrono::nanoseconds(began),
                    text_of(place.subject)};
    if (place.began_ns.load(std::memory_order_acquire) == began) tell(seen);
  }
}

}  // namespace lccfs::metrics
