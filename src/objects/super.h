// SPDX-License-Identifier: LGPL-2.1-or-later
// The object Super: what volume this is, and its instances (docs/FORMAT.md). Blocking; any thread.
#pragma once

#include "objects/object.h"

namespace lccfs::objects {

struct Super : Object {
  format::SuperRecord record;
};

enum class Instances { left_out, all };
/// not_found, with what to do: there is no volume. corrupt, unsupported: as format::super_in. `all`: their records are
/// the first of the ranges.
Result<Super> read_super(const Query& query, Instances instances = Instances::left_out);

}  // namespace lccfs::objects
