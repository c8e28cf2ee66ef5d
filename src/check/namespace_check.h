// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "check/names_in.h"
#include "check/namespace_index.h"
#include "check/stream.h"
#include "check/volume_facts.h"

namespace lccfs::check {

/// What the rules over several inodes work with. All members outlive them.
struct NamespaceCheck {
  ObjectStore& store;
  const VolumeFacts& facts;
  NamespaceIndex& index;
  DirectoryReader& directories;
  Sink& sink;
  Effort effort;
};

}  // namespace lccfs::check
