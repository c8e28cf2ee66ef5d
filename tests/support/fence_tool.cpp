// SPDX-License-Identifier: LGPL-2.1-or-later
// fence_tool ADDRESS... --instance NUMBER: fences that instance of the volume, alive or not, as another client would.
#include <iostream>
#include <memory>

#include "instance/instance.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

namespace po = boost::program_options;
using namespace lccfs;

Result<> fence(const std::vector<std::string>& words) {
  options::Description description = options::address_options();
  description.add_options()("instance", po::value<std::uint64_t>()->required(), "the instance to fence");
  LCCFS_TRY(const auto values, options::parse(words, description));
  LCCFS_TRY(const VolumeAddress address, options::address_of(values));
  LCCFS_TRY(std::shared_ptr<ObjectStore> store, open_store(address, {}));
  LCCFS_TRY(const auto instance, Instance::start(store, system_clock(), {.mount_id = "fence_tool"}));
  LCCFS_CHECK(instance->evict(InstanceId{values["instance"].as<std::uint64_t>()}));
  return instance->end();
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = fence({argv + 1, argv + argc});
  if (done) return 0;
  std::cerr << "fence_tool: " << done.error().context << "\n";
  return 1;
}
