// SPDX-License-Identifier: LGPL-2.1-or-later
// What RADOS answers, as the port's meanings.
#pragma once

#include <rados/librados.hpp>
#include <string>
#include <string_view>

#include "lccfs/result.h"

namespace lccfs::rados {

/// Whether the request may change the object: then "no answer" leaves open whether it did.
enum class Effect { reads, writes };

/// `status` is negative; `what` names the step and the object.
Error to_error(int status, std::string_view what, Effect effect);

/// librados answers ENOENT also where the pool itself was deleted; it has made sure of it then, so that the map at hand
/// says so. Asks no daemon.
bool is_gone(librados::IoCtx& pool);

/// As above, of a step on that pool: a pool that is gone is no object that is not found.
Error to_error(librados::IoCtx& pool, int status, std::string_view what, Effect effect);

/// The system's own words for -status.
std::string reason(int status);

}  // namespace lccfs::rados
