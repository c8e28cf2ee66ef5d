// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "lccfs/result.h"

namespace lccfs {

/// What an errno of an object's storage means, be it of this machine or of a cluster's.
ErrorCode meaning_of(int number);

}  // namespace lccfs
