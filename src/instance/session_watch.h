// SPDX-License-Identifier: LGPL-2.1-or-later
// What an instance's watches call: it only hands over to the threads that answer questions.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "instance/instance.h"

namespace lccfs {

class Instance::SessionWatch final : public WatchHandler {
 public:
  SessionWatch(Instance& instance, std::string object) : instance_(instance), object_(std::move(object)) {}

  void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) override {
    const bool roll_call = object_ == format::super_object;
    auto& threads = roll_call ? instance_.roll_threads_ : instance_.question_threads_;
    // Not `this`: the watch may have ended by then.
    threads.post(
        [&instance = instance_, roll_call, payload = std::move(payload), answer = std::move(answer)]() mutable {
          const auto reply = roll_call ? reply_to_roll_call(instance, payload) : reply_to_question(instance, payload);
          if (reply) answer(*reply);
        });
  }

  void on_lost(Error reason) override {
    log::warning("watch on " + object_ + " lost: " + reason.context);
    lost_ = true;
    instance_.begin_looks_anew();
    instance_.watch_threads_.post([&instance = instance_, object = object_] { instance.set_watch_again(object); });
  }

  bool lost() const { return lost_; }

 private:
  // What cannot be read is a newer version's: it will take our silence for what it is.
  static std::optional<Bytes> reply_to_question(Instance& instance, const Bytes& payload) {
    const auto question = format::decode<format::Question>(payload);
    if (!question) return std::nullopt;
    const auto reply = instance.answer(*question);
    return reply ? std::optional(encode(*reply)) : std::nullopt;
  }
  static std::optional<Bytes> reply_to_roll_call(Instance& instance, const Bytes& payload) {
    const auto call = format::decode<format::RollCall>(payload);
    return call ? std::optional(encode(instance.answer(*call))) : std::nullopt;
  }

  Instance& instance_;
  const std::string object_;
  std::atomic<bool> lost_{false};
};

}  // namespace lccfs
