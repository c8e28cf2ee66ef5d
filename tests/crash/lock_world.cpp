// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/lock_world.h"

#include <fcntl.h>

#include <thread>

#include "check/check.h"
#include "format/object_names.h"
#include "lccfs/volume.h"
#include "support/file_calls.h"
#include "support/lock_calls.h"

namespace lccfs::crash {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::need;
using What = LockAct::What;

namespace {

/// More than a busy machine needs: there, the fake time runs away from those that look for a dead client once a second,
/// and they begin anew.
constexpr int tries = 1250;
/// The machine's time before the next try. Where many have been in vain, they let the others catch up.
milliseconds pause_before(int next) { return milliseconds(5 + std::min(next / 2, 50)); }

struct Base {
  Base() {
    test::FakeClock clock;
    need(make_volume(*cluster->new_client(), clock, {}));
    auto fs = need(mount_volume(cluster->new_client(), clock, {}));
    const auto file = test::create_file(*fs, "f");
    need(test::write_at(*fs, file.handle, 0, std::string(1, '\0')));
    test::close_file(*fs, file.handle);
    need(fs->unmount());
    ino = file.ino;
  }
  std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make();
  Ino ino;
};
const Base& the_base() {
  static const Base base;
  return base;
}

bool is_answered(const std::future<Result<>>& answer, milliseconds within) {
  return answer.wait_for(within) == std::future_status::ready;
}

}  // namespace

std::string text_of(const LockAct& act) {
  const std::string who(1, act.client);
  switch (act.what) {
    case What::lock:
      return text_of(act.client, act.request) + (act.request.waits ? " (waits)" : "");
    case What::begin_to_wait:
      return text_of(act.client, act.request) + " (begins to wait)";
    case What::get_it:
      return who + " gets it";
    case What::close_process:
      return who + std::to_string(act.request.owner) + " ends";
    case What::close:
      return who + " closes";
    case What::increment:
      return who + " adds one";
    case What::die:
      return who + " dies";
  }
  return "?";
}

bool QuickClock::wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                          std::chrono::nanoseconds duration, const std::function<bool()>& done) {
  if (changed.wait_for(lock, std::min<std::chrono::nanoseconds>(duration, milliseconds(8)), done)) return true;
  advance(duration);
  return false;
}

LockWorld::LockWorld(const FileSystemOptions& options, std::string clients)
    : options_(options), cluster_(the_base().cluster->clone()), inode_object_(format::inode_object(the_base().ino)) {
  clock_.advance(seconds(10));  // no time that is noted is that of the beginning
  for (const char name : clients) join(name);
}

void LockWorld::join(char name) {
  Party party{.name = name, .store = cluster_->new_client(), .clock = nullptr, .fs = nullptr};
  party.clock = std::make_unique<test::ClientClock>(clock_, party.store);
  party.fs = need(mount_volume(party.store, *party.clock, options_));
  party.handle = test::open_again(*party.fs, the_base().ino);
  parties_.insert_or_assign(name, std::move(party));
  set_script(name, nullptr);
}

void LockWorld::set_script(char client, ScriptedClient::Hook script) {
  party(client).store->set_hook([this, script = std::move(script)](const StepInfo& info) {
    if (info.kind == StepKind::fence) judge_fence(info);
    return script ? script(info) : Fault{};
  });
}

/// Only the dead are fenced.
void LockWorld::judge_fence(const StepInfo& info) {
  for (auto& [name, party] : parties_) {
    if (party.store->identity() != info.object) continue;
    if (!party.store->crashed()) model_.wrong(std::string(1, name) + " lives, and was fenced");
    model_.expires(name);
  }
}

// ---- what clients do

void LockWorld::time_passes() {
  const std::lock_guard lock(time_mutex_);
  clock_.advance(seconds(1));
  for (auto& [name, party] : parties_) {
    if (!party.store->crashed()) party.fs->tick();
  }
  if (is_over_) let_all_arrive();
}

void LockWorld::let_all_arrive() {
  for (auto& [name, party] : parties_) {
    party.store->land_late_steps();
    party.store->release_all();
  }
}

Result<> LockWorld::await(std::future<Result<>> answer, const std::string& what) {
  for (int i = 0; i < tries; ++i) {
    if (is_answered(answer, pause_before(i))) return answer.get();
    time_passes();
  }
  model_.wrong(what + " is not answered");
  for (auto& [name, party] : parties_) party.store->crash();
  for (auto& [name, party] : parties_) party.fs->interrupt_all_locks();
  return answer.get();
}

/// What has come of a request.
void LockWorld::note(Party& party, const LockRequest& request, const Result<>& done) {
  if (party.store->crashed()) return;
  if (done) return model_.granted(party.name, request);
  // After an error the owner has the weaker of both: less is an unlock, which never fails.
  if (done.error().code == ErrorCode::io) return;
  model_.refused(party.name, request);
  if (done.error().code != ErrorCode::would_block)
    model_.wrong(text_of(party.name, request) + ": " + done.error().context);
}

void LockWorld::lock(Party& party, LockRequest request) {
  request.handle = party.handle;
  model_.begins(party.name, request);
  note(party, request, await(test::begin_lock(*party.fs, request), text_of(party.name, request)));
}

void LockWorld::close_process(Party& party, std::uint64_t owner) {
  for (auto request : model_.owners(party.name)) {
    request.type = LockType::none;
    if (request.kind == LockKind::range && request.owner == owner) model_.begins(party.name, request);
  }
  party.fs->drop_range_locks(party.handle, owner);
}

void LockWorld::close(Party& party) {
  for (auto request : model_.owners(party.name)) {
    request.type = LockType::none;
    model_.begins(party.name, request);
  }
  party.fs->release(party.handle);
  if (auto again = party.fs->open({}, the_base().ino, O_RDWR)) party.handle = again->handle;
}

/// Under a lock: what others have added is seen.
void LockWorld::increment(Party& party) {
  auto text = test::read_at(*party.fs, party.handle, 0, 1);
  if (!text || text->size() != 1) return model_.wrong("the number cannot be read");
  ++increments_;
  ++text->front();
  const auto written = test::write_at(*party.fs, party.handle, 0, *text);
  if (!written || !party.fs->fsync(party.handle, false)) model_.wrong("the number cannot be stored");
}

void LockWorld::perform(const LockAct& act) {
  auto& who = party(act.client);
  if (who.store->crashed()) return;
  switch (act.what) {
    case What::lock:
      return lock(who, act.request);
    case What::begin_to_wait:
      who.waits_for = test::waiting(act.request);
      who.waits_for.handle = who.handle;
      model_.begins(who.name, who.waits_for);
      who.waits = test::begin_lock(*who.fs, who.waits_for);
      return;
    case What::get_it:
      return note(who, who.waits_for, await(std::move(who.waits), text_of(who.name, who.waits_for)));
    case What::close_process:
      return close_process(who, act.request.owner);
    case What::close:
      return close(who);
    case What::increment:
      return increment(who);
    case What::die:
      return who.store->crash();
  }
}

// ---- the judge

/// A request of an owner that has nothing else: granted if nobody is in the way, before long; else refused.
void LockWorld::probe(Party& party, LockRequest request) {
  request.handle = party.handle;
  for (int i = 0; i < tries && model_.all_wrong().empty(); ++i) {
    const bool was_blocked = model_.is_blocked(party.name, request);
    model_.begins(party.name, request);
    const auto done = await(test::begin_lock(*party.fs, request), "a probe");
    if (party.store->crashed()) return;
    note(party, request, done);
    if (done) {
      request.type = LockType::none;
      model_.begins(party.name, request);
      return static_cast<void>(await(test::begin_lock(*party.fs, request), "an unlock"));
    }
    if (was_blocked && model_.is_blocked(party.name, request) && i > 0) return;
    std::this_thread::sleep_for(pause_before(i));
    time_passes();
  }
  if (!model_.all_wrong().empty()) return;  // one that fails takes long, and is enough
  model_.wrong(text_of(party.name, request) + " is refused, and nobody is in the way");
}

void LockWorld::probe_all() {
  constexpr std::uint64_t prober = 99;
  for (auto& [name, party] : parties_) {
    if (party.store->crashed()) continue;
    for (const std::uint64_t byte : {0U, 4U, 9U}) {
      probe(party, test::shared(party.handle, prober, byte, byte));
      probe(party, test::exclusive(party.handle, prober, byte, byte));
    }
    probe(party, test::whole_file(party.handle, prober));
  }
}

void LockWorld::drop_all() {
  for (auto& [name, party] : parties_) {
    if (party.store->crashed()) continue;
    for (auto request : model_.owners(name)) {
      request.type = LockType::none;
      lock(party, request);
    }
  }
}

/// By a client that comes after all others.
void LockWorld::take_all() {
  join('D');
  auto& last = party('D');
  for (auto request : {test::exclusive(last.handle, 1), test::whole_file(last.handle, 1)}) {
    lock(last, test::waiting(request));
    if (const auto found = test::read_at(*last.fs, last.handle, 0, 1);
        !found || *found != std::string(1, static_cast<char>(increments_.load()))) {
      model_.wrong("the number in the file is not " + std::to_string(increments_));
    }
  }
  drop_all();
}

void LockWorld::expect_no_keys() {
  cluster_->with_objects([this](scripted::Objects& objects) {
    for (const auto& [key, value] : objects.metadata().at(inode_object_).keys) {
      if (key.starts_with("k/")) model_.wrong("left over: " + key);
    }
  });
}

void LockWorld::end() {
  for (auto& [name, party] : parties_) {
    if (!party.store->crashed() && !party.fs->unmount()) model_.wrong(std::string(1, name) + " cannot unmount");
  }
  parties_.clear();
  for (const auto& finding : need(check::check_volume(*cluster_->new_client()))) {
    model_.wrong(check::text_of(finding));
  }
}

std::string LockWorld::conclude() {
  // A step that was begun before may be held only now.
  for (auto& [name, party] : parties_) set_script(name, nullptr);
  is_over_ = true;
  let_all_arrive();
  probe_all();
  drop_all();
  take_all();
  let_all_arrive();
  expect_no_keys();
  end();
  return model_.all_wrong();
}

}  // namespace lccfs::crash
