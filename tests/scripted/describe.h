// SPDX-License-Identifier: LGPL-2.1-or-later
// Transactions as text, for traces and for people.
#pragma once

#include <string>

#include "lccfs/object_store.h"

namespace lccfs::scripted {

/// Several lines: the step and its object, then a line for each guard and mutation. Bytes that do not print are
/// escaped.
std::string describe(const MetaTxn& txn);

}  // namespace lccfs::scripted
