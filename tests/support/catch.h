// SPDX-License-Identifier: LGPL-2.1-or-later
// The one place that knows which Catch2 there is; and how it prints errors.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <optional>
#include <string>

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
