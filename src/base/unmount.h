// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace lccfs {

/// Takes the mount there away, whoever uses it; one that is not root's by way of fusermount3. Does nothing where nothing
/// is mounted. Needs no answer of the file system, if its connection is cut, or nothing of it is to be written back.
void unmount_at_once(const std::string& path);

}  // namespace lccfs
