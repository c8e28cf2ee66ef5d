// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "cli/commands.h"
#include "cli/open_volume.h"
#include "options/command_line.h"

namespace lccfs::cli {
namespace {

constexpr const char* info_examples = R"(
Examples:
  lccfs info -c /etc/ceph/ceph.conf -p vms
  lccfs info --local /srv/volume --json
)";

options::Description info_description() {
  options::Description all = options::address_options();
  options::Description own("Output");
  own.add_options()                      //
      ("json", "as JSON, for programs")  //
      ("help,h", "show this text");
  return all.add(own);
}

Result<VolumeInfo> look(const VolumeAddress& address) {
  LCCFS_TRY(const auto store, open_briefly(address, false));
  auto info = describe_volume(*store);
  if (!info && info.error().code == ErrorCode::not_found)
    return failure(ErrorCode::not_found, "there is no volume at " + address.describe() + "; make one with: lccfs mkfs");
  return info;
}

int show(const options::Values& values) {
  const Result<VolumeAddress> address = options::address_of(values);
  if (!address) return complain("info", address.error(), exit_usage);
  const Result<VolumeInfo> info = look(*address);
  if (!info) return complain("info", info.error(), exit_failure);
  std::cout << (values.contains("json") ? info_as_json(*info)
                                        : info_as_text(*info, system_clock().wall_time().seconds));
  return exit_success;
}

}  // namespace

int info(const Words& words) {
  const Result<options::Values> values = options::parse(words, info_description());
  if (!values) return complain("info", values.error(), exit_usage);
  if (!values->contains("help")) return show(*values);
  std::cout << "Usage: lccfs info VOLUME [--json]\nShows what a volume is and who uses it. Changes nothing.\n\n"
            << info_description() << info_examples;
  return exit_success;
}

}  // namespace lccfs::cli
