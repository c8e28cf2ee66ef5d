// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/program.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/open_volume.h"
#include "options/command_line.h"

namespace lccfs::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* mkfs_examples = R"(
Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p vms --label "VM disks"
  lccfs mkfs -p vms -n nova --id nova --object-size 8M
  lccfs mkfs --local /srv/volume

A volume that is there already is never overwritten.
)";

options::Description mkfs_description() {
  options::Description all = options::address_options();
  options::Description own("New volume");
  const auto text = [] { return po::value<std::string>(); };
  own.add_options()  //
      ("object-size", text()->value_name("SIZE"),
       "files are cut into objects of this size: a power of two, "
       "64K to 32M (default: 4M)")                                                                            //
      ("label", text()->value_name("TEXT"), "a name for people")                                              //
      ("grace", text()->value_name("SECONDS"), "how long the collector waits before it asks (default: 60)")   //
      ("data-pool", text()->value_name("POOL"), "keep the files' bytes in this pool (may be erasure-coded)")  //
      ("help,h", "show this text");
  return all.add(own);
}

struct Command {
  bool help = false;
  VolumeAddress address;
  MakeVolumeOptions volume;
};

Result<Command> parse(const Words& words) {
  LCCFS_TRY(const options::Values values, options::parse(words, mkfs_description()));
  Command command;
  command.help = values.contains("help");
  if (command.help) return command;
  LCCFS_TRY(command.address, options::address_of(values));
  if (values.contains("object-size")) {
    LCCFS_TRY(const std::uint64_t bytes, options::size_of(values, "object-size", UINT32_MAX));
    command.volume.object_size_bytes = static_cast<std::uint32_t>(bytes);
  }
  if (values.contains("grace")) {
    LCCFS_TRY(const std::uint64_t seconds, options::number_of(values, "grace", 0, UINT32_MAX));
    command.volume.grace_seconds = static_cast<std::uint32_t>(seconds);
  }
  if (values.contains("label")) command.volume.label = values["label"].as<std::string>();
  if (values.contains("data-pool")) command.volume.data_pool = values["data-pool"].as<std::string>();
  if (!command.volume.data_pool.empty() && !command.address.local_directory.empty())
    return failure(ErrorCode::invalid, "--data-pool is for volumes in Ceph pools");
  LCCFS_CHECK(check_options(command.volume));  // before the directory of a local volume is made
  return command;
}

}  // namespace

int mkfs(const Words& words) {
  const Result<Command> command = parse(words);
  if (!command) return complain("mkfs", command.error(), exit_usage);
  if (command->help) {
    std::cout << "Usage: lccfs mkfs VOLUME [OPTION]...\nMakes an empty volume.\n\n"
              << mkfs_description() << mkfs_examples;
    return exit_success;
  }
  const auto store = open_briefly(command->address, true);
  if (!store) return complain("mkfs", store.error(), exit_failure);
  const Result<> made = make_volume(**store, system_clock(), command->volume);
  if (!made) return complain("mkfs", made.error(), exit_failure);
  std::cout << "made a volume at " << printable(command->address.describe()) << "\n";
  if (const Result<> told = (*store)->announce(); !told) print_error("lccfs mkfs", told.error().context);
  return exit_success;
}

}  // namespace lccfs::cli
