// SPDX-License-Identifier: LGPL-2.1-or-later
// The one place that says which version of libfuse's interface this folder is written for.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
