// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of a volume as a whole: Super, what volume this is, and its instances; and Alloc (docs/FORMAT.md).
// Blocking; any thread.
#pragma once

#include "objects/object.h"

namespace lccfs::objects {

struct Super : Object {
  format::SuperRecord record;
};

enum class Instances { left_out, all };
/// not_found, with what to do: there is no volume. corrupt, unsupported: as format::super_in. `all`: their records are
/// the first of the ranges.
Result<Super> read_super(const Query& query, Instances instances = Instances::left_out);
/// The pool that the volume has for its data, if it has one of its own: before any data of it is read or written. io,
/// with what to do: there is none of that name.
Result<> use_data_pool(ObjectStore& store, const format::SuperRecord& super);
/// The number that is given out next, by a read of Alloc and its xattrs. corrupt, with what to do: there is none, or no
/// such object.
Result<std::uint64_t> next_number_in(const Result<MetaSnapshot>& alloc);
/// The same, read now.
Result<std::uint64_t> read_next_number(ObjectStore& store);

}  // namespace lccfs::objects
