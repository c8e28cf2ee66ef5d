// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/holder.h"

namespace lccfs {

namespace {
/// The watch of a dead process stands for half a minute, and hears the question: if it was of this host, the look after
/// a first short one shows it. Too short to tell anything of a holder that lives.
constexpr std::chrono::milliseconds first_time_out{1000};
/// A question takes ten seconds of silence.
constexpr ObservedSeries::Limits silence_limits{std::chrono::seconds(15), std::chrono::seconds(15)};

bool is_for_others_to_fence(const Error& error) { return error.code == ErrorCode::permission_denied; }
}  // namespace

/// Asks until the holder has answered "done", or has expired. Only a holder that watches all the time counts as silent.
/// One that does not watch hears nothing, and is gone once it was absent for long enough. Of one whose session object does
/// not answer, its record and its process tell. Where this client may not fence it, it waits until somebody has who may
/// (the log has the command).
Result<Settled> settle_holder(Instance& instance, InstanceId holder, format::Question question,
                              const StillHolds& still_holds) {
  using Answer = Instance::AskResult;
  auto& clock = instance.clock();
  ObservedSeries silence(silence_limits);
  BusyPause busy_pause;
  bool watches = false;
  const AskedHolders::Asking asking(instance.asked_holders(), question.ino, holder);
  for (std::chrono::milliseconds time_out = first_time_out;; time_out = answer_timeout) {
    const auto asked_at = clock.elapsed();
    LCCFS_TRY(const auto asked, instance.ask(holder, question, time_out));
    const auto answer = asked.result;
    if (answer == Answer::done) return Settled::answered;
    question.work = std::max(question.work, asked.work);
    const auto heard_at = clock.elapsed();
    const bool is_unheard = answer == Answer::unheard;
    const bool knows_nothing = answer == Answer::busy || is_unheard;
    const bool silent = answer == Answer::silent || (answer == Answer::nobody && watches);
    if (!silent) silence.break_off();
    const bool silent_for_long = silent && time_out != first_time_out && silence.note(asked_at, heard_at) >= gone_after;
    if (answer != Answer::busy) {
      const auto seen = is_unheard ? instance.look_at_record(holder) : instance.look_at(holder);
      if (!seen && !is_for_others_to_fence(seen.error())) return std::unexpected(seen.error());
      // A read-only mount fences no client: it answers what is stored.
      if ((seen && *seen == Instance::Seen::expired) || (instance.read_only() && !is_unheard)) return Settled::expired;
      watches = seen && *seen == Instance::Seen::watching;
    }
    if (silent_for_long) {
      const auto is_fenced = instance.fence_if_seen_lately(holder, heard_at);
      if (is_fenced && *is_fenced) return Settled::expired;
      if (!is_fenced && !is_for_others_to_fence(is_fenced.error())) return std::unexpected(is_fenced.error());
      silence.break_off();
    }
    clock.sleep_for(knows_nothing ? busy_pause.next(heard_at - asked_at) : look_again_after);
    // Only the present holder is asked: a request that waits in the gate of a former holder may itself be waiting for
    // us (docs/COUNTEREXAMPLES.md C9).
    LCCFS_TRY(const bool holds, still_holds());
    if (!holds) return Settled::answered;
  }
}

}  // namespace lccfs
