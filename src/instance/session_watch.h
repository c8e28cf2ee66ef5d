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
    instance_.question_threads_.post(
        [&instance = instance_, payload = std::move(payload), answer = std::move(answer)]() mutable {
          const auto question = format::decode<format::Question>(payload);
          if (!question) return;  // a newer version's: it will take our silence for what it is
          const auto reply = instance.answer(*question);
          if (reply) answer(encode(*reply));
        });
  }

  void on_lost(Error reason) override {
    log::warning("watch on " + object_ + " lost: " + reason.context);
    lost_ = true;
    instance_.watch_threads_.post([&instance = instance_, object = object_] { instance.set_watch_again(object); });
  }

  bool lost() const { return lost_; }

 private:
  Instance& instance_;
  const std::string object_;
  std::atomic<bool> lost_{false};
};

}  // namespace lccfs
