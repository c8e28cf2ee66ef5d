// SPDX-License-Identifier: LGPL-2.1-or-later
// check_tool ADDRESS...: judges a volume that nobody changes now by src/check. One line a finding; exit status 1 if
// there is one.
#include <iostream>

#include "check/check.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;

Result<std::size_t> print_findings(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line({.name = "check_tool", .usage = "VOLUME", .summary = "Judges a volume.", .footer = ""});
  options::add_address(line, address);
  LCCFS_CHECK(line.parse(words));
  LCCFS_TRY(const std::shared_ptr<ObjectStore> store, open_store(address, {}));
  LCCFS_TRY(const auto findings, check::check_volume(*store));
  for (const auto& finding : findings) std::cout << check::text_of(finding) << "\n";
  return findings.size();
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = print_findings({argv + 1, argv + argc});
  if (found) return *found == 0 ? 0 : 1;
  std::cerr << "check_tool: " << found.error().context << "\n";
  return 2;
}
