// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scripted/scripted_store.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "scripted/client_step.h"
#include "scripted/watches.h"

namespace lccfs {

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
  std::shared_ptr<ScriptedClient> client(new ScriptedClient(shared_from_this(), ++clients_));
  living_[clients_] = client.get();
  return client;
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

ScriptedClient::ScriptedClient(std::shared_ptr<ScriptedCluster> cluster, std::uint64_t number)
    : cluster_(std::move(cluster)),
      number_(number),
      identity_("scripted." + std::to_string(number)),
      fences_known_(cluster_->newest_fence()) {}

ScriptedClient::~ScriptedClient() {
  Answers answers;
  {
    std::lock_guard lock(cluster_->mutex_);
    crash(answers);
    cluster_->living_.erase(number_);
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
  info.read = nullptr;
  auto call = std::make_shared<Call>(std::move(done), Result<T>{});
  Step step;
  step.info = std::move(info);
  step.execute = [call, execute = std::move(execute)] { call->result = execute(); };
  step.answer = [call] { call->done(std::move(call->result)); };
  step.refuse = [call](Error error) { call->done(std::unexpected(std::move(error))); };
  send(std::move(step), fault);
}

// ---- ObjectStore

void ScriptedClient::apply_async(MetaTxn txn, ApplyDone done) {
  auto kept = std::make_shared<const MetaTxn>(std::move(txn));
  StepInfo info{StepKind::apply, kept->object, *kept->step ? kept->step : "apply", kept.get()};
  submit<Applied>(
      std::move(info), [this, kept] { return cluster_->objects_.apply(*kept); }, std::move(done));
}

void ScriptedClient::query_async(MetaRead read, QueryDone done) {
  auto kept = std::make_shared<const MetaRead>(std::move(read));
  StepInfo info{.kind = StepKind::query, .object = kept->object, .step = "query", .read = kept.get()};
  submit<MetaSnapshot>(
      std::move(info), [this, kept] { return cluster_->objects_.query(*kept, cluster_->options_.page_limit); },
      std::move(done));
}

void ScriptedClient::read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) {
  submit<std::size_t>(
      {StepKind::read, object, "read"},
      [this, object, offset, target]() -> Result<std::size_t> {
        return cluster_->objects_.read(object, offset, target);
      },
      std::move(done));
}

void ScriptedClient::write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) {
  submit<void>(
      {StepKind::write, object, "write"},
      [this, object, pieces = std::move(pieces)]() -> Result<> {
        for (const auto& [offset, bytes] : pieces)
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

void ScriptedClient::zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) {
  submit<void>(
      {StepKind::zero, object, "zero"},
      [this, object, offset, size_bytes]() -> Result<> {
        cluster_->objects_.zero(object, offset, size_bytes);
        return {};
      },
      std::move(done));
}

/// The target's storage reads the source, and tells it of the fences that it was told of.
void ScriptedClient::copy_data(std::string source, std::string target, DataDone done) {
  submit<void>(
      {.kind = StepKind::copy, .object = target, .step = "copy", .source = source},
      [this, source, target]() -> Result<> {
        tell_of_fences(source);
        if (cluster_->objects_.copy(source, target)) return {};
        return failure(ErrorCode::not_found, source + ": no such object");
      },
      std::move(done));
}

void ScriptedClient::data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes,
                                  ExtentsDone done) {
  submit<std::vector<DataExtent>>(
      {StepKind::extents, object, "extents"},
      [this, object, offset, size_bytes]() -> Result<std::vector<DataExtent>> {
        return cluster_->objects_.extents(object, offset, size_bytes);
      },
      std::move(done));
}

namespace {

/// The names after `after`, up to `last`; empty: from the first, to the last. As text: <size of last>:<last><after>
struct ListCursor {
  std::string after, last;

  std::string text() const { return std::to_string(last.size()) + ':' + last + after; }

  static std::optional<ListCursor> parse(const std::string& text) {
    if (text.empty()) return ListCursor{};
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    const std::size_t from = static_cast<std::size_t>(end - text.data()) + 1;
    if (error != std::errc{} || from > text.size() || *end != ':' || size > text.size() - from) return std::nullopt;
    return ListCursor{text.substr(from + size), text.substr(from, size)};
  }
};

}  // namespace

std::set<std::string> ScriptedClient::names() const {
  std::set<std::string> names;
  for (const auto& [name, object] : cluster_->objects_.metadata()) names.insert(name);
  for (const auto& [name, object] : cluster_->objects_.data()) names.insert(name);
  return names;
}

Result<ListPage> ScriptedClient::list(std::string cursor) {
  std::unique_lock lock(cluster_->mutex_);
  wait_to_reach(lock, ScriptedCluster::all_objects);
  if (dead_) return std::unexpected(dead_error("list"));
  const auto from = ListCursor::parse(cursor);
  if (!from) return failure(ErrorCode::invalid, "not a cursor of a listing: " + cursor);
  const auto all = names();
  const auto end = from->last.empty() ? all.end() : all.upper_bound(from->last);
  ListPage page;
  for (auto next = all.upper_bound(from->after); next != end; ++next) {
    if (page.names.size() == cluster_->options_.page_limit) {
      page.next_cursor = ListCursor{page.names.back(), from->last}.text();
      break;
    }
    page.names.push_back(*next);
  }
  return page;
}

Result<std::vector<std::string>> ScriptedClient::list_starts(unsigned parts) {
  std::unique_lock lock(cluster_->mutex_);
  wait_to_reach(lock, ScriptedCluster::all_objects);
  if (dead_) return std::unexpected(dead_error("list"));
  const auto all = names();
  const std::size_t part_size = all.size() / std::max(parts, 1U) + 1;
  std::vector<std::string> starts;
  ListCursor part;
  std::size_t taken = 0;
  for (const auto& name : all) {
    if (++taken % part_size != 0) continue;
    part.last = name;
    starts.push_back(part.text());
    part.after = name;
  }
  starts.push_back(ListCursor{part.after, ""}.text());
  return starts;
}

Result<Capacity> ScriptedClient::capacity() {
  std::unique_lock lock(cluster_->mutex_);
  wait_to_reach(lock, ScriptedCluster::all_objects);
  if (dead_) return std::unexpected(dead_error("capacity"));
  const auto& data = cluster_->objects_.data();
  std::uint64_t used_bytes = 0;
  for (const auto& [name, bytes] : data) used_bytes += bytes.size();
  const auto& options = cluster_->options_;
  const std::uint64_t objects = cluster_->objects_.metadata().size() + data.size() + options.other_objects;
  Capacity capacity{options.total_bytes, options.total_bytes - std::min(options.total_bytes, used_bytes), objects,
                    options.metadata_total_bytes, options.metadata_total_bytes};
  if (options.most_objects) capacity.quota = {*options.most_objects, *options.most_objects - objects};
  return capacity;
}

Result<> ScriptedClient::use_data_pool(const std::string& name) {
  if (!cluster_->options_.pools.contains(name)) return failure(ErrorCode::not_found, "no such pool: " + name);
  return {};
}

// ---- fences

Result<> ScriptedClient::control_step(const StepInfo& info, const std::function<Result<>()>& act) {
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

void ScriptedClient::forbid_fencing() {
  const std::lock_guard lock(cluster_->mutex_);
  may_fence_ = false;
}

Result<> ScriptedClient::check_may_fence() {
  const std::lock_guard lock(cluster_->mutex_);
  return may_fence_ ? Result<>{} : failure(ErrorCode::permission_denied, "this client may not fence");
}

Result<> ScriptedClient::fence(const Bytes& identity) {
  LCCFS_CHECK(check_may_fence());
  return control_step({StepKind::fence, identity, "fence"}, [&]() -> Result<> {
    ScriptedCluster::Watches lost;
    {
      std::unique_lock lock(cluster_->mutex_);
      wait_to_reach(lock, ScriptedCluster::monitors);
      if (dead_) return std::unexpected(dead_error("fence " + identity));
      if (!identity.starts_with("scripted.")) return failure(ErrorCode::invalid, "no client's identity: " + identity);
      cluster_->fenced_at_.try_emplace(identity, cluster_->newest_fence() + 1);
      fences_known_ = cluster_->newest_fence();
      lost = cluster_->take_watches(identity, [](const std::string&) { return true; });
    }
    cluster_->tell_lost(lost, {ErrorCode::fenced, "this client is fenced"});
    return {};
  });
}

Result<> ScriptedClient::sync_fences() {
  std::unique_lock lock(cluster_->mutex_);
  wait_to_reach(lock, ScriptedCluster::monitors);
  if (dead_) return std::unexpected(dead_error("sync fences"));
  fences_known_ = cluster_->newest_fence();
  return {};
}

}  // namespace lccfs
