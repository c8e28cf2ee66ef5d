// SPDX-License-Identifier: LGPL-2.1-or-later
// The suite on the embedded store, each case in a directory of its own. Its clients are fenced by process.
#include "conformance/victim.h"
#include "store/local/local_store.h"
#include "support/temporary_folder.h"

namespace lccfs::conformance {
namespace {

class LocalVolume : public Volume {
 public:
  std::shared_ptr<ObjectStore> new_client() override {
    StoreOptions options;
    options.create = true;
    return value_of(open_local_store(directory_.path(), options));
  }
  std::unique_ptr<Victim> start_victim() override {
    new_client();  // makes the store, which the victim only opens
    return start_victim_process(directory_.path());
  }
  bool fences_single_clients() const override { return true; }

 private:
  const test::TemporaryFolder directory_;
};

}  // namespace

std::unique_ptr<Volume> fresh_volume() { return std::make_unique<LocalVolume>(); }

}  // namespace lccfs::conformance
