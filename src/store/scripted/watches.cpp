// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/scripted/watches.h"

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

void ScriptedNotify::count_silent() {
  std::lock_guard lock(mutex_);
  ++reply_.silent;
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

NotifyReply ScriptedNotify::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return expected_ == 0; });
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

ScriptedCluster::Watches ScriptedCluster::take_watches(const Bytes& identity) {
  auto kept = std::ranges::stable_partition(watches_, [&](const auto& watch) { return watch->identity != identity; });
  Watches taken(kept.begin(), kept.end());
  watches_.erase(kept.begin(), kept.end());
  return taken;
}

void ScriptedCluster::make_deaf(const Bytes& identity, bool deaf) {
  for (const auto& watch : watches_)
    if (watch->identity == identity) watch->deaf = deaf;
}

void ScriptedCluster::tell_lost(const Watches& watches, const Error& reason) {
  for (const auto& watch : watches) {
    std::lock_guard calling(watch->calls);
    if (!watch->ended && !watch->deaf) watch->handler->on_lost(reason);
  }
}

Result<std::unique_ptr<Watch>> ScriptedClient::watch(const std::string& object, std::shared_ptr<WatchHandler> handler) {
  std::lock_guard lock(cluster_->mutex_);
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

Result<bool> ScriptedClient::is_watching(const std::string& object, const Bytes& identity) {
  std::lock_guard lock(cluster_->mutex_);
  LCCFS_CHECK(touch(object));
  return std::ranges::any_of(cluster_->watches_,
                             [&](const auto& watch) { return watch->object == object && watch->identity == identity; });
}

Result<NotifyReply> ScriptedClient::notify(const std::string& object, Bytes payload,
                                           std::chrono::milliseconds timeout) {
  auto notify = std::make_shared<ScriptedNotify>();
  auto sent = control_step({StepKind::notify, object, "notify"}, [&]() -> Result<> {
    ScriptedCluster::Watches listening;
    {
      std::lock_guard lock(cluster_->mutex_);
      LCCFS_CHECK(touch(object));
      if (!cluster_->objects_.metadata().contains(object))
        return failure(ErrorCode::not_found, "notify " + object + ": no such object");
      for (const auto& watch : cluster_->watches_) {
        if (watch->object != object) continue;
        if (watch->deaf) {
          notify->count_silent();
        } else {
          listening.push_back(watch);
        }
      }
    }
    for (const auto& watch : listening) {
      auto answer = notify->expect_answer();
      std::lock_guard calling(watch->calls);
      if (!watch->ended) watch->handler->on_notify(payload, std::move(answer));
    }
    return {};
  });
  if (!sent) return std::unexpected(std::move(sent).error());
  return notify->wait(timeout);
}

}  // namespace lccfs
