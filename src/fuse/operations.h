// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's requests: one short function each that converts, calls the file system and answers. No semantics.
#pragma once

#include "fuse/fuse_api.h"

namespace lccfs::fuse {

/// For a session whose user data is a Serving.
fuse_lowlevel_ops operations();

// What operations() is made of, by family; each fills in its own.
void add_name_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);

}  // namespace lccfs::fuse
