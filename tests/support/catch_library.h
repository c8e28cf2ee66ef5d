// SPDX-License-Identifier: LGPL-2.1-or-later
// The one place that knows which Catch2 there is.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
