// SPDX-License-Identifier: LGPL-2.1-or-later
// What the system's errors mean, and what is done with open directories.
#pragma once

#include <cerrno>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "lccfs/result.h"

namespace lccfs::local {

/// The error of a system call that has just failed: errno's meaning, and its text after `what`.
[[nodiscard]] Error system_error(const std::string& what, Outcome outcome = Outcome::definite, int number = errno);

/// What is in the directory `name` of `directory`, but "." and "..".
Result<std::vector<std::string>> names_in(int directory, const std::string& name, const std::string& what);

/// Makes what happened to the names in this directory durable.
Result<> sync_directory(int directory, const std::string& what);

}  // namespace lccfs::local
