// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/fence.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/rados/errors.h"
#include "store/rados/rights.h"

namespace lccfs::rados {

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

namespace {

class LookStep : public Step {
 public:
  LookStep(InFlight& in_flight, Witnesses& witnesses) : Step(in_flight), witnesses_(witnesses) {}
  void build(librados::ObjectReadOperation& operation) { operation.list_watchers(&watchers_, &result_); }

 private:
  void finish(int status, std::uint64_t) override {
    if (status >= 0 && result_ >= 0) witnesses_.note(watchers_);
  }

  Witnesses& witnesses_;
  std::list<obj_watch_t> watchers_;
  int result_ = 0;
};

}  // namespace

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
  if (reach_ == Reach::volume) return;
  librados::ObjectReadOperation operation;
  auto step = std::make_unique<LookStep>(in_flight_, witnesses_);
  step->build(operation);
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return connection_.metadata().aio_operate(object, completion, &operation, nullptr);
  });
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
