// SPDX-License-Identifier: LGPL-2.1-or-later
// What RADOS answers, as the port's meanings.
#pragma once

#include <string>
#include <string_view>

#include "lccfs/result.h"

namespace lccfs::rados {

/// Whether the request may change the object: then "no answer" leaves open whether it did.
enum class Effect { reads, writes };

/// `status` is negative; `what` names the step and the object.
Error to_error(int status, std::string_view what, Effect effect);

/// The system's own words for -status.
std::string reason(int status);

}  // namespace lccfs::rados
