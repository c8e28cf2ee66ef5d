// SPDX-License-Identifier: LGPL-2.1-or-later
// fence_tool ADDRESS... --instance NUMBER: fences that instance of the volume, alive or not, as another client would.
#include <iostream>
#include <memory>

#include "instance/instance.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;

Result<> fence(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line(
      {.name = "fence_tool", .usage = "VOLUME --instance NUMBER", .summary = "Fences an instance.", .footer = ""});
  options::add_address(line, address);
  line.group("Instance");
  InstanceId instance_id;
  line.option("--instance", "NUMBER", options::number(instance_id.value, 1, UINT64_MAX), "the instance to fence");
  LCCFS_CHECK(line.parse(words));
  LCCFS_TRY(std::shared_ptr<ObjectStore> store, open_store(address, {}));
  LCCFS_TRY(const auto instance, Instance::start(store, system_clock(), {.mount_id = "fence_tool"}));
  LCCFS_CHECK(instance->evict(instance_id));
  return instance->end();
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = fence({argv + 1, argv + argc});
  if (done) return 0;
  std::cerr << "fence_tool: " << done.error().context << "\n";
  return 1;
}
