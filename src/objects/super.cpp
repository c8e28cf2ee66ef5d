// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/super.h"

namespace lccfs::objects {

Result<Super> read_super(const Query& query, Instances instances) {
  MetaRead read{.object = format::super_object, .xattrs = true, .ranges = {}, .keys = {}};
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

}  // namespace lccfs::objects
