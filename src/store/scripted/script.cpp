// SPDX-License-Identifier: LGPL-2.1-or-later
// What a script does to a client's steps: hold, repeat, lose, cut.
#include <algorithm>
#include <set>

#include "store/scripted/client_step.h"
#include "store/scripted/watches.h"

namespace lccfs {

bool StepInfo::mutates() const {
  switch (kind) {
    case StepKind::apply:
    case StepKind::write:
    case StepKind::truncate:
    case StepKind::remove:
    case StepKind::fence:
      return true;
    case StepKind::query:
    case StepKind::read:
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
      case StepKind::write:
        ++counts_.writes;
        break;
      case StepKind::truncate:
        ++counts_.truncates;
        break;
      case StepKind::remove:
        ++counts_.removes;
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
    if (behind_another && !dead_) {
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
  std::uint64_t& known = cluster_->fences_known_[object];
  known = std::max(known, fences_known_);
  return {};
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
  return cluster_->changed_.wait_for(lock, std::chrono::seconds(10), [&] {
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

void ScriptedClient::release_all() {
  release_where([](std::size_t) { return true; });
}

void ScriptedClient::run_unblocked(Answers& answers) {
  std::list<Parked> earlier = std::move(parked_);
  parked_.clear();
  std::set<std::string> blocked;
  while (!earlier.empty()) {
    Parked next = std::move(earlier.front());
    earlier.pop_front();
    const std::string object = next.step.info.object;
    if (next.held || blocked.contains(object)) {
      parked_.push_back(std::move(next));
    } else {
      const std::size_t before = parked_.size();
      perform(std::move(next.step), next.fault, answers);
      if (parked_.size() == before) continue;
    }
    blocked.insert(object);
  }
}

// ---- death

void ScriptedClient::crash(Answers& answers) {
  if (crashed_) return;
  crashed_ = true;
  dead_ = true;
  for (Parked& parked : parked_) {
    if (parked.step.info.mutates()) late_.push_back({parked.step.info, parked.step.execute, {}, {}, {}});
    answers.push_back(
        [step = std::move(parked.step), error = dead_error("in flight")]() mutable { step.refuse(std::move(error)); });
  }
  parked_.clear();
  if (cluster_->options_.dead_clients_watch) {
    cluster_->make_deaf(identity_, true);
  } else {
    cluster_->take_watches(identity_);
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

void ScriptedClient::lose_watches() {
  ScriptedCluster::Watches lost;
  {
    std::lock_guard lock(cluster_->mutex_);
    lost = cluster_->take_watches(identity_);
  }
  ScriptedCluster::tell_lost(lost, {ErrorCode::timed_out, "the store has lost this watch"});
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
