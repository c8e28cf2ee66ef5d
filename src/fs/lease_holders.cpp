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
/// Between two questions that were answered "busy": longer each time, because a holder that many ask answers so at
/// once.
class BusyPause {
 public:
  std::chrono::nanoseconds next() {
    return std::exchange(next_, std::min<std::chrono::nanoseconds>(2 * next_, longest));
  }

 private:
  static constexpr std::chrono::milliseconds longest{500};
  std::chrono::nanoseconds next_ = std::chrono::milliseconds(20);
};
/// Of a question for attributes; of all that an answer about attributes waits for, asking again and looking included;
/// and how long a holder that did not answer is not asked again: `ls -l` of a thousand of its files waits once or
/// twice.
constexpr std::chrono::seconds brief_time_out{2};
constexpr std::chrono::seconds brief_wait{3};
/// All that a lookup or a page of a listing waits for holders.
constexpr std::chrono::seconds names_wait{1};
/// A holder that is at work says so after half a second: who has less time to wait does not ask, and takes no silence
/// for an answer.
constexpr std::chrono::milliseconds least_wait{600};
constexpr Ino all_of_them{};
constexpr std::chrono::seconds silence_remembered_for{5};
/// The watch of a dead process stands for half a minute, and hears the question: if it was of this host, the look after
/// a first short one shows it. Too short to tell anything of a holder that lives.
constexpr std::chrono::milliseconds first_time_out{1000};
/// A question takes ten seconds of silence.
constexpr ObservedSeries::Limits silence_limits{std::chrono::seconds(15), std::chrono::seconds(15)};

}  // namespace

/// Asks until the holder has answered "done", or has expired. Only a holder that watches all the time counts as silent.
/// One that does not watch hears nothing, and is gone once it was absent for long enough.
Result<LeaseHolders::Holder> LeaseHolders::settle(InstanceId holder, Question question, const StillHolds& still_holds) {
  using Answer = Instance::AskResult;
  auto& clock = instance_.clock();
  ObservedSeries silence(silence_limits);
  BusyPause busy_pause;
  bool watches = false;
  for (std::chrono::milliseconds time_out = first_time_out;; time_out = answer_timeout) {
    const auto asked_at = clock.elapsed();
    LCCFS_TRY(const auto asked, instance_.ask(holder, question, time_out));
    const auto answer = asked.result;
    if (answer == Answer::done) return Holder::answered;
    question.work = std::max(question.work, asked.work);
    const bool silent = answer == Answer::silent || (answer == Answer::nobody && watches);
    if (!silent) silence.break_off();
    const bool silent_for_long =
        silent && time_out != first_time_out && silence.note(asked_at, clock.elapsed()) >= gone_after;
    if (answer != Answer::busy) {
      LCCFS_TRY(const auto seen, instance_.look_at(holder));
      // A read-only mount fences no client: it answers what is stored.
      if (seen == Instance::Seen::expired || instance_.read_only()) return Holder::expired;
      watches = seen == Instance::Seen::watching;
    }
    if (silent_for_long) {
      LCCFS_CHECK(instance_.evict(holder));
      return Holder::expired;
    }
    clock.sleep_for(answer == Answer::busy ? busy_pause.next() : look_again_after);
    // Only the present holder is asked: a request that waits in the gate of a former holder may itself be waiting for
    // us (docs/COUNTEREXAMPLES.md C9).
    LCCFS_TRY(const bool holds, still_holds());
    if (!holds) return Holder::answered;
  }
}

Result<LeaseHolders::Holder> LeaseHolders::settle(InstanceId holder, const Question& question) {
  return settle(holder, question, [&]() -> Result<bool> {
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino));
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
  const auto seen = instance_.look_at(holder);  // a process of this host may be known to be dead
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

Result<Inode> LeaseHolders::read_current(Ino ino, Ask ask) {
  using Map = InodeParts::Map;
  const InodeParts parts{.map = ask == Ask::for_opening ? Map::first_blocks : Map::whole};
  LCCFS_TRY(auto view, read_inode(instance_, ino, parts));
  if (ask != Ask::nobody && view.lease && *view.lease != instance_.id()) {
    const Question question{Question::Kind::store_attributes, ino, ask != Ask::for_attributes};
    auto holder = Holder::answered;
    if (ask == Ask::for_attributes) {
      LCCFS_CHECK(ask_briefly(*view.lease, question));
    } else {
      LCCFS_TRY(holder, settle(*view.lease, question));
    }
    const auto asked = *view.lease;
    LCCFS_TRY(view, read_inode(instance_, ino, parts));
    view.holder_is_expired = holder == Holder::expired && view.lease == asked;
  }
  LCCFS_CHECK(instance_.see_fence(view.fence));
  return view;
}

}  // namespace lccfs
