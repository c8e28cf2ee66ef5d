// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/world.h"

#include <fcntl.h>

#include <set>

#include "check/check.h"
#include "crash/call.h"
#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/volume.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {

using test::need;

namespace {
constexpr unsigned lookups_that_take_a_lease = 4;

FileSystemOptions options_of(Writes writes, Memory memory) {
  FileSystemOptions options;
  if (holds_directories(memory)) options.lease_after_changes = 1;
  options.names_behind = memory == Memory::behind;
  if (writes != Writes::wait) options.dirty_limit_bytes = 1 << 20;
  if (writes == Writes::outlive_closes) options.idle_leases = 100;
  return options;
}
}  // namespace

const char* describe(Memory memory) {
  if (memory == Memory::cold) return "";
  if (memory == Memory::warm) return ", warm";
  return memory == Memory::leased ? ", leased" : ", behind";
}

Client::Client(ScriptedCluster& cluster, Clock& clock, Writes writes, Memory memory)
    : writes_(writes),
      memory_(memory),
      store_(cluster.new_client()),
      clock_(std::make_unique<test::ClientClock>(clock, store_)),
      file_system_(need(mount_volume(store_, *clock_, options_of(writes, memory)))),
      paths_(*file_system_) {}

void Client::prepare(Memory memory) {
  static_cast<void>(paths_.stay_at("/d"));  // if it is there
  if (memory == Memory::cold) return;
  for (const char* directory : {"/", "/d/", "/d/a/", "/d/b/"}) {
    if (holds_directories(memory)) hold(directory);
  }
  paths_.tree();
  if (holds_directories(memory)) {
    const auto root = need(store_->query({.object = format::inode_object(root_ino), .xattrs = true}));
    CHECK(root.xattrs.contains(format::xattr::lease));
  }
  // Names that are not there, too: what is remembered of them is the client's own.
  for (const char* name : {"/d/a", "/d/b", "/d/c"}) static_cast<void>(paths_.find(name));
}

/// Names are written behind where some were changed under the lease.
void Client::hold(const char* directory) {
  const auto none = directory + std::string("none");
  for (unsigned i = 0; i < lookups_that_take_a_lease; ++i) static_cast<void>(paths_.find(none));
  if (memory_ != Memory::behind || !paths_.make_file(none, 0600)) return;
  need(paths_.unlink(none));
  need(paths_.sync_directory(none.substr(0, std::max<std::size_t>(1, none.rfind('/')))));
}

void Client::prepare(const Scenario& scenario, Memory memory) {
  prepare(memory);
  if (scenario.held_open) open_file_ = need(paths_.open(*scenario.held_open, O_RDWR));
}

std::string Client::perform(const Call& call) { return stored(call.perform(paths_)); }

std::string Client::perform(const Act& act) { return stored(text_of(act(paths_))); }

/// The result of a call that changes names wherever the set-up has directories.
std::string Client::stored(std::string result) {
  if (memory_ != Memory::behind) return result;
  for (const char* directory : {"/", "/d", "/d/a", "/d/b"}) {
    if (const auto synced = paths_.sync_directory(directory); !synced && synced.error().code == ErrorCode::fenced) {
      return text_of(synced);
    }
  }
  return result;
}

void Client::unmount() {
  if (open_file_) file_system_->release(*open_file_);
  need(file_system_->unmount());
  file_system_.reset();
}

void Client::try_to_unmount() { has_left_in_peace_ = file_system_->unmount().has_value(); }

void Client::leave() {
  if (open_file_) file_system_->release(*open_file_);
  const auto left = file_system_->unmount();
  if (!left && left.error().code != ErrorCode::fenced) need(left);
  has_left_in_peace_ = left.has_value();
  file_system_.reset();
}

void Client::bury() { file_system_.reset(); }

std::string text_of(const Tree& tree) {
  std::string text;
  for (const std::string& line : tree) text += "  " + line + "\n";
  return text;
}

std::string text_of(const Outcome& outcome) {
  return "operation: " + outcome.operation + ", rival: " + outcome.rival + "\n" + text_of(outcome.tree);
}

World::World(const std::vector<Act>& setup) : cluster_(ScriptedCluster::make()) {
  MakeVolumeOptions options;
  options.object_size_bytes = object_size_bytes;
  need(make_volume(*cluster_->new_client(), clock_, options));
  Client client = mount();
  for (const Act& act : setup) need(act(client.paths()));
  client.unmount();
}

World::World(const World& base) : cluster_(base.cluster_->clone()) {}

Tree World::tree() {
  CHECK(broken_invariants() == "");  // NOLINT(readability-container-size-empty): the text is to be shown
  return look();
}

Tree World::look() {
  Client client = mount();
  Tree tree = client.paths().tree();
  client.unmount();
  return tree;
}

std::string World::broken_invariants() {
  std::string findings;
  for (const auto& finding : test::need(check::check_volume(*cluster_->new_client()))) {
    findings += check::text_of(finding) + "\n";
  }
  return findings;
}

namespace {

/// Objects that a volume without instances and garbage would not have.
std::vector<std::string> left_over(ScriptedCluster& cluster) {
  std::set<std::string> named{format::super_object, format::alloc_object, format::inode_object(root_ino)};
  std::vector<std::string> left;
  cluster.with_objects([&](scripted::Objects& objects) {
    for (const auto& [name, stored] : objects.metadata()) {
      for (const auto& [key, value] : stored.keys) {
        if (format::parse_entry_key(key)) {
          const auto entry = need(format::decode<format::EntryRecord>(value));
          named.insert(format::inode_object(entry.ino));
          if (entry.mark) left.push_back(name + " " + key + " (marked)");
        }
        if (key.starts_with("d/") || key.starts_with("x/") || key.starts_with("s/")) left.push_back(name + " " + key);
      }
    }
    for (const auto& [name, stored] : objects.metadata()) {
      if (!named.contains(name)) left.push_back(name);
    }
  });
  return left;
}

}  // namespace

World::Examined World::examine() {
  Examined examined;
  examined.problems = broken_invariants();
  examined.tree = look();
  let_a_minute_pass();
  test::collect(*cluster_, clock_);
  test::collect(*cluster_, clock_);  // what the first has logged for itself
  examined.problems += broken_invariants();
  const Tree behind = look();
  if (behind != examined.tree) examined.problems += "after the collectors:\n" + text_of(behind);
  test::collect(*cluster_, clock_);  // the looker's
  for (const auto& left : left_over(*cluster_)) examined.problems += "left over: " + left + "\n";
  return examined;
}

void World::expect_nothing_left() {
  CHECK(examine().problems == "");  // NOLINT(readability-container-size-empty): the text is to be shown
}

std::string World::fingerprint() const {
  std::string text;
  const auto add = [&text](const std::string& part) {
    text += std::to_string(part.size()) + ':';
    text += part;
  };
  cluster_->with_objects([&](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      add(name);
      add(object.payload);
      for (const auto* map : {&object.xattrs, &object.keys}) {
        add("");
        for (const auto& [key, value] : *map) {
          add(key);
          add(value);
        }
      }
    }
    for (const auto& [name, bytes] : objects.data()) {
      add(name);
      add(bytes);
    }
  });
  return text;
}

}  // namespace lccfs::crash
