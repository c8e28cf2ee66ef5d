// SPDX-License-Identifier: LGPL-2.1-or-later
// What repairs answer. Pure functions.
#pragma once

#include <string>

#include "lccfs/result.h"
#include "repair/repair.h"

namespace lccfs::repair {

inline Repair left(std::string why) { return {false, std::move(why)}; }
/// What was found is not there any more: another repair has seen to it.
inline Repair settled() { return {true, "seen to by another repair"}; }
/// Of a step that did (not) apply.
inline Repair stepped(bool applied, std::string what) {
  return applied ? Repair{true, std::move(what)} : left("the object has changed meanwhile");
}

}  // namespace lccfs::repair
