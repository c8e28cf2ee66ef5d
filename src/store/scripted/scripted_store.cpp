// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/scripted/scripted_store.h"

#include <algorithm>

#include "store/scripted/watches.h"

namespace lccfs {

/// A step on its way. `execute` is called with the cluster's lock, perhaps twice, perhaps never; then one of the
/// others, once, without it.
struct ScriptedClient::Step {
  StepInfo info;
  std::function<void()> execute;
  std::move_only_function<void()> answer;
  std::move_only_function<void(Error)> refuse;
  std::optional<Error> barred;  // by a fence, when it was executed
};

struct ScriptedClient::Parked {
  Step step;
  Fault fault;
  bool held;  // by the script; else it waits for its turn behind another one
};

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

std::shared_ptr<ScriptedCluster> ScriptedCluster::make(Options options) {
  return std::shared_ptr<ScriptedCluster>(new ScriptedCluster(std::move(options)));
}

std::shared_ptr<ScriptedCluster> ScriptedCluster::clone() const {
  std::lock_guard lock(mutex_);
  auto copy = make(options_);
  copy->objects_ = objects_;
  copy->fences_known_ = fences_known_;
  copy->fenced_at_ = fenced_at_;
  copy->clients_ = clients_;
  return copy;
}

std::shared_ptr<ScriptedClient> ScriptedCluster::new_client() {
  std::lock_guard lock(mutex_);
  return std::shared_ptr<ScriptedClient>(new ScriptedClient(shared_from_this(), ++clients_, newest_fence()));
}

void ScriptedCluster::with_objects(const std::function<void(scripted::Objects&)>& use) {
  std::lock_guard lock(mutex_);
  use(objects_);
}

bool ScriptedCluster::barred(const Bytes& identity, const std::string& object) const {
  auto fence = fenced_at_.find(identity);
  if (fence == fenced_at_.end()) return false;
  if (!options_.lazy_fences) return true;
  auto known = fences_known_.find(object);
  return known != fences_known_.end() && known->second >= fence->second;
}

ScriptedClient::ScriptedClient(std::shared_ptr<ScriptedCluster> cluster, std::uint64_t number,
                               std::uint64_t fences_known)
    : cluster_(std::move(cluster)), identity_("scripted." + std::to_string(number)), fences_known_(fences_known) {}

ScriptedClient::~ScriptedClient() {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    crash(answers);
  }
  for (auto& answer : answers) answer();
}

// ---- steps on objects

template <class T, class Execute>
void ScriptedClient::submit(StepInfo info, Execute execute, std::move_only_function<void(Result<T>)> done) {
  struct Call {
    std::move_only_function<void(Result<T>)> done;
    Result<T> result;
  };
  const Fault fault = begin(info);
  info.txn = nullptr;
  auto call = std::make_shared<Call>(std::move(done), Result<T>{});
  Step step;
  step.info = std::move(info);
  step.execute = [call, execute = std::move(execute)] { call->result = execute(); };
  step.answer = [call] { call->done(std::move(call->result)); };
  step.refuse = [call](Error error) { call->done(std::unexpected(std::move(error))); };
  send(std::move(step), fault);
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

// ---- ObjectStore

void ScriptedClient::apply_async(MetaTxn txn, ApplyDone done) {
  auto kept = std::make_shared<const MetaTxn>(std::move(txn));
  StepInfo info{StepKind::apply, kept->object, *kept->step ? kept->step : "apply", kept.get()};
  submit<Applied>(
      std::move(info), [this, kept] { return cluster_->objects_.apply(*kept); }, std::move(done));
}

void ScriptedClient::query_async(MetaRead read, QueryDone done) {
  StepInfo info{StepKind::query, read.object, "query"};
  auto execute = [this, read = std::move(read)] {
    return cluster_->objects_.query(read, cluster_->options_.page_limit);
  };
  submit<MetaSnapshot>(std::move(info), std::move(execute), std::move(done));
}

void ScriptedClient::read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) {
  submit<std::size_t>(
      {StepKind::read, object, "read"},
      [this, object, offset, target]() -> Result<std::size_t> {
        return cluster_->objects_.read(object, offset, target);
      },
      std::move(done));
}

void ScriptedClient::write_data(std::string object, std::uint64_t offset, SharedBytes bytes, DataDone done) {
  submit<void>(
      {StepKind::write, object, "write"},
      [this, object, offset, bytes = std::move(bytes)]() -> Result<> {
        cluster_->objects_.write(object, offset, {bytes.data, bytes.size_bytes});
        return {};
      },
      std::move(done));
}

void ScriptedClient::truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) {
  submit<void>(
      {StepKind::truncate, object, "truncate"},
      [this, object, size_bytes]() -> Result<> {
        cluster_->objects_.truncate(object, size_bytes);
        return {};
      },
      std::move(done));
}

void ScriptedClient::remove_data(std::string object, DataDone done) {
  submit<void>(
      {StepKind::remove, object, "remove"},
      [this, object]() -> Result<> {
        cluster_->objects_.remove(object);
        return {};
      },
      std::move(done));
}

Result<ListPage> ScriptedClient::list(std::string cursor) {
  std::lock_guard lock(cluster_->mutex_);
  if (dead_) return std::unexpected(dead_error("list"));
  std::set<std::string> names;
  for (const auto& [name, object] : cluster_->objects_.metadata()) names.insert(name);
  for (const auto& [name, object] : cluster_->objects_.data()) names.insert(name);
  ListPage page;
  for (auto next = names.upper_bound(cursor); next != names.end(); ++next) {
    if (page.names.size() == cluster_->options_.page_limit) {
      page.next_cursor = page.names.back();
      break;
    }
    page.names.push_back(*next);
  }
  return page;
}

Result<Capacity> ScriptedClient::capacity() {
  std::lock_guard lock(cluster_->mutex_);
  if (dead_) return std::unexpected(dead_error("capacity"));
  const auto& data = cluster_->objects_.data();
  std::uint64_t used_bytes = 0;
  for (const auto& [name, bytes] : data) used_bytes += bytes.size();
  const std::uint64_t total_bytes = cluster_->options_.total_bytes;
  return Capacity{total_bytes, total_bytes - std::min(total_bytes, used_bytes),
                  cluster_->objects_.metadata().size() + data.size()};
}

Result<> ScriptedClient::use_data_pool(const std::string& name) {
  if (!cluster_->options_.pools.contains(name)) return failure(ErrorCode::not_found, "no such pool: " + name);
  return {};
}

// ---- fences

Result<> ScriptedClient::control_step(StepInfo info, const std::function<Result<>()>& act) {
  const Fault fault = begin(info);
  if (fault.kind == Fault::Kind::fail) return failure(fault.code, info.step + " " + info.object + ": refused");
  if (fault.kind == Fault::Kind::not_applied_and_crash) crash();
  Result<> result = act();
  if (fault.kind == Fault::Kind::applied_and_crash) {
    crash();
    return std::unexpected(dead_error(info.step));
  }
  return result;
}

Result<> ScriptedClient::fence(const Bytes& identity) {
  return control_step({StepKind::fence, identity, "fence"}, [&]() -> Result<> {
    ScriptedCluster::Watches lost;
    {
      std::lock_guard lock(cluster_->mutex_);
      if (dead_) return std::unexpected(dead_error("fence " + identity));
      if (!identity.starts_with("scripted.")) return failure(ErrorCode::invalid, "no client's identity: " + identity);
      cluster_->fenced_at_.try_emplace(identity, cluster_->newest_fence() + 1);
      fences_known_ = cluster_->newest_fence();
      lost = cluster_->take_watches(identity);
    }
    ScriptedCluster::tell_lost(lost, {ErrorCode::fenced, "this client is fenced"});
    return {};
  });
}

Result<> ScriptedClient::sync_fences() {
  std::lock_guard lock(cluster_->mutex_);
  if (dead_) return std::unexpected(dead_error("sync fences"));
  fences_known_ = cluster_->newest_fence();
  return {};
}

}  // namespace lccfs
