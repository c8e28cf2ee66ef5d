// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs-gc says of its passes. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "reclaim/collector.h"

namespace lccfs::gc {

/// Several passes one after the other, as one: `next` came after `total`.
void add_pass(reclaim::PassReport& total, const reclaim::PassReport& next);

/// One line: looked at, reclaimed, left, bytes freed, seconds.
std::string report_line(const reclaim::PassReport& report);
/// The same for a pass that only looked, and the clients that are gone, one line each.
std::string dry_run_text(const reclaim::PassReport& report);
/// One document of every field.
std::string report_as_json(const reclaim::PassReport& report);

/// Whether it has met what no later pass can deal with: damage, or what the store does not let this client remove. What
/// was left for later is none.
bool needs_a_hand(const reclaim::PassReport& report);
/// What somebody has to hear of: clients that did not answer, objects that are damaged, removes that were refused. One
/// line each, but for the last, of which the first is told.
std::vector<std::string> warnings_of(const reclaim::PassReport& report);

}  // namespace lccfs::gc
