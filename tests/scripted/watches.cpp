// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scripted/watches.h"

#include <algorithm>

namespace lccfs {

struct ScriptedNotify::Ticket {
  explicit Ticket(std::shared_ptr<ScriptedNotify> of_notify) : notify(std::move(of_notify)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (!answered) notify->settle(std::nullopt);
  }
  const std::shared_ptr<ScriptedNotify> notify;
  bool answered = false;
};

std::move_only_function<void(Bytes)> ScriptedNotify::expect_answer() {
  {
    std::lock_guard lock(mutex_);
    ++expected_;
  }
  return [ticket = std::make_unique<Ticket>(shared_from_this())](Bytes answer) {
    ticket->answered = true;
    ticket->notify->settle(std::move(answer));
  };
}

void ScriptedNotify::expect_silence(bool takes_time) {
  std::lock_guard lock(mutex_);
  ++(takes_time ? expected_ : reply_.silent);
}

void ScriptedNotify::settle(std::optional<Bytes> answer) {
  std::lock_guard lock(mutex_);
  if (expected_ == 0) return;  // the time-out was quicker
  --expected_;
  if (answer) {
    reply_.answers.push_back(std::move(*answer));
  } else {
    ++reply_.silent;
  }
  changed_.notify_all();
}

NotifyReply ScriptedNotify::wait(std::chrono::milliseconds timeout, Clock* clock) {
  std::unique_lock lock(mutex_);
  const auto all_answered = [&] { return expected_ == 0; };
  if (clock != nullptr) {
    clock->wait_for(changed_, lock, timeout, all_answered);
  } else {
    changed_.wait_for(lock, timeout, all_answered);
  }
  reply_.silent += expected_;
  expected_ = 0;
  return std::move(reply_);
}

ScriptedWatch::~ScriptedWatch() {
  {
    std::lock_guard lock(cluster_->mutex_);
    std::erase(cluster_->watches_, state_);
  }
  std::lock_guard no_call_is_running(state_->calls);
  state_->ended = true;
}

ScriptedCluster::Watches ScriptedCluster::take_watches(const Bytes& identity,
                                                       const std::function<bool(const std::string&)>& chosen) {
  auto kept = std::ranges::stable_partition(
      watches_, [&](const auto& watch) { return watch->identity != identity || !chosen(watch->object); });
  Watches taken(kept.begin(), kept.end());
  watches_.erase(kept.begin(), kept.end());
  return taken;
}

void ScriptedCluster::make_deaf(const Bytes& identity, bool deaf) {
  for (const auto& watch : watches_)
    if (watch->identity == identity) watch->deaf = deaf;
}

/// At once, or when that client hears again.
void ScriptedCluster::tell(const std::shared_ptr<WatchState>& watch,
                           std::move_only_function<void(WatchHandler&)> what) {
  auto call = [watch, what = std::move(what)]() mutable {
    std::lock_guard calling(watch->calls);
    if (!watch->ended) what(*watch->handler);
  };
  {
    std::lock_guard lock(mutex_);
    if (const auto untold = untold_.find(watch->identity); untold != untold_.end()) {
      untold->second.push_back(std::move(call));
      return;
    }
  }
  call();
}

void ScriptedCluster::tell_lost(const Watches& watches, const Error& reason) {
  for (const auto& watch : watches) {
    if (!watch->deaf) tell(watch, [reason](WatchHandler& handler) { handler.on_lost(reason); });
  }
}

Result<std::unique_ptr<Watch>> ScriptedClient::watch(const std::string& object, std::shared_ptr<WatchHandler> handler) {
  std::unique_lock lock(cluster_->mutex_);
  wait_to_reach(lock, object);
  LCCFS_CHECK(touch(object));
  if (!cluster_->objects_.metadata().contains(object))
    return failure(ErrorCode::not_found, "watch " + object + ": no such object");
  auto state = std::make_shared<ScriptedCluster::WatchState>();
  state->object = object;
  state->identity = identity_;
  state->handler = std::move(handler);
  state->deaf = deaf_;
  cluster_->watches_.push_back(state);
  return std::make_unique<ScriptedWatch>(cluster_, std::move(state));
}

Result<Presence> ScriptedClient::presence(const std::string& object, const Bytes& identity) {
  const std::unique_lock lock(cluster_->mutex_);
  if (!dead_ && !reaches(object)) return failure(ErrorCode::timed_out, "watchers of " + object + ": no answer");
  LCCFS_CHECK(touch(object));
  if (cluster_->options_.deaths_are_seen && cluster_->crashed_.contains(identity)) return Presence::dead;
  const bool watches = std::ranges::any_of(
      cluster_->watches_, [&](const auto& watch) { return watch->object == object && watch->identity == identity; });
  return watches ? Presence::watching : Presence::absent;
}

Result<NotifyReply> ScriptedClient::notify(const std::string& object, Bytes payload,
                                           std::chrono::milliseconds timeout) {
  auto notify = std::make_shared<ScriptedNotify>();
  auto sent = control_step({StepKind::notify, object, "notify", nullptr, timeout}, [&]() -> Result<> {
    ScriptedCluster::Watches listening;
    {
      std::unique_lock lock(cluster_->mutex_);
      wait_to_reach(lock, object);
      LCCFS_CHECK(touch(object));
      if (!cluster_->objects_.metadata().contains(object))
        return failure(ErrorCode::not_found, "notify " + object + ": no such object");
      for (const auto& watch : cluster_->watches_) {
        if (watch->object != object) continue;
        if (watch->deaf) {
          notify->expect_silence(cluster_->options_.clock != nullptr);
        } else {
          listening.push_back(watch);
        }
      }
    }
    for (const auto& watch : listening) {
      cluster_->tell(watch, [payload, answer = notify->expect_answer()](WatchHandler& handler) mutable {
        handler.on_notify(payload, std::move(answer));
      });
    }
    return {};
  });
  if (!sent) return std::unexpected(std::move(sent).error());
  auto reply = notify->wait(timeout, cluster_->options_.clock);
  wait_to_hear();
  return reply;
}

}  // namespace lccfs
