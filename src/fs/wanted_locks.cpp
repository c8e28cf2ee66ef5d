// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/wanted_locks.h"

#include <vector>

namespace lccfs {

using format::Question;

namespace {
constexpr std::chrono::seconds tell_time_out{2};
/// Clients and files of which it is known that they wait: beyond, they look each second.
constexpr std::size_t most_wanted = 4096;
}  // namespace

void WantedLocks::add(Ino ino, InstanceId asker) {
  const Lock lock(mutex_);
  const bool is_new = !interests_.contains({ino, asker});
  if (is_new && interests_.size() >= most_wanted)
    std::erase_if(interests_, [](const auto& one) { return !one.second.is_told; });
  ++interests_[{ino, asker}].asked;
}

bool WantedLocks::has(Ino ino) {
  const Lock lock(mutex_);
  const auto first = interests_.lower_bound({ino, {}});
  return first != interests_.end() && first->first.first == ino;
}

bool WantedLocks::gives_way(Ino ino) {
  const Lock lock(mutex_);
  const auto found = gives_way_until_.find(ino);
  if (found == gives_way_until_.end()) return false;
  if (instance_.clock().elapsed() < found->second) return true;
  gives_way_until_.erase(found);
  return false;
}

bool WantedLocks::dropped(Ino ino) {
  std::vector<InstanceId> to_tell;
  bool is_wanted = false;
  {
    const Lock lock(mutex_);
    for (auto one = interests_.lower_bound({ino, {}}); one != interests_.end() && one->first.first == ino; ++one) {
      is_wanted = true;
      one->second.tell_again = std::exchange(one->second.is_told, true);
      if (!one->second.tell_again) to_tell.push_back(one->first.second);
    }
    if (is_wanted) {
      const auto now = instance_.clock().elapsed();
      std::erase_if(gives_way_until_, [now](const auto& one) { return one.second <= now; });
      gives_way_until_[ino] = now + head_start;
    }
  }
  for (const auto client : to_tell) tasks_.post([this, client, ino] { tell(ino, client); });
  return is_wanted;
}

/// One at a time. A client that waits no more is told no more.
void WantedLocks::tell(Ino ino, InstanceId client) {
  Question question{Question::Kind::locks_changed, ino};
  question.asker = instance_.id();
  for (;;) {
    std::uint64_t asked = 0;
    {
      const Lock lock(mutex_);
      auto& interest = interests_.at({ino, client});
      interest.tell_again = false;
      asked = interest.asked;
    }
    const auto answer = instance_.ask(client, question, tell_time_out);
    const bool waits = answer && *answer == Instance::AskResult::done;
    const Lock lock(mutex_);
    auto& interest = interests_.at({ino, client});
    if (!waits && interest.asked == asked) {
      interests_.erase({ino, client});
      gives_way_until_.erase(ino);
      return;
    }
    interest.is_told = interest.tell_again && !ending_;
    if (!interest.is_told) return;
  }
}

void WantedLocks::end() {
  const Lock lock(mutex_);
  ending_ = true;
}

}  // namespace lccfs
