// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/super.h"

namespace lccfs::objects {

Result<Super> read_super(const Query& query, Instances instances) {
  MetaRead read{.object = format::super_object, .xattrs = true};
  if (instances == Instances::all) read.ranges.push_back({"s/", "", keys_at_once});
  const auto whole_ranges = read.ranges.size();
  auto object = read_object(query, std::move(read), whole_ranges);
  if (!object && object.error().code == ErrorCode::not_found) {
    return failure(ErrorCode::not_found, "there is no volume here: make one with lccfs mkfs");
  }
  if (!object) return std::unexpected(std::move(object).error());
  LCCFS_TRY(auto record, format::super_in(object->xattrs));
  return Super{std::move(*object), std::move(record)};
}

Result<std::uint64_t> next_number_in(const Result<MetaSnapshot>& alloc) {
  const Error missing{ErrorCode::corrupt, "it is missing", Outcome::definite};
  if (!alloc && alloc.error().code == ErrorCode::not_found)
    return std::unexpected(format::damage_of(format::alloc_object, missing));
  if (!alloc) return std::unexpected(alloc.error());
  const auto found = alloc->xattrs.find(format::xattr::next);
  const auto next = format::decode_next_number(found == alloc->xattrs.end() ? Bytes() : found->second);
  if (!next) return std::unexpected(format::damage_of("Alloc: next", next.error()));
  return *next;
}

Result<std::uint64_t> read_next_number(ObjectStore& store) {
  return next_number_in(store.query({.object = format::alloc_object, .xattrs = true}));
}

Result<> use_data_pool(ObjectStore& store, const format::SuperRecord& super) {
  if (super.data_pool.empty()) return {};
  auto used = store.use_data_pool(super.data_pool);
  if (used || used.error().code != ErrorCode::not_found) return used;
  return failure(ErrorCode::io, "the volume's data is in the pool " + super.data_pool +
                                    ", and there is none of that name; if it was renamed, give it its name back");
}

}  // namespace lccfs::objects
