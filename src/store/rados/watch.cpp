// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/watch.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <future>
#include <list>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "store/rados/errors.h"
#include "store/rados/identity.h"
#include "store/rados/write_operation.h"

namespace lccfs::rados {
namespace {

using librados::bufferlist;

constexpr std::uint32_t watch_timeout_s = 30;
constexpr std::chrono::seconds way_of_a_notify{2};  // there and back

/// Where answers to notifies go, for as long as the watch lasts: an answer may come later, from any thread.
class Answers {
 public:
  Answers(librados::IoCtx& pool, std::string object) : pool_(&pool), object_(std::move(object)) {}

  void send(std::uint64_t notify_id, std::uint64_t cookie, const Bytes& answer) {
    const Lock lock(mutex_);
    if (!pool_) return;
    bufferlist payload = to_bufferlist(answer);
    pool_->notify_ack(object_, notify_id, cookie, payload);  // sends, and waits for nothing (Connection::configure)
  }
  void close() {
    const Lock lock(mutex_);
    pool_ = nullptr;
  }

 private:
  Mutex mutex_;
  librados::IoCtx* pool_ GUARDED_BY(mutex_);
  const std::string object_;
};

class RadosWatch : public Watch, private librados::WatchCtx2 {
 public:
  RadosWatch(Connection& connection, const std::string& object, std::shared_ptr<WatchHandler> handler)
      : connection_(connection),
        object_(object),
        handler_(std::move(handler)),
        answers_(std::make_shared<Answers>(connection.metadata(), object)) {}

  ~RadosWatch() override {
    answers_->close();
    if (!watching_) return;
    connection_.metadata().unwatch2(cookie_);  // a watch that is lost answers an error: it is gone all the same
    connection_.cluster().watch_flush();
  }

  Result<> start() {
    const int status = connection_.metadata().watch3(object_, &cookie_, this, watch_timeout_s);
    if (status < 0) return std::unexpected(to_error(status, "watch of " + object_, Effect::reads));
    watching_ = true;
    return {};
  }

 private:
  void handle_notify(std::uint64_t notify_id, std::uint64_t cookie, std::uint64_t, bufferlist& payload) override {
    if (lost_) return;
    handler_->on_notify(payload.to_str(), [answers = answers_, notify_id, cookie](const Bytes& answer) {
      answers->send(notify_id, cookie, answer);
    });
  }

  void handle_error(std::uint64_t, int status) override {
    if (lost_.exchange(true)) return;
    handler_->on_lost(to_error(status, "watch of " + object_, Effect::reads));
  }

  Connection& connection_;
  const std::string object_;
  const std::shared_ptr<WatchHandler> handler_;
  const std::shared_ptr<Answers> answers_;
  std::uint64_t cookie_ = 0;
  bool watching_ = false;
  std::atomic<bool> lost_{false};
};

/// The time-out is the OSD's, and begins once the request is there. Nothing waits for it at the end: the object may not
/// answer.
struct NotifyStep : Step {
  using Answer = std::promise<std::pair<int, bufferlist>>;
  NotifyStep(InFlight& in_flight, const Bytes& payload, Answer answer)
      : Step(in_flight, AtTheEnd::is_dropped), question(to_bufferlist(payload)), answer_(std::move(answer)) {}
  bufferlist question, response;

 private:
  void finish(int status, std::uint64_t) override { answer_.set_value({status, std::move(response)}); }
  Answer answer_;
};

/// librados counts the time-out in whole seconds, and takes 0 for its own default.
std::uint64_t whole_seconds_ms(std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, seconds)) * 1000;
}

}  // namespace

Result<std::unique_ptr<Watch>> watch(Connection& connection, const std::string& object,
                                     std::shared_ptr<WatchHandler> handler) {
  auto watch = std::make_unique<RadosWatch>(connection, object, std::move(handler));
  LCCFS_CHECK(watch->start());
  return watch;
}

Result<NotifyReply> notify(Connection& connection, InFlight& in_flight, const std::string& object, const Bytes& payload,
                           std::chrono::milliseconds timeout) {
  std::promise<std::pair<int, bufferlist>> promise;
  auto result = promise.get_future();
  const auto timeout_ms = whole_seconds_ms(timeout);
  librados::IoCtx& pool = connection.metadata();
  auto step = std::make_unique<NotifyStep>(in_flight, payload, std::move(promise));
  auto* const notify = step.get();
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_notify(object, completion, notify->question, timeout_ms, &notify->response);
  });
  if (result.wait_for(std::chrono::milliseconds(timeout_ms) + way_of_a_notify) != std::future_status::ready)
    return failure(ErrorCode::timed_out, "notify of " + object + ": the object does not answer");
  auto [status, response] = result.get();
  const bool some_silent = status == -ETIMEDOUT && response.length() != 0;
  if (status < 0 && !some_silent) return std::unexpected(to_error(status, "notify of " + object, Effect::reads));
  std::vector<librados::notify_ack_t> answered;
  std::vector<librados::notify_timeout_t> silent;
  try {
    pool.decode_notify_response(response, &answered, &silent);
  } catch (const std::exception&) {
    return failure(ErrorCode::io, "notify of " + object + ": the cluster's reply cannot be read");
  }
  NotifyReply reply;
  for (auto& answer : answered) reply.answers.push_back(answer.payload_bl.to_str());
  reply.silent = static_cast<unsigned>(silent.size());
  return reply;
}

}  // namespace lccfs::rados
