// SPDX-License-Identifier: LGPL-2.1-or-later
// What this instance answers to others: questions about leases, which the file system answers, and the collectors' roll
// call (docs/ORDERING.md section 2).
#include <algorithm>
#include <iterator>

#include "instance/instance.h"

namespace lccfs {

Instance::Operation::Operation(Instance& instance) : instance_(instance) {
  const std::lock_guard lock(instance_.queue_mutex_);
  place_ = instance_.running_.insert(instance_.next_number_.load());
}

Instance::Operation::~Operation() {
  const std::lock_guard lock(instance_.queue_mutex_);
  instance_.running_.erase(place_);
}

void Instance::set_question_handler(QuestionHandler handler) {
  std::unique_lock lock(handler_mutex_);
  question_handler_ = handler ? std::make_shared<const QuestionHandler>(std::move(handler)) : nullptr;
  handler_idle_.wait(lock, [this] { return handlers_running_ == 0; });
}

void Instance::set_open_probe(OpenProbe probe) {
  std::unique_lock lock(handler_mutex_);
  open_probe_ = probe ? std::make_shared<const OpenProbe>(std::move(probe)) : nullptr;
  handler_idle_.wait(lock, [this] { return handlers_running_ == 0; });
}

/// What is to be called between this and leave_handler; nullptr: there is none, and nothing to leave.
template <class Handler>
std::shared_ptr<const Handler> Instance::enter_handler(const std::shared_ptr<const Handler>& handler) {
  const std::lock_guard lock(handler_mutex_);
  if (handler) ++handlers_running_;
  return handler;
}

void Instance::leave_handler() {
  const std::lock_guard lock(handler_mutex_);
  --handlers_running_;
  handler_idle_.notify_all();
}

std::optional<format::Answer> Instance::answer(const format::Question& question) {
  const auto handler = enter_handler(question_handler_);
  if (!handler) return std::nullopt;
  const auto answer = (*handler)(question);
  leave_handler();
  return answer;
}

/// Lets go of all directory items: the next operation there logs anew. Those on which something that runs relies hold
/// the answer back until it is through; used on, they would do so for ever. Answers the lowest number that is still
/// running or relied on, or else the next one.
std::uint64_t Instance::let_go_of_directories() {
  const std::lock_guard lock(queue_mutex_);
  const auto next = next_number_.load();
  const auto lowest_running = running_.empty() ? next : std::min(*running_.begin(), next);
  // An operation that relied on an item and still runs began before the item was used last.
  for (const auto& [directory, relied_on] : directories_relied_on_) let_go_of_.push_back(relied_on);
  directories_relied_on_.clear();
  std::erase_if(let_go_of_, [=](const ReliedOn& item) { return item.last_used < lowest_running; });
  auto lowest = lowest_running;
  for (const auto& item : let_go_of_) lowest = std::min(lowest, item.item);
  return lowest;
}

format::RollReply Instance::answer(const format::RollCall& call) {
  format::RollReply reply{id_, let_go_of_directories(), {}};
  if (const auto probe = enter_handler(open_probe_)) {
    std::ranges::copy_if(call.inodes, std::back_inserter(reply.open), *probe);
    leave_handler();
  }
  if (call.asker != id_ && call.asker != InstanceId{}) {
    const std::lock_guard lock(handler_mutex_);
    last_roll_call_ = clock_.elapsed();
  }
  return reply;
}

std::optional<std::chrono::nanoseconds> Instance::last_roll_call() const {
  const std::lock_guard lock(handler_mutex_);
  return last_roll_call_;
}

}  // namespace lccfs
