// SPDX-License-Identifier: LGPL-2.1-or-later
// The suite on the test store: what the tests of all upper layers stand on must keep the contract too.
#include "conformance/victim.h"
#include "scripted/scripted_store.h"

namespace lccfs::conformance {
namespace {

class ScriptedVolume : public Volume {
 public:
  std::shared_ptr<ObjectStore> new_client() override { return cluster_->new_client(); }
  std::unique_ptr<Victim> start_victim() override { return start_victim_thread(new_client()); }
  bool fences_single_clients() const override { return true; }

 private:
  const std::shared_ptr<ScriptedCluster> cluster_ = ScriptedCluster::make();
};

}  // namespace

std::unique_ptr<Volume> fresh_volume() { return std::make_unique<ScriptedVolume>(); }

}  // namespace lccfs::conformance
