// SPDX-License-Identifier: LGPL-2.1-or-later
// The target that owns the precompiled header needs a source.
