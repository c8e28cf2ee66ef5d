// SPDX-License-Identifier: LGPL-2.1-or-later
// A metadata object as it was read, and how all rooms read one: an answer of one version, however many keys it has.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "format/records.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::objects {

/// How objects are read: by an instance, which tries again and learns of fences, or by a store alone. The completion as
/// in lccfs/object_store.h.
using Query = std::function<void(MetaRead, ObjectStore::QueryDone)>;
Query reader_of(ObjectStore& store);

/// How many keys one read asks for.
inline constexpr std::uint32_t keys_at_once = 1024;

/// Of one object: the rest can be done without it.
inline bool is_damage(const Error& error) {
  return error.code == ErrorCode::corrupt || error.code == ErrorCode::unsupported || error.code == ErrorCode::io;
}

/// Decodes a part of an object; the error names both.
template <class Record>
Result<Record> decode_part(const std::string& object, const std::string& part, const Bytes& bytes) {
  auto record = format::decode<Record>(bytes);
  if (record) return record;
  return failure(record.error().code, object + ": " + part + ": " + record.error().context);
}

struct Object : MetaSnapshot {
  std::string name;

  /// What is damaged counts as not there: for checks and repairs.
  template <class Record>
  std::optional<Record> find(const char* xattr) const {
    auto record = optional<Record>(xattr);
    return record ? std::move(*record) : std::nullopt;
  }
  /// corrupt, unsupported: it is there, and cannot be read.
  template <class Record>
  Result<std::optional<Record>> optional(const char* xattr) const {
    const auto found = xattrs.find(xattr);
    if (found == xattrs.end()) return std::nullopt;
    return decode_part<Record>(name, std::string("xattr ") + xattr, found->second);
  }
  template <class Record>
  Result<Record> needed(const char* xattr) const {
    LCCFS_TRY(auto record, optional<Record>(xattr));
    if (record) return std::move(*record);
    return failure(ErrorCode::corrupt, name + ": xattr " + xattr + " is missing");
  }
};

using ObjectDone = std::move_only_function<void(Result<Object>)>;

/// Reads an object; the first `whole_ranges` of the ranges to their end, all of it at one version: if the object
/// changes between two pages, it is read anew. not_found: there is no such object. 1 read for each `limit` keys of a
/// range.
void read_object_async(const Query& query, MetaRead read, std::size_t whole_ranges, ObjectDone done);
/// The same; blocks.
Result<Object> read_object(const Query& query, MetaRead read, std::size_t whole_ranges = 0);
/// The same; nullopt: there is no such object.
Result<std::optional<Object>> find_object(const Query& query, MetaRead read, std::size_t whole_ranges = 0);

/// Calls `work` with the keys of that range, page by page to its end, until it fails: what is added or removed meanwhile
/// may be missed. Blocks.
Result<> for_each_page(const Query& query, const std::string& object, KeyRange range,
                       const std::function<Result<>(const KeyPage&)>& work);
/// The same of a prefix, key by key.
Result<> for_each_key(const Query& query, const std::string& object, const std::string& prefix,
                      const std::function<Result<>(const std::string& key, const Bytes& value)>& work);

/// Calls `work` with the name of each object in the store, until it fails. Blocks.
Result<> for_each_object(ObjectStore& store, const std::function<Result<>(const std::string& name)>& work);

}  // namespace lccfs::objects
