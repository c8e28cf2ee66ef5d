// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/patient_reads.h"

#include <condition_variable>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "reclaim/pace.h"

namespace lccfs::reclaim {

namespace {

/// One read. Whoever waits shares it with the completion, which the store may hold for longer.
class PatientRead {
 public:
  PatientRead(std::string object, std::shared_ptr<Unanswered> unanswered)
      : object_(std::move(object)), unanswered_(std::move(unanswered)) {}
  /// The store has answered, or has ended: nothing else lets go of a completion.
  ~PatientRead() {
    if (is_unanswered_) unanswered_->answered(object_);
  }
  PatientRead(const PatientRead&) = delete;
  PatientRead& operator=(const PatientRead&) = delete;

  void take(Result<MetaSnapshot> answer) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    answer_ = std::move(answer);
    answered_.notify_all();
  }

  Result<MetaSnapshot> wait(Clock& clock, std::stop_source& gives_up, const std::stop_token& stop) EXCLUDES(mutex_) {
    const std::stop_callback wake(stop, [this] {
      const Lock lock(mutex_);
      answered_.notify_all();
    });
    const auto until = clock.elapsed() + unanswered_->patience();
    Lock lock(mutex_);
    while (!answer_) {
      if (stop.stop_requested() || clock.elapsed() >= until) {
        lock.unlock();
        gives_up.request_stop();
        lock.lock();
      }
      clock.wait_for(answered_, lock, look_every, [&]() REQUIRES(mutex_) {
        return answer_ || (stop.stop_requested() && !gives_up.stop_requested());
      });
    }
    if (!*answer_ && answer_->error().code == ErrorCode::interrupted) note_unanswered(stop);
    return std::move(*answer_);
  }

 private:
  void note_unanswered(const std::stop_token& stop) REQUIRES(mutex_) {
    is_unanswered_ = true;
    unanswered_->add(object_);
    if (!stop.stop_requested()) log::warning(object_ + " does not answer: what needs it is left for a later pass");
  }

  const std::string object_;
  const std::shared_ptr<Unanswered> unanswered_;
  Mutex mutex_;  // before that of what is unanswered
  std::condition_variable answered_;
  std::optional<Result<MetaSnapshot>> answer_ GUARDED_BY(mutex_);
  bool is_unanswered_ = false;  // of who waits, and then of the end
};

}  // namespace

objects::Query patient_reader(Instance& instance, std::shared_ptr<Unanswered> unanswered, std::stop_token stop) {
  return [&instance, unanswered = std::move(unanswered), stop = std::move(stop)](MetaRead read,
                                                                                 ObjectStore::QueryDone done) {
    if (unanswered->holds(read.object)) {
      return done(failure(ErrorCode::interrupted, read.object + ": has not answered an earlier read"));
    }
    std::stop_source gives_up;
    const auto patient = std::make_shared<PatientRead>(read.object, unanswered);
    instance.reader(gives_up.get_token())(std::move(read),
                                          [patient](Result<MetaSnapshot> answer) { patient->take(std::move(answer)); });
    done(patient->wait(instance.clock(), gives_up, stop));
  };
}

}  // namespace lccfs::reclaim
