// SPDX-License-Identifier: LGPL-2.1-or-later
// The rules over a volume that was read. Each adds what it finds to the view's findings.
#pragma once

#include "check/volume_view.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::check {

// -- rules_namespace.cpp: V, and what holds inside one directory and along paths
void check_numbers(VolumeView& view);
void check_fences(VolumeView& view);
void check_entries(VolumeView& view);
void check_reverse_keys(VolumeView& view);
void check_directories(VolumeView& view);

// -- rules_links.cpp: P and Q
void check_back_pointers(VolumeView& view);
void check_queue(VolumeView& view);

// -- rules_data.cpp: M, T. The boundary objects are read.
void check_map(VolumeView& view);
Result<> check_tails(VolumeView& view, ObjectStore& store);

}  // namespace lccfs::check
