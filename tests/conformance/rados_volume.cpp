// SPDX-License-Identifier: LGPL-2.1-or-later
// The suite on a cluster: tests/support/ceph_cluster.py run DIR -- conformance_rados. Each case has a namespace of its
// own. LCCFS_TEST_DATA_POOL, if set, takes the data objects.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "conformance/rados_client.h"
#include "conformance/victim.h"
#include "store/rados/rados_store.h"

namespace lccfs::conformance {
namespace {

class RadosVolume : public Volume {
 public:
  explicit RadosVolume(VolumeAddress address) : address_(std::move(address)) {}

  std::shared_ptr<ObjectStore> new_client() override {
    std::shared_ptr<ObjectStore> store = value_of(open_rados_store(address_, {}));
    if (const char* data_pool = std::getenv("LCCFS_TEST_DATA_POOL")) succeeds(store->use_data_pool(data_pool));
    return store;
  }
  std::unique_ptr<Victim> start_victim() override { return start_victim_thread(new_client()); }
  bool fences_single_clients() const override { return true; }
  const VolumeAddress& address() const { return address_; }

 private:
  const VolumeAddress address_;
};

std::string fresh_namespace() {
  static std::atomic<unsigned> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return "conformance-" + std::to_string(getpid()) + "-" + std::to_string(now) + "-" + std::to_string(++count);
}

}  // namespace

VolumeAddress address_of(const Volume& volume) { return dynamic_cast<const RadosVolume&>(volume).address(); }

std::unique_ptr<Volume> fresh_volume() {
  if (!std::getenv("LCCFS_TEST_CONF") || !std::getenv("LCCFS_TEST_POOL")) {
    static const auto& told = std::cout << "skipped: LCCFS_TEST_CONF and LCCFS_TEST_POOL are not set\n";
    (void)told;
    return nullptr;
  }
  VolumeAddress address = address_of_tenant();
  address.pool_namespace = fresh_namespace();
  return std::make_unique<RadosVolume>(std::move(address));
}

}  // namespace lccfs::conformance
