// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/watches.h"

#include <atomic>
#include <optional>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

namespace {

// What cannot be read is a newer version's: it will take our silence for what it is.
template <class Asked>
std::optional<Bytes> reply_to(Answers& answers, const Bytes& payload) {
  const auto asked = format::decode<Asked>(payload);
  if (!asked) return std::nullopt;
  const std::optional reply = answers.to(*asked);
  return reply ? std::optional(encode(*reply)) : std::nullopt;
}

}  // namespace

/// What the store calls: it only hands over. A client that was fenced says nothing: whoever asks then looks whether it
/// still lives. An answer "busy" would keep others waiting for ever, where its fence is not marked on Super.
class OwnWatches::Handler final : public WatchHandler {
 public:
  Handler(OwnWatches& own, std::string object) : own_(own), object_(std::move(object)) {}

  void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) override {
    if (own_.steps_.fenced()) return;
    const bool liveness_poll = object_ == format::super_object;
    auto& threads = liveness_poll ? own_.poll_threads_ : own_.question_threads_;
    // Not `this`: the watch may have ended by then.
    threads.post(
        [&answers = own_.answers_, liveness_poll, payload = std::move(payload), answer = std::move(answer)]() mutable {
          const auto reply = liveness_poll ? reply_to<format::LivenessPoll>(answers, payload)
                                           : reply_to<format::Question>(answers, payload);
          if (reply) answer(*reply);
        });
  }

  void on_lost(Error reason) override {
    log::failed(log::Level::warning, "watch on " + object_ + " lost", reason);  // a fence is met where it is set again
    lost_ = true;
    own_.others_.begin_looks_anew();
    own_.watch_threads_.post([&own = own_, object = object_] { own.set_again(object); });
  }

  bool lost() const { return lost_; }

 private:
  OwnWatches& own_;
  const std::string object_;
  std::atomic<bool> lost_{false};
};

Result<> OwnWatches::start(const Bytes& record) {
  record_ = record;
  for (const std::string& object : {std::string(format::super_object), format::session_object(me_.id)}) {
    LCCFS_CHECK(set(object));
  }
  others_.look_around();
  LCCFS_TRY(const bool live, own_record_is_live());
  if (!live) return failure(ErrorCode::fenced, "this client was taken for dead while it started: start it again");
  return {};
}

std::map<std::string, OwnWatches::Own> OwnWatches::end() {
  const Lock lock(mutex_);
  ending_ = true;
  return std::exchange(watches_, {});
}

/// A watch may be lost before it is entered into the table. on_lost does not find it there then, so the caller that
/// enters it looks.
Result<> OwnWatches::set(const std::string& object) {
  for (;;) {
    Own own{std::make_shared<Handler>(*this, object), nullptr};
    LCCFS_TRY(own.watch, steps_.store().watch(object, own.handler));
    const Lock lock(mutex_);
    if (ending_) return {};
    if (own.handler->lost()) continue;
    std::swap(watches_[object], own);
    return {};
  }
}

Result<bool> OwnWatches::own_record_is_live() {
  LCCFS_TRY(const auto found, others_.read_record(me_.id));
  return found.record && found.raw == record_;
}

/// The watch may be lost often, and the store may not answer: a second one waits, finds all that was lost before it
/// began, and spares the others a thread. Nobody waits for what is read: it may be lost again meanwhile.
void OwnWatches::set_again(const std::string& object) {
  {
    const Lock lock(mutex_);
    if (!waits_to_set_again_.insert(object).second) return;
  }
  bool was_set = false;
  {
    const Lock one_at_a_time(object == format::super_object ? super_again_ : session_again_);
    {
      const Lock lock(mutex_);
      waits_to_set_again_.erase(object);
    }
    was_set = set_if_lost(object);
  }
  if (was_set) check_own_record();
}

/// Whether it was.
bool OwnWatches::set_if_lost(const std::string& object) {
  while (!steps_.fenced()) {
    {
      const Lock lock(mutex_);
      const auto& kept = watches_[object];
      if (ending_ || (kept.handler && !kept.handler->lost())) return false;
    }
    const auto done = set(object);
    if (done) {
      log::info("watch on " + object + " set again");
      answers_.missed_handler.call([](const std::function<void()>& handler) { handler(); });
      return true;
    }
    if (done.error().code == ErrorCode::not_found) {
      steps_.become_fenced(object + " is gone");
    } else if (done.error().code == ErrorCode::fenced) {
      steps_.become_fenced(done.error().context);
    } else {
      clock_.sleep_for(std::chrono::seconds(1));
    }
  }
  return false;
}

/// After a watch was set: what is read behind that may say that this client was fenced meanwhile. One thread reads for
/// all, until the store has answered.
void OwnWatches::check_own_record() {
  {
    const Lock lock(mutex_);
    is_record_wanted_ = true;
    if (std::exchange(is_reading_record_, true)) return;
  }
  for (bool was_told = false; begins_to_read_record();) {
    const auto live = own_record_is_live();
    if (live && !*live) steps_.become_fenced("its record on Super is no longer live");
    if (live) continue;
    if (!std::exchange(was_told, true))
      log::failed(log::Level::warning, "cannot tell whether this client was fenced, tries again", live.error());
    {
      const Lock lock(mutex_);
      is_record_wanted_ = true;
    }
    clock_.sleep_for(std::chrono::seconds(1));
  }
}

/// false: nobody wants it any more.
bool OwnWatches::begins_to_read_record() {
  const Lock lock(mutex_);
  is_reading_record_ = std::exchange(is_record_wanted_, false) && !ending_ && !steps_.fenced();
  return is_reading_record_;
}

}  // namespace lccfs
