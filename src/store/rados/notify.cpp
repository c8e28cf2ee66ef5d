// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/notify.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "store/rados/errors.h"
#include "store/rados/write_operation.h"

namespace lccfs::rados {

namespace {

constexpr std::chrono::seconds way{2};  // there and back

/// librados counts the time-out in whole seconds, and takes 0 for its own default.
std::chrono::seconds whole_seconds(std::chrono::milliseconds timeout) {
  return std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(timeout));
}

std::unexpected<Error> no_answer(const std::string& object) {
  return failure(ErrorCode::timed_out, "notify of " + object + ": the object does not answer");
}

}  // namespace

struct Notifies::Call {
  librados::bufferlist question, response;
  int status = 0;
  bool is_answered = false, is_given_up = false;  // guarded by GivenUp::mutex
};

/// Objects with notifies that nobody waits for any more. It outlives the connection, as these do.
class Notifies::GivenUp {
 public:
  void answered(Call& call, const std::string& object, int status) {
    const Lock lock(mutex_);
    call.status = status;
    call.is_answered = true;
    if (call.is_given_up) objects_.extract(object);
    changed_.notify_all();
  }
  /// false: it is given up.
  bool wait_for(Call& call, const std::string& object, std::chrono::milliseconds at_most) {
    Lock lock(mutex_);
    if (changed_.wait_for(lock, at_most, [&call] { return call.is_answered; })) return true;
    call.is_given_up = true;
    objects_.insert(object);
    return false;
  }
  /// Whether none is left of that object.
  bool wait_for_none(const std::string& object, std::chrono::milliseconds at_most) {
    Lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [this, &object]() REQUIRES(mutex_) { return !objects_.contains(object); });
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::multiset<std::string> objects_ GUARDED_BY(mutex_);
};

/// Nothing waits for it at the end: the object may not answer.
class Notifies::NotifyStep : public Step {
 public:
  NotifyStep(RequestsInFlight& in_flight, std::shared_ptr<GivenUp> given_up, std::string object,
             std::shared_ptr<Call> call)
      : Step(in_flight, AtTheEnd::is_dropped),
        given_up_(std::move(given_up)),
        object_(std::move(object)),
        call_(std::move(call)) {}

 private:
  void finish(int status, std::uint64_t) override { given_up_->answered(*call_, object_, status); }

  const std::shared_ptr<GivenUp> given_up_;
  const std::string object_;
  const std::shared_ptr<Call> call_;
};

Notifies::Notifies(Connection& connection, RequestsInFlight& in_flight)
    : connection_(connection), in_flight_(in_flight), given_up_(std::make_shared<GivenUp>()) {}

Result<NotifyReply> Notifies::send(const std::string& object, const Bytes& payload, std::chrono::milliseconds timeout) {
  const auto of_osd = whole_seconds(timeout);
  if (!given_up_->wait_for_none(object, of_osd + way)) return no_answer(object);
  const auto call = std::make_shared<Call>();
  call->question = to_bufferlist(payload);
  Step::submit(
      std::make_unique<NotifyStep>(in_flight_, given_up_, object, call), [&](librados::AioCompletion* completion) {
        const auto timeout_ms = static_cast<std::uint64_t>(std::chrono::milliseconds(of_osd).count());
        return connection_.metadata().aio_notify(object, completion, call->question, timeout_ms, &call->response);
      });
  if (!given_up_->wait_for(*call, object, of_osd + way)) return no_answer(object);
  return reply_of(*call, object);
}

Result<NotifyReply> Notifies::reply_of(Call& call, const std::string& object) const {
  const bool some_silent = call.status == -ETIMEDOUT && call.response.length() != 0;
  if (call.status < 0 && !some_silent)
    return std::unexpected(to_error(call.status, "notify of " + object, Effect::reads));
  std::vector<librados::notify_ack_t> answered;
  std::vector<librados::notify_timeout_t> silent;
  try {
    connection_.metadata().decode_notify_response(call.response, &answered, &silent);
  } catch (const std::exception&) {
    return failure(ErrorCode::io, "notify of " + object + ": the cluster's reply cannot be read");
  }
  NotifyReply reply;
  for (auto& answer : answered) reply.answers.push_back(answer.payload_bl.to_str());
  reply.silent = static_cast<unsigned>(silent.size());
  return reply;
}

}  // namespace lccfs::rados
