// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/answers.h"

#include <algorithm>
#include <iterator>

namespace lccfs {

std::optional<format::Answer> Answers::to(const format::Question& question) {
  std::optional<format::Answer> answer;
  question_handler.call([&](const QuestionHandler& handler) { answer = handler(question); });
  return answer;
}

format::PollReply Answers::to(const format::LivenessPoll& call) {
  format::PollReply reply{me_, queue_.drop_directory_items(), {}};
  open_probe.call(
      [&](const OpenProbe& is_open) { std::ranges::copy_if(call.inodes, std::back_inserter(reply.open), is_open); });
  if (call.asker != me_ && call.asker != InstanceId{}) {
    const Lock lock(mutex_);
    last_poll_ = clock_.elapsed();
  }
  return reply;
}

std::optional<std::chrono::nanoseconds> Answers::last_poll() const {
  const Lock lock(mutex_);
  return last_poll_;
}

}  // namespace lccfs
