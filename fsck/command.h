// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fsck's command line.
#pragma once

#include <string>
#include <vector>

#include "lccfs/volume_address.h"
#include "repair/repair.h"

namespace lccfs::fsck {

struct Command {
  std::string answer;  ///< not empty: what to print instead of any work; all below is unused
  enum class What { check, repair };
  What what = What::check;
  VolumeAddress address;
  repair::Orphans orphans = repair::Orphans::keep;
  unsigned jobs = 16;
  bool json = false;
  bool force = false;  ///< though somebody uses the volume
};

/// The words after the program's name.
Result<Command> parse_command(const std::vector<std::string>& words);

}  // namespace lccfs::fsck
