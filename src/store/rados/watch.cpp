// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/watch.h"

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "store/rados/errors.h"
#include "store/rados/write_operation.h"

namespace lccfs::rados {
namespace {

using librados::bufferlist;

constexpr std::uint32_t watch_timeout_s = 30;

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

}  // namespace

Result<std::unique_ptr<Watch>> watch(Connection& connection, const std::string& object,
                                     std::shared_ptr<WatchHandler> handler) {
  auto watch = std::make_unique<RadosWatch>(connection, object, std::move(handler));
  LCCFS_CHECK(watch->start());
  return watch;
}

}  // namespace lccfs::rados
