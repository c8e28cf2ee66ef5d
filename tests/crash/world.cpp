// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/world.h"

#include "check/check.h"
#include "support/catch.h"

#include <fcntl.h>

#include "lccfs/volume.h"
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

}  // namespace lccfs::crash
