// SPDX-License-Identifier: LGPL-2.1-or-later
// Catch2, and how it prints our errors.
#pragma once

#include <optional>
#include <string>

#include "catch_library.h"
#include "lccfs/result.h"

template <>
struct Catch::StringMaker<lccfs::ErrorCode> {
  static std::string convert(lccfs::ErrorCode code) { return lccfs::describe(code); }
};
template <>
struct Catch::StringMaker<std::optional<lccfs::ErrorCode>> {
  static std::string convert(const std::optional<lccfs::ErrorCode>& code) {
    return code ? lccfs::describe(*code) : "no error";
  }
};
