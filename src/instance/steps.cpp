// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/steps.h"

#include <utility>

#include "base/completions.h"
#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

namespace {

bool is_unknown_time_out(const Error& error) {
  return error.code == ErrorCode::timed_out && error.outcome == Outcome::unknown;
}

bool creates(const MetaTxn& txn) {
  return !txn.mutations.empty() && std::holds_alternative<mutation::CreateExclusive>(txn.mutations.front());
}

void guard_existence(MetaTxn& txn) { txn.guards.insert(txn.guards.begin(), Guard(guard::ObjectExists{})); }

/// A read whose answer is passed on once: the store's, or that it was to stop, whichever comes first.
class StoppableRead {
 public:
  StoppableRead(std::string object, ObjectStore::QueryDone done, const std::stop_token& stop)
      : object_(std::move(object)), done_(std::move(done)), on_stop_(stop, [this] { give_up(); }) {}

  void answer(Result<MetaSnapshot> result) {
    if (!is_answered_.exchange(true)) done_(std::move(result));
  }

 private:
  void give_up() { answer(failure(ErrorCode::interrupted, object_ + ": given up, as its reader ends")); }

  const std::string object_;
  ObjectStore::QueryDone done_;
  std::atomic<bool> is_answered_{false};
  std::stop_callback<std::function<void()>> on_stop_;
};

void ask(ObjectStore& store, MetaRead read, ObjectStore::QueryDone done, const std::stop_token& stop) {
  if (!stop.stop_possible()) return store.query_async(std::move(read), std::move(done));
  const auto stoppable = std::make_shared<StoppableRead>(read.object, std::move(done), stop);
  store.query_async(std::move(read), [stoppable](Result<MetaSnapshot> got) { stoppable->answer(std::move(got)); });
}

Error fenced_error() { return {ErrorCode::fenced, "this client was fenced", Outcome::definite}; }

}  // namespace

Steps::~Steps() {
  ends_.request_stop();
  in_flight_.wait();
}

void Steps::run_async(MetaTxn txn, Done done) {
  in_flight_.enter();
  guard_existence(txn);
  auto step = std::make_unique<Guarded>(numbers_, std::move(txn), std::move(done));
  {
    const Lock lock(mutex_);
    const auto [line, first] = waiting_.try_emplace(step->txn.object);
    if (!first) return line->second.push_back(std::move(step));
  }
  send(std::move(step));
}

void Steps::run_async(std::vector<MetaTxn> txns, AllDone done) {
  struct Batch {
    std::vector<Result<StepResult>> results;
    AllDone done;
    std::atomic<std::size_t> left;
  };
  const std::shared_ptr<Batch> batch(
      new Batch{std::vector<Result<StepResult>>(txns.size()), std::move(done), txns.size() + 1});
  const auto one_less = [batch] {
    if (batch->left.fetch_sub(1) == 1) batch->done(std::move(batch->results));
  };
  for (std::size_t i = 0; i < txns.size(); ++i) {
    run_async(std::move(txns[i]), [batch, i, one_less](Result<StepResult> result) {
      batch->results[i] = std::move(result);
      one_less();
    });
  }
  one_less();
}

Result<StepResult> Steps::run(MetaTxn txn) {
  auto [answer, done] = promised<Result<StepResult>>();
  run_async(std::move(txn), std::move(done));
  return answer.get();
}

void Steps::send(std::unique_ptr<Guarded> step) {
  if (fenced_) return finish(std::move(step), std::unexpected(fenced_error()));
  step->number = numbers_.next();
  const auto key = format::step_number_key(me_);
  MetaTxn numbered = step->txn;
  numbered.guards.emplace_back(guard::KeyLess{key, format::step_number_value(step->number)});
  numbered.mutations.emplace_back(mutation::SetKey{key, format::step_number_value(step->number)});
  store_.apply_async(std::move(numbered), [this, step = std::move(step)](Result<Applied> applied) mutable {
    if (applied) return finish(std::move(step), StepResult{Decided::applied, applied->version});
    Error error = std::move(applied).error();
    const bool decides = error.code == ErrorCode::not_found || error.code == ErrorCode::fenced;
    if (decides) return finish(std::move(step), std::unexpected(noted(std::move(error))));
    // The step may have been applied by an earlier run whatever this answer says, "no space" included.
    read_back(std::move(step), std::move(error));
  });
}

/// It belongs to a step, which the end waits for: nothing stops it.
void Steps::read_back(std::unique_ptr<Guarded> step, Error error) {
  const auto key = format::step_number_key(me_);
  MetaRead read{.object = step->txn.object, .keys = {key}};
  auto decide = [this, step = std::move(step), error = std::move(error), key](Result<MetaSnapshot> snapshot) mutable {
    if (!snapshot) {
      snapshot.error().outcome = Outcome::unknown;
      return finish(std::move(step), std::unexpected(std::move(snapshot).error()));
    }
    const auto found = snapshot->keys.find(key);
    const bool was_applied = found != snapshot->keys.end() && found->second == format::step_number_value(step->number);
    if (was_applied) return finish(std::move(step), StepResult{Decided::applied, 0});
    if (error.code == ErrorCode::guard_failed) return finish(std::move(step), StepResult{Decided::refused, 0});
    if (is_unknown_time_out(error)) return send(std::move(step));
    finish(std::move(step), std::unexpected(noted(std::move(error))));
  };
  read_until({}, std::move(read), std::move(decide));
}

/// Answers a step, and sends the next in line; all of them are answered once this client is fenced.
void Steps::finish(std::unique_ptr<Guarded> step, Result<StepResult> result) {
  for (;;) {
    std::unique_ptr<Guarded> next;
    {
      const Lock lock(mutex_);
      const auto line = waiting_.find(step->txn.object);
      if (line->second.empty()) {
        waiting_.erase(line);
      } else {
        next = std::move(line->second.front());
        line->second.pop_front();
      }
    }
    Done done = std::move(step->done);
    step.reset();
    done(std::move(result));
    in_flight_.leave();  // only `next`, if there is one, keeps the instance from now on
    if (!next) return;
    if (!fenced_) return send(std::move(next));
    step = std::move(next);
    result = std::unexpected(fenced_error());
  }
}

void Steps::apply_until_known_async(MetaTxn txn, ObjectStore::ApplyDone done) {
  if (fenced_) return done(std::unexpected(fenced_error()));
  in_flight_.enter();
  MetaTxn sent = txn;
  store_.apply_async(std::move(sent),
                     [this, txn = std::move(txn), done = std::move(done)](Result<Applied> applied) mutable {
                       if (!applied && is_unknown_time_out(applied.error())) {
                         apply_until_known_async(std::move(txn), std::move(done));
                       } else {
                         if (!applied) applied = std::unexpected(noted(std::move(applied).error()));
                         done(std::move(applied));
                       }
                       in_flight_.leave();
                     });
}

Result<Applied> Steps::apply_until_known(MetaTxn txn) {
  auto [answer, done] = promised<Result<Applied>>();
  apply_until_known_async(std::move(txn), std::move(done));
  return answer.get();
}

Result<Applied> Steps::run_repeatable(MetaTxn txn) {
  if (!creates(txn)) guard_existence(txn);
  return apply_until_known(std::move(txn));
}

void Steps::query_async(MetaRead read, ObjectStore::QueryDone done, const std::stop_token& stop) {
  read_until(stop.stop_possible() ? stop : ends_.get_token(), std::move(read), std::move(done));
}

void Steps::read_until(const std::stop_token& stop, MetaRead read, ObjectStore::QueryDone done) {
  if (fenced_) return done(std::unexpected(fenced_error()));
  in_flight_.enter();
  in_flight_.enter();  // the call itself: what is to stop may be answered before the store is asked
  MetaRead sent = read;
  ask(
      store_, std::move(sent),
      [this, read = std::move(read), done = std::move(done), stop](Result<MetaSnapshot> answer) mutable {
        const bool again = !answer && answer.error().code == ErrorCode::timed_out;  // a mount waits for its store
        if (again) {
          read_until(stop, std::move(read), std::move(done));
        } else {
          if (!answer) answer = std::unexpected(noted(std::move(answer).error()));
          done(std::move(answer));
        }
        in_flight_.leave();
      },
      stop);
  in_flight_.leave();
}

Result<MetaSnapshot> Steps::query(MetaRead read) {
  auto [answer, done] = promised<Result<MetaSnapshot>>();
  query_async(std::move(read), std::move(done));
  return answer.get();
}

Result<> Steps::check_not_fenced() const { return fenced_ ? Result<>(std::unexpected(fenced_error())) : Result<>(); }

/// Called by completions, too. Its line in the log, the last that matters, may take its time: nothing continues any
/// more.
void Steps::become_fenced(const std::string& why) {
  if (fenced_.exchange(true)) return;
  log::error(
      "instance " + std::to_string(me_.value) +
      " was fenced: every request is answered with an error from now on, and what is not stored is lost. Unmount, "
      "and mount again. (" +
      why + ")");
}

Error Steps::noted(Error error) {
  if (error.code == ErrorCode::fenced) become_fenced(error.context);
  return error;
}

}  // namespace lccfs
