// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  the key of an opener | object  | step                                               | stop here leaves
//  that does not watch  |         |                                                    |
//  -                    | Super   | read its record; fence it if it is gone            | the key
//  1                    | Inode.X | if it is expired: [remove opener] its key          | done
#include "fs/announcements.h"

#include <algorithm>
#include <utility>

#include "format/object_names.h"
#include "txn/file_txn.h"

namespace lccfs {

using format::Question;

namespace {
/// Between two that tell one client of one file.
constexpr std::chrono::milliseconds told_every{10};
constexpr std::chrono::seconds answer_wait_for_telling{2};
/// A client that said nothing.
constexpr std::chrono::milliseconds first_silent_pause{500};
constexpr std::chrono::seconds longest_silent_pause{5};
constexpr std::chrono::milliseconds longest_sleep{100};  // the end may have come

/// When that client was heard of; 0: it is not told.
std::uint64_t when_heard(FileNode& node, InstanceId opener) {
  const Lock lock(node.mutex);
  const auto found = node.openers.find(opener);
  return found == node.openers.end() ? 0 : found->second;
}
}  // namespace

void Announcements::opened(FileNode& node, InstanceId opener) {
  const Lock lock(node.mutex);
  node.add_opener(opener);
}

void Announcements::begin(FileNode& node) {
  std::vector<InstanceId> to_tell;
  {
    const Lock lock(node.mutex);
    for (const auto& [opener, heard_at] : node.openers) to_tell.push_back(opener);
  }
  const Lock lock(mutex_);
  if (ending_) return;
  for (const auto opener : to_tell) {
    auto& client = clients_[opener];
    client.files[node.ino].is_due = true;
    if (!std::exchange(client.is_told, true)) tasks_.post([this, opener] { tell(opener); });
  }
}

/// Until there is nothing more to tell that client.
void Announcements::tell(InstanceId client) {
  while (const auto ino = next_for(client)) {
    std::uint64_t heard_at = 0;
    if (const auto node = files_.use_existing(*ino)) heard_at = when_heard(*node, client);
    heard(client, *ino, tell_now(client, *ino), heard_at);
  }
}

/// Waits until it is time. nullopt: nothing is left, or this ends and the client says nothing.
std::optional<Ino> Announcements::next_for(InstanceId id) {
  Lock lock(mutex_);
  for (;;) {
    auto& client = clients_.at(id);
    const auto now = instance_.clock().elapsed();
    std::erase_if(client.files, [now](const auto& one) { return !one.second.is_due && one.second.not_before <= now; });
    const auto is_later = [](const auto& one, const auto& other) {
      return std::pair(!one.second.is_due, one.second.not_before) <
             std::pair(!other.second.is_due, other.second.not_before);
    };
    const auto next = std::ranges::min_element(client.files, is_later);
    if (next == client.files.end() || !next->second.is_due || (ending_ && client.is_silent)) {
      if (client.files.empty() || ending_) {
        clients_.erase(id);
      } else {
        client.is_told = false;
      }
      return std::nullopt;
    }
    const auto due = std::max(next->second.not_before, client.not_before);
    if (due <= now || ending_) {
      next->second.is_due = false;  // what changes from now on is told anew
      next->second.not_before = now + told_every;
      return next->first;
    }
    lock.unlock();
    instance_.clock().sleep_for(std::min<std::chrono::nanoseconds>(due - now, longest_sleep));
    lock.lock();
  }
}

Announcements::Heard Announcements::tell_now(InstanceId client, Ino ino) {
  Question question{Question::Kind::file_changed, ino};
  question.asker = instance_.id();
  const auto answer = instance_.ask(client, question, answer_wait_for_telling);
  using Answer = Instance::AskResult;
  if (!answer || *answer == Answer::silent || *answer == Answer::unheard) return Heard::nothing;
  if (*answer == Answer::nobody) return Heard::nobody;
  return *answer == Answer::done ? Heard::it_is_open : Heard::it_is_not;
}

void Announcements::heard(InstanceId id, Ino ino, Heard answer, std::uint64_t heard_at) {
  if (answer == Heard::it_is_not) forget(id, ino, heard_at);
  if (answer == Heard::nobody && is_expired(id)) {
    forget(id, ino, heard_at);
    static_cast<void>(instance_.run_repeatable(txn::remove_opener(ino, id)));
  }
  const Lock lock(mutex_);
  auto& client = clients_.at(id);
  client.is_silent = answer == Heard::nothing;
  client.pause = client.is_silent
                     ? std::clamp<std::chrono::nanoseconds>(2 * client.pause, first_silent_pause, longest_silent_pause)
                     : std::chrono::nanoseconds(0);
  client.not_before = instance_.clock().elapsed() + client.pause;
  if (client.is_silent) client.files[ino].is_due = true;
}

/// Where nobody watches, it may be a client that has lost its watch: that one drops all by itself.
bool Announcements::is_expired(InstanceId client) {
  const auto seen = instance_.look_at(client);
  return seen && *seen == Instance::Seen::expired;
}

/// Unless it has opened the file since.
void Announcements::forget(InstanceId client, Ino ino, std::uint64_t heard_at) {
  const auto node = files_.use_existing(ino);
  if (!node) return;
  const Lock lock(node->mutex);
  const auto found = node->openers.find(client);
  if (found != node->openers.end() && found->second == heard_at) node->openers.erase(found);
  node->is_told_of = !node->openers.empty();
}

void Announcements::end() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  tasks_.wait();
}

}  // namespace lccfs
