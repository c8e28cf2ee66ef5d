// SPDX-License-Identifier: LGPL-2.1-or-later
// Running steps until they are decided (docs/ORDERING.md, rule 5).
#include "format/object_names.h"
#include "instance/instance.h"

namespace lccfs {

namespace {

bool is_unknown_time_out(const Error& error) {
  return error.code == ErrorCode::timed_out && error.outcome == Outcome::unknown;
}

bool creates(const MetaTxn& txn) {
  return !txn.mutations.empty() && std::holds_alternative<mutation::CreateExclusive>(txn.mutations.front());
}

Error fenced_error() { return {ErrorCode::fenced, "this client was fenced", Outcome::definite}; }

}  // namespace

Error Instance::Fate::noted(Error error) {
  if (error.code == ErrorCode::fenced) become_fenced(error.context);
  return error;
}

namespace {

/// A mount waits for its store.
template <class Fate>
void query_until_answered(const std::shared_ptr<Fate>& fate, ObjectStore& store, MetaRead read,
                          ObjectStore::QueryDone done) {
  if (fate->fenced) return done(std::unexpected(fenced_error()));
  auto again = read;
  store.query_async(std::move(read), [fate, &store, again = std::move(again),
                                      done = std::move(done)](Result<MetaSnapshot> answer) mutable {
    if (answer) return done(std::move(answer));
    if (answer.error().code == ErrorCode::timed_out) {
      return query_until_answered(fate, store, std::move(again), std::move(done));
    }
    done(std::unexpected(fate->noted(std::move(answer).error())));
  });
}

}  // namespace

void Instance::query_async(MetaRead read, ObjectStore::QueryDone done) const {
  query_until_answered(fate_, *store_, std::move(read), std::move(done));
}

objects::Query Instance::reader() const {
  return [fate = fate_, store = store_.get()](MetaRead read, ObjectStore::QueryDone done) {
    query_until_answered(fate, *store, std::move(read), std::move(done));
  };
}

Result<MetaSnapshot> Instance::query(MetaRead read) const { return objects::read_once(reader(), std::move(read)); }

Result<Applied> Instance::apply_until_known(const MetaTxn& txn) {
  for (;;) {
    if (fenced()) return std::unexpected(fenced_error());
    auto applied = store_->apply(txn);
    if (applied) return applied;
    if (is_unknown_time_out(applied.error())) continue;
    return std::unexpected(fate_->noted(std::move(applied).error()));
  }
}

Result<Applied> Instance::run_repeatable(MetaTxn txn) {
  if (!creates(txn)) txn.guards.insert(txn.guards.begin(), Guard(guard::ObjectExists{}));
  return apply_until_known(txn);
}

Result<bool> Instance::step_was_applied(const std::string& object, std::uint64_t number) {
  const auto key = format::step_number_key(id_);
  LCCFS_TRY(const auto snapshot, query({.object = object, .ranges = {}, .keys = {key}}));
  const auto found = snapshot.keys.find(key);
  return found != snapshot.keys.end() && found->second == format::step_number_value(number);
}

Result<StepResult> Instance::run(MetaTxn txn) {
  const Operation numbered_steps(*this);  // l/<me> is not over while its step may be in flight
  const ObjectLocks::Holding one_in_flight(step_locks_, txn.object);
  txn.guards.insert(txn.guards.begin(), Guard(guard::ObjectExists{}));
  const auto key = format::step_number_key(id_);
  for (;;) {
    if (fenced()) return std::unexpected(fenced_error());
    const auto number = next_number_.fetch_add(1);
    MetaTxn numbered = txn;
    numbered.guards.emplace_back(guard::KeyLess{key, format::step_number_value(number)});
    numbered.mutations.emplace_back(mutation::SetKey{key, format::step_number_value(number)});
    auto applied = store_->apply(std::move(numbered));
    if (applied) return StepResult{Decided::applied, applied->version};
    Error error = std::move(applied).error();
    if (error.code == ErrorCode::not_found || error.code == ErrorCode::fenced)
      return std::unexpected(fate_->noted(error));
    // The step may have been applied by an earlier run whatever this answer says, "no space" included.
    auto was_applied = step_was_applied(txn.object, number);
    if (!was_applied) {
      was_applied.error().outcome = Outcome::unknown;
      return std::unexpected(fate_->noted(std::move(was_applied).error()));
    }
    if (*was_applied) return StepResult{Decided::applied, 0};
    if (error.code == ErrorCode::guard_failed) return StepResult{Decided::refused, 0};
    if (is_unknown_time_out(error)) continue;
    return std::unexpected(fate_->noted(std::move(error)));
  }
}

}  // namespace lccfs
