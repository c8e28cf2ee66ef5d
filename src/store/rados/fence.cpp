// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/fence.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>

#include "store/rados/errors.h"
#include "store/rados/rights.h"

namespace lccfs::rados {

namespace {
constexpr std::chrono::seconds longest_look{10};
}  // namespace

void Witnesses::note(const std::list<obj_watch_t>& watchers) {
  const Lock lock(mutex_);
  for (const obj_watch_t& watcher : watchers) {
    const std::string address(watcher.addr, strnlen(watcher.addr, sizeof watcher.addr));
    seen_[static_cast<std::uint64_t>(watcher.watcher_id)].emplace(without_protocol(address));
  }
  while (seen_.size() > most_clients) seen_.erase(seen_.begin());
}

bool Witnesses::have_seen(const Identity& client) const {
  const Lock lock(mutex_);
  const auto found = seen_.find(client.instance_id);
  return found != seen_.end() && std::ranges::all_of(client.addresses, [&](const std::string& address) {
           return found->second.contains(std::string(without_protocol(address)));
         });
}

/// Nothing waits for it at the end: the object may not answer.
class Fences::LookStep : public Step {
 public:
  LookStep(RequestsInFlight& in_flight, Witnesses& witnesses, LookDone done)
      : Step(in_flight, AtTheEnd::is_dropped), witnesses_(witnesses), done_(std::move(done)) {}
  void build(librados::ObjectReadOperation& operation) { operation.list_watchers(&watchers_, &result_); }

 private:
  void finish(int status, std::uint64_t) override {
    const int outcome = status < 0 ? status : result_;
    if (outcome >= 0) witnesses_.note(watchers_);
    if (done_) done_(outcome, watchers_);
  }

  Witnesses& witnesses_;
  LookDone done_;
  Watchers watchers_;
  int result_ = 0;
};

void Fences::look(const std::string& object, LookDone done) {
  librados::ObjectReadOperation operation;
  auto step = std::make_unique<LookStep>(in_flight_, witnesses_, std::move(done));
  step->build(operation);
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return connection_.metadata().aio_operate(object, completion, &operation, nullptr);
  });
}

Result<> Fences::check_permitted() {
  LCCFS_CHECK(check_may_fence(connection_));
  key_reaches_further();
  return {};
}

bool Fences::key_reaches_further() {
  if (reach_ == Reach::not_known) reach_ = reaches_beyond_volume(connection_) ? Reach::further : Reach::volume;
  return reach_ == Reach::further;
}

void Fences::look_at_watchers(const std::string& object) {
  if (reach_ != Reach::volume) look(object, nullptr);
}

Result<Presence> Fences::presence(const std::string& object, const Bytes& identity) {
  LCCFS_TRY(const Identity client, parse_identity(identity));
  std::promise<Result<Presence>> promise;
  auto answer = promise.get_future();
  const auto seen = [object, id = client.instance_id](int status, const Watchers& watchers) -> Result<Presence> {
    if (status == -ENOENT) return Presence::absent;
    if (status < 0) return std::unexpected(to_error(status, "watchers of " + object, Effect::reads));
    const auto is_client = [id](const auto& one) { return static_cast<std::uint64_t>(one.watcher_id) == id; };
    return std::ranges::any_of(watchers, is_client) ? Presence::watching : Presence::absent;
  };
  look(object, [seen, promise = std::move(promise)](int status, const Watchers& watchers) mutable {
    promise.set_value(seen(status, watchers));
  });
  if (answer.wait_for(longest_look) == std::future_status::ready) return answer.get();
  return failure(ErrorCode::timed_out, "watchers of " + object + ": no answer for ten seconds");
}

bool Fences::is_barred(const Identity& client) {
  librados::bufferlist answer;
  std::string message;
  if (connection_.cluster().mon_command(R"({"prefix": "osd blocklist ls", "format": "json"})", {}, &answer, &message) <
      0)
    return false;
  const std::string list = answer.to_str();
  return std::ranges::all_of(client.addresses, [&](const std::string& address) {
    return list.find('"' + std::string(without_protocol(address)) + '"') != std::string::npos;
  });
}

Result<> Fences::fence(const Bytes& identity) {
  LCCFS_TRY(const Identity client, parse_identity(identity));
  if (!witnesses_.have_seen(client) && key_reaches_further()) {
    if (is_barred(client)) return sync();
    return failure(ErrorCode::permission_denied,
                   "our key reaches further than this volume, and the client was not seen with the address that its "
                   "record has; if it is this volume's and gone, run: " +
                       commands_for(client));
  }
  for (const std::string& address : client.addresses) {
    const int status = connection_.cluster().blocklist_add(address, blocklist_seconds);
    if (status == -EACCES || status == -EPERM)
      return failure(ErrorCode::permission_denied,
                     "our key may not; somebody who may should run: " + commands_for(client));
    if (status < 0) return std::unexpected(to_error(status, "fence of " + address, Effect::writes));
  }
  return sync();
}

Result<> Fences::sync() {
  const int status = connection_.cluster().wait_for_latest_osdmap();
  if (status < 0) return std::unexpected(to_error(status, "wait for the latest OSD map", Effect::reads));
  return {};
}

}  // namespace lccfs::rados
