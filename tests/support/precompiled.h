// SPDX-License-Identifier: LGPL-2.1-or-later
// As src/precompiled.h, for test programs.
#pragma once

#include "../../src/precompiled.h"
#include "catch_library.h"
