// SPDX-License-Identifier: LGPL-2.1-or-later
// What a script does to a client's steps: hold, repeat, lose, cut.
#include <algorithm>
#include <set>

#include "scripted/client_step.h"
#include "scripted/watches.h"

namespace lccfs {

bool StepInfo::mutates() const {
  switch (kind) {
    case StepKind::apply:
    case StepKind::write:
    case StepKind::truncate:
    case StepKind::remove:
    case StepKind::zero:
    case StepKind::copy:
    case StepKind::fence:
      return true;
    case StepKind::query:
    case StepKind::read:
    case StepKind::extents:
    case StepKind::notify:
      return false;
  }
  return false;
}

const char* describe(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::none:
      return "no fault";
    case Fault::Kind::not_applied_and_crash:
      return "not applied, crash";
    case Fault::Kind::applied_and_crash:
      return "applied, crash";
    case Fault::Kind::crash_and_land_later:
      return "crash, landing later";
    case Fault::Kind::applied_twice:
      return "applied twice";
    case Fault::Kind::run_again_later:
      return "run again later";
    case Fault::Kind::hold:
      return "held";
    case Fault::Kind::lost_answer_applied:
      return "applied, answer lost";
    case Fault::Kind::lost_answer_not_applied:
      return "not applied, answer lost";
    case Fault::Kind::fail:
      return "failed";
  }
  return "?";
}

Fault ScriptedClient::begin(const StepInfo& info) {
  Hook hook;
  {
    std::lock_guard lock(cluster_->mutex_);
    if (dead_) return {};
    switch (info.kind) {
      case StepKind::apply:
        ++counts_.applies;
        break;
      case StepKind::query:
        ++counts_.queries;
        break;
      case StepKind::read:
        ++counts_.reads;
        break;
      case StepKind::extents:
        ++counts_.extents;
        break;
      case StepKind::write:
        ++counts_.writes;
        break;
      case StepKind::truncate:
        ++counts_.truncates;
        break;
      case StepKind::remove:
        ++counts_.removes;
        break;
      case StepKind::zero:
        ++counts_.zeros;
        break;
      case StepKind::copy:
        ++counts_.copies;
        break;
      case StepKind::notify:
        ++counts_.notifies;
        break;
      case StepKind::fence:
        ++counts_.fences;
        break;
    }
    trace_.push_back(info.step + " " + info.object);
    hook = hook_;
  }
  return hook ? hook(info) : Fault{};
}

void ScriptedClient::send(Step step, Fault fault) {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    const bool behind_another = std::ranges::any_of(
        parked_, [&](const Parked& earlier) { return earlier.step.info.object == step.info.object; });
    if ((behind_another || !reaches(step.info)) && !dead_) {
      park(std::move(step), fault, /*held=*/false);
    } else {
      perform(std::move(step), fault, answers);
    }
  }
  for (auto& answer : answers) answer();
}

void ScriptedClient::perform(Step step, Fault fault, Answers& answers) {
  auto finish = [&](std::optional<Error> error = std::nullopt) {
    if (!error) error = step.barred;
    answers.push_back([step = std::move(step), error = std::move(error)]() mutable {
      if (error) {
        step.refuse(std::move(*error));
      } else {
        step.answer();
      }
    });
  };
  const std::string what = step.info.step + " " + step.info.object;
  if (dead_) return finish(dead_error(what));
  switch (fault.kind) {
    case Fault::Kind::none:
      run(step);
      return finish();
    case Fault::Kind::applied_twice:
      run(step);
      run(step);
      return finish();
    case Fault::Kind::run_again_later:
      run(step);
      return park(std::move(step), {}, /*held=*/true);
    case Fault::Kind::hold:
      return park(std::move(step), {}, /*held=*/true);
    case Fault::Kind::lost_answer_applied:
      run(step);
      [[fallthrough]];
    case Fault::Kind::lost_answer_not_applied:
      return finish(Error{ErrorCode::timed_out, what + ": no answer", Outcome::unknown});
    case Fault::Kind::fail:
      return finish(Error{fault.code, what + ": refused by the script"});
    case Fault::Kind::applied_and_crash:
      run(step);
      break;
    case Fault::Kind::not_applied_and_crash:
    case Fault::Kind::crash_and_land_later:
      break;
  }
  crash(answers);
  if (fault.kind == Fault::Kind::crash_and_land_later && step.info.mutates())
    late_.push_back({step.info, step.execute, {}, {}, {}});
  finish(dead_error(what));
}

void ScriptedClient::run(Step& step) {
  if (auto allowed = touch(step.info.object); !allowed) {
    step.barred = allowed.error();
  } else {
    step.execute();
  }
}

Result<> ScriptedClient::touch(const std::string& object) {
  if (crashed_) return std::unexpected(dead_error(object));
  if (cluster_->barred(identity_, object)) dead_ = true;
  if (dead_) return std::unexpected(dead_error(object));
  tell_of_fences(object);
  return {};
}

void ScriptedClient::tell_of_fences(const std::string& object) {
  std::uint64_t& known = cluster_->fences_known_[object];
  known = std::max(known, fences_known_);
}

Error ScriptedClient::dead_error(const std::string& what) const {
  return {ErrorCode::fenced, what + (crashed_ ? ": this client has crashed" : ": this client is fenced"),
          Outcome::unknown};
}

// ---- steps that are kept waiting

void ScriptedClient::park(Step step, Fault fault, bool held) {
  parked_.push_back({std::move(step), fault, held});
  cluster_->changed_.notify_all();
}

std::vector<StepInfo> ScriptedClient::held() const {
  std::lock_guard lock(cluster_->mutex_);
  std::vector<StepInfo> infos;
  for (const Parked& parked : parked_)
    if (parked.held) infos.push_back(parked.step.info);
  return infos;
}

bool ScriptedClient::wait_for_held(std::size_t count) {
  std::unique_lock lock(cluster_->mutex_);
  return cluster_->changed_.wait_for(lock, std::chrono::minutes(1), [&] {
    return std::ranges::count_if(parked_, &Parked::held) >= static_cast<std::ptrdiff_t>(count);
  });
}

void ScriptedClient::release_where(const std::function<bool(std::size_t)>& chosen) {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    std::size_t place = 0;
    for (Parked& parked : parked_)
      if (parked.held && chosen(place++)) parked.held = false;
    run_unblocked(answers);
  }
  for (auto& answer : answers) answer();
}

void ScriptedClient::release(std::size_t place) {
  release_where([&](std::size_t candidate) { return candidate == place; });
}

void ScriptedClient::release_all() { run_held()(); }

std::move_only_function<void()> ScriptedClient::run_held() {
  Answers answers;
  const std::lock_guard lock(cluster_->mutex_);
  for (Parked& parked : parked_) parked.held = false;
  run_unblocked(answers);
  return [answers = std::move(answers)]() mutable {
    for (auto& answer : answers) answer();
  };
}

void ScriptedClient::run_unblocked(Answers& answers) {
  std::list<Parked> earlier = std::move(parked_);
  parked_.clear();
  std::set<std::string> blocked;
  while (!earlier.empty()) {
    Parked next = std::move(earlier.front());
    earlier.pop_front();
    const std::string object = next.step.info.object;
    if (next.held || blocked.contains(object) || (!dead_ && !reaches(next.step.info))) {
      parked_.push_back(std::move(next));
    } else {
      const std::size_t before = parked_.size();
      perform(std::move(next.step), next.fault, answers);
      if (parked_.size() == before) continue;
    }
    blocked.insert(object);
  }
}

// ---- objects that are away, clients that are cut off

bool ScriptedClient::reaches(const std::string& object) const {
  return !cluster_->untold_.contains(identity_) && !(cluster_->away_ && cluster_->away_(object));
}

void ScriptedClient::wait_to_reach(std::unique_lock<std::mutex>& lock, const std::string& object) {
  cluster_->changed_.wait(lock, [&] { return dead_ || reaches(object); });
}

/// An answer that has come while the client was cut off.
void ScriptedClient::wait_to_hear() {
  std::unique_lock lock(cluster_->mutex_);
  cluster_->changed_.wait(lock, [&] { return dead_ || !cluster_->untold_.contains(identity_); });
}

void ScriptedCluster::set_away(Away away) {
  ScriptedClient::Answers answers;
  {
    std::lock_guard lock(mutex_);
    away_ = std::move(away);
    for (const auto& [number, client] : living_) client->run_unblocked(answers);
    changed_.notify_all();
  }
  for (auto& answer : answers) answer();
}

void ScriptedClient::set_cut_off(bool cut_off) {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    auto& untold = cluster_->untold_;
    if (cut_off) {
      if (!crashed_) untold.try_emplace(identity_);
      return;
    }
    if (const auto mine = untold.find(identity_); mine != untold.end()) {
      answers = std::move(mine->second);
      untold.erase(mine);
    }
    run_unblocked(answers);
    cluster_->changed_.notify_all();
  }
  for (auto& answer : answers) answer();
}

// ---- death

void ScriptedClient::crash(Answers& answers) {
  if (crashed_) return;
  crashed_ = true;
  dead_ = true;
  cluster_->crashed_.insert(identity_);
  for (Parked& parked : parked_) {
    if (parked.step.info.mutates()) late_.push_back({parked.step.info, parked.step.execute, {}, {}, {}});
    answers.push_back(
        [step = std::move(parked.step), error = dead_error("in flight")]() mutable { step.refuse(std::move(error)); });
  }
  parked_.clear();
  cluster_->untold_.erase(identity_);
  cluster_->changed_.notify_all();
  if (cluster_->options_.dead_clients_watch) {
    cluster_->make_deaf(identity_, true);
  } else {
    cluster_->take_watches(identity_, [](const std::string&) { return true; });
  }
}

void ScriptedClient::crash() {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    crash(answers);
  }
  for (auto& answer : answers) answer();
}

bool ScriptedClient::crashed() const {
  std::lock_guard lock(cluster_->mutex_);
  return crashed_;
}

unsigned ScriptedClient::land_late_steps() {
  std::lock_guard lock(cluster_->mutex_);
  unsigned landed = 0;
  for (const Step& step : late_) {
    if (cluster_->barred(identity_, step.info.object)) continue;
    step.execute();
    ++landed;
  }
  late_.clear();
  return landed;
}

void ScriptedClient::set_deaf(bool deaf) {
  std::lock_guard lock(cluster_->mutex_);
  deaf_ = deaf;
  cluster_->make_deaf(identity_, deaf);
}

std::function<void()> ScriptedClient::lapse_watches(const std::function<bool(const std::string&)>& on) {
  std::lock_guard lock(cluster_->mutex_);
  return [cluster = cluster_, lost = cluster_->take_watches(identity_, on)] {
    cluster->tell_lost(lost, {ErrorCode::timed_out, "the store has lost this watch"});
  };
}

void ScriptedClient::set_hook(Hook hook) {
  std::lock_guard lock(cluster_->mutex_);
  hook_ = std::move(hook);
}

StepCounts ScriptedClient::counts() const {
  std::lock_guard lock(cluster_->mutex_);
  return counts_;
}

std::vector<std::string> ScriptedClient::trace() const {
  std::lock_guard lock(cluster_->mutex_);
  return trace_;
}

void ScriptedClient::reset_record() {
  std::lock_guard lock(cluster_->mutex_);
  counts_ = {};
  trace_.clear();
}

}  // namespace lccfs
