// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/lease_holders.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <optional>
#include <utility>

namespace lccfs {

using format::Question;

namespace {
/// Of a question for attributes; of all that an answer about attributes waits for, asking again and looking included;
/// and how long a holder that did not answer is not asked again: `ls -l` of a thousand of its files waits once or
/// twice.
constexpr std::chrono::seconds brief_time_out{2};
constexpr std::chrono::seconds brief_wait{3};
/// All that a lookup or a page of a listing waits for holders.
constexpr std::chrono::seconds names_wait{1};
/// A holder that is at work says so after half a second: a caller that has less time does not ask, so that it never
/// takes too short a wait for silence.
constexpr std::chrono::milliseconds least_wait{600};
constexpr Ino all_of_them{};
constexpr std::chrono::seconds silence_remembered_for{5};

}  // namespace

Result<LeaseHolders::Holder> LeaseHolders::settle(InstanceId holder, const Question& question,
                                                  const std::stop_token& stop) {
  return settle_holder(instance_, holder, question, [&]() -> Result<bool> {
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino, {}, stop));
    return now.lease == holder;
  });
}

/// For an answer that may be what is stored: waits a little for a holder that is at work, and for one that says
/// nothing.
Result<> LeaseHolders::ask_briefly(InstanceId holder, const Question& question) {
  auto& clock = instance_.clock();
  const auto give_up_at = clock.elapsed() + brief_wait;
  BusyPause busy_pause;
  while (!was_silent_just_now(holder, question.ino)) {
    LCCFS_TRY(const auto heard, ask_for(give_up_at - clock.elapsed(), holder, question));
    if (heard == Heard::done || heard == Heard::expired) return {};
    const auto pause = busy_pause.next();
    if (heard == Heard::nothing || clock.elapsed() + pause + least_wait > give_up_at) {
      note_silence(holder, heard == Heard::nothing ? all_of_them : question.ino);
      return {};
    }
    clock.sleep_for(pause);
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino));
    if (now.lease != holder) return {};
  }
  return {};
}

void LeaseHolders::bring_up_to_date(std::map<Ino, Inode>& inodes, const ReadMany& read) {
  std::map<InstanceId, std::vector<Ino>> held;
  for (const auto& [ino, inode] : inodes) {
    if (inode.lease && *inode.lease != instance_.id()) held[*inode.lease].push_back(ino);
  }
  const auto give_up_at = instance_.clock().elapsed() + names_wait;
  for (const auto& [holder, inos] : held) {
    for (std::size_t first = 0; first < inos.size(); first += format::question_limit) {
      const auto end = std::min<std::size_t>(inos.size(), first + format::question_limit);
      bring_up_to_date(
          holder, {inos.begin() + static_cast<std::ptrdiff_t>(first), inos.begin() + static_cast<std::ptrdiff_t>(end)},
          give_up_at, inodes, read);
    }
  }
}

void LeaseHolders::bring_up_to_date(InstanceId holder, std::vector<Ino> wanted, std::chrono::nanoseconds give_up_at,
                                    std::map<Ino, Inode>& inodes, const ReadMany& read) {
  auto& clock = instance_.clock();
  BusyPause busy_pause;
  for (;;) {
    std::erase_if(wanted, [&](Ino ino) { return was_silent_just_now(holder, ino); });
    const auto left = give_up_at - clock.elapsed();
    if (wanted.empty() || left < least_wait) return;
    const Question question{
        Question::Kind::store_attributes, wanted.front(), false, {wanted.begin() + 1, wanted.end()}};
    const auto heard = ask_for(left, holder, question);
    if (!heard) return;
    if (*heard == Heard::nothing) return note_silence(holder, all_of_them);
    for (auto& [ino, inode] : read(wanted)) inodes[ino] = inode;
    if (*heard != Heard::busy) return;
    std::erase_if(wanted, [&](Ino ino) { return inodes.at(ino).lease != holder; });
    const auto pause = busy_pause.next();
    if (clock.elapsed() + pause + least_wait > give_up_at) {
      for (const Ino ino : wanted) note_silence(holder, ino);
      return;
    }
    clock.sleep_for(pause);
  }
}

Result<LeaseHolders::Heard> LeaseHolders::ask_once_briefly(InstanceId holder, const Question& question) {
  using Answer = Instance::AskResult;
  LCCFS_TRY(const auto answer, instance_.ask(holder, question, brief_time_out));
  if (answer == Answer::done) return Heard::done;
  if (answer == Answer::busy) return Heard::busy;
  // A process of this host may be known to be dead.
  const auto seen = answer == Answer::unheard ? instance_.look_at_record(holder) : instance_.look_at(holder);
  if (!seen && seen.error().code == ErrorCode::fenced) return std::unexpected(seen.error());
  return seen && *seen == Instance::Seen::expired ? Heard::expired : Heard::nothing;
}

/// The question hangs if the session object or Super hangs, which the asker may not need. So it has a thread of its
/// own. A holder that has left one unanswered is not asked another, so few such threads are left waiting.
Result<LeaseHolders::Heard> LeaseHolders::ask_for(std::chrono::nanoseconds at_most, InstanceId holder,
                                                  const Question& question) {
  struct Call {
    Mutex mutex;
    std::condition_variable changed;
    std::optional<Result<Heard>> heard GUARDED_BY(mutex);
    bool was_left GUARDED_BY(mutex) = false;
  };
  const auto call = std::make_shared<Call>();
  brief_questions_.post([this, call, holder, question] {
    auto heard = ask_once_briefly(holder, question);
    const Lock lock(call->mutex);
    if (call->was_left) {
      const Lock silent(silent_mutex_);
      still_asked_.erase(still_asked_.find(holder));
    }
    call->heard = std::move(heard);
    call->changed.notify_all();
  });
  Lock lock(call->mutex);
  const auto is_heard = [&call]() REQUIRES(call->mutex) { return call->heard.has_value(); };
  if (instance_.clock().wait_for(call->changed, lock, at_most, is_heard)) return std::move(*call->heard);
  call->was_left = true;
  const Lock silent(silent_mutex_);
  still_asked_.insert(holder);
  return Heard::nothing;
}

bool LeaseHolders::was_silent_just_now(InstanceId holder, Ino ino) {
  const Lock lock(silent_mutex_);
  if (still_asked_.contains(holder)) return true;
  std::erase_if(silent_until_, [now = instance_.clock().elapsed()](const auto& one) { return one.second <= now; });
  return silent_until_.contains({holder, all_of_them}) || silent_until_.contains({holder, ino});
}

void LeaseHolders::note_silence(InstanceId holder, Ino ino) {
  const Lock lock(silent_mutex_);
  silent_until_[{holder, ino}] = instance_.clock().elapsed() + silence_remembered_for;
}

Result<Inode> LeaseHolders::read_current(Ino ino, Ask ask, const std::stop_token& stop) {
  using Map = InodeParts::Map;
  const InodeParts parts{.map = ask == Ask::for_opening ? Map::first_blocks : Map::whole};
  LCCFS_TRY(auto view, read_inode(instance_, ino, parts, stop));
  if (ask != Ask::nobody && view.lease && *view.lease != instance_.id()) {
    const Question question{Question::Kind::store_attributes, ino, ask != Ask::for_attributes};
    auto holder = Holder::answered;
    if (ask == Ask::for_attributes) {
      LCCFS_CHECK(ask_briefly(*view.lease, question));
    } else {
      LCCFS_TRY(holder, settle(*view.lease, question, stop));
    }
    const auto asked = *view.lease;
    LCCFS_TRY(view, read_inode(instance_, ino, parts, stop));
    view.holder_is_expired = holder == Holder::expired && view.lease == asked;
  }
  LCCFS_CHECK(instance_.see_fence(view.fence));
  return view;
}

}  // namespace lccfs
