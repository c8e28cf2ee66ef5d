// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/patient_calls.h"

#include <algorithm>
#include <string>

#include "cli/diagnosis.h"

namespace lccfs::cli {

Result<> PatientCalls::wait(std::chrono::nanoseconds begin, const std::function<bool()>& has_ended) {
  constexpr std::chrono::seconds longest{150}, longest_once_interrupted{10};
  auto end = begin + longest;
  bool is_interrupted = false;
  while (!has_ended()) {
    const auto now = clock_.elapsed();
    if (!is_interrupted && Interruption::is_wanted()) {
      is_interrupted = true;
      end = std::min(end, now + longest_once_interrupted);
    }
    if (now < end) continue;
    has_given_up_ = true;
    give_up_();
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - begin);
    return failure(ErrorCode::timed_out, "no answer within " + std::to_string(waited.count()) + " s");
  }
  return {};
}

}  // namespace lccfs::cli
