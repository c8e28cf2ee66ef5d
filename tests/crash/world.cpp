// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/world.h"

#include <fcntl.h>

#include <set>

#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/volume.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {

using test::need;

Client::Client(ScriptedCluster& cluster, Clock& clock)
    : store_(cluster.new_client()), file_system_(need(mount_volume(store_, clock, {}))) {}

void Client::prepare(const Scenario& scenario, bool warm) {
  if (warm) {
    paths().tree();
    // Names that are not there, too: what is remembered of them is the client's own.
    for (const char* name : {"/d/a", "/d/b", "/d/c"}) static_cast<void>(paths().find(name));
  }
  if (scenario.held_open) open_file_ = need(paths().open(*scenario.held_open, O_RDWR));
}

std::string Client::perform(const Act& act) {
  auto at = paths();
  const Result<> result = act(at);
  return result ? "ok" : describe(result.error().code);
}

void Client::unmount() {
  if (open_file_) file_system_->release(*open_file_);
  need(file_system_->unmount());
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

World::World(const Scenario& scenario) : cluster_(ScriptedCluster::make()) {
  need(make_volume(*cluster_->new_client(), clock_, {}));
  Client client = mount();
  auto at = client.paths();
  for (const Act& act : scenario.setup) need(act(at));
  client.unmount();
}

World::World(const World& base) : cluster_(base.cluster_->clone()) {}

Tree World::tree() {
  check_invariants();
  Client client = mount();
  Tree tree = client.paths().tree();
  client.unmount();
  return tree;
}

void World::check_invariants() {
  std::string findings;
  for (const auto& finding : test::need(check::check_volume(*cluster_->new_client()))) {
    findings += check::text_of(finding) + "\n";
  }
  CHECK(findings == "");  // NOLINT(readability-container-size-empty): the text is to be shown
}

namespace {

/// Objects that a volume without instances and garbage would not have.
std::vector<std::string> left_over(ScriptedCluster& cluster) {
  std::set<std::string> named{format::super_object, format::alloc_object, format::inode_object(root_ino)};
  std::vector<std::string> left;
  cluster.with_objects([&](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      for (const auto& [key, value] : object.keys) {
        if (const auto entry = format::parse_entry_key(key)) {
          named.insert(format::inode_object(need(format::decode<format::EntryRecord>(value)).ino));
        }
        if (key.starts_with("d/") || key.starts_with("x/") || key.starts_with("s/")) left.push_back(name + " " + key);
      }
    }
    for (const auto& [name, object] : objects.metadata()) {
      if (!named.contains(name)) left.push_back(name);
    }
  });
  return left;
}

}  // namespace

void World::expect_nothing_left() {
  const Tree before = tree();
  let_a_minute_pass();
  test::collect(*cluster_, clock_);
  test::collect(*cluster_, clock_);  // what the first has logged for itself
  CHECK(text_of(tree()) == text_of(before));
  test::collect(*cluster_, clock_);  // the looker's
  CHECK(left_over(*cluster_) == std::vector<std::string>{});
}

}  // namespace lccfs::crash
