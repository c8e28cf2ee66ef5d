// SPDX-License-Identifier: LGPL-2.1-or-later
// Behind the matching: Q, numbers of links, names of directories and paths from the root.
#pragma once

#include "check/match.h"
#include "check/unless_detached.h"

namespace lccfs::check {

// -- links.cpp
/// Numbers of names against nlink; seals.
Result<> check_links(const NamespaceCheck& check, const UnclearInodes& unclear, UnlessDetached& findings);

// -- tree.cpp
void check_several_names(const NamespaceCheck& check);
Result<> check_paths(const NamespaceCheck& check, UnlessDetached& findings);

}  // namespace lccfs::check
