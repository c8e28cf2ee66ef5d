// SPDX-License-Identifier: LGPL-2.1-or-later
// An inode object as recount reads it: whose steps have left traces in it, and where its names may be. Blocking reads;
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::reclaim {

/// How objects are read: by an instance, or, in a dry run, by the store alone.
using Query = std::function<Result<MetaSnapshot>(MetaRead)>;

/// Of one object: the rest can be done without it.
inline bool is_damage(const Error& error) {
  return error.code == ErrorCode::corrupt || error.code == ErrorCode::unsupported || error.code == ErrorCode::io;
}

/// How many keys one read asks for.
inline constexpr std::uint32_t keys_at_once = 1024;

struct BackPointer {
  Ino parent;
  Token token;
  std::string key;  ///< empty: the xattr `parent`
};

struct Traces {
  Ino ino;
  std::uint64_t version = 0;  ///< all of it is of this version
  format::AttrRecord attr;
  format::StateRecord state;
  std::uint64_t size_bytes = 0;
  std::vector<BackPointer> pointers;
  std::map<InstanceId, std::uint64_t> step_numbers;  ///< of l/ keys
  bool has_detached = false, has_decisions = false, has_entries = false;
  std::map<std::uint64_t, format::MapBlock> map;

  bool is_directory() const { return attr.type == FileType::directory; }
  bool dead() const { return state.kind == format::StateRecord::Kind::dead; }
  bool sealed() const { return state.kind == format::StateRecord::Kind::sealed; }
  std::uint64_t mapped_objects() const;
  /// Of the data objects that are believed to be there, what lies below the size.
  std::uint64_t occupied_bytes(std::uint64_t object_size_bytes) const;
};

/// nullopt: there is no such inode. corrupt names the object. 1 read, unless it has over 1,024 keys of one kind.
Result<std::optional<Traces>> read_traces(const Query& query, Ino ino);

/// Calls `work` with each `d/` key that the directory has, until it fails. A directory that is gone has none.
Result<> for_each_detached(const Query& query, Ino directory,
                           const std::function<Result<>(const format::DetachedKey&)>& work);

/// The names of an inode over the distinct parents of its back-pointers, each directory read at one version.
struct Names {
  std::map<Ino, std::vector<std::string>> by_parent;  ///< only parents that hold some
  std::vector<Ino> missing_parents;                   ///< there are no such objects: what they held nobody knows
  std::size_t total() const {
    std::size_t all = 0;
    for (const auto& [parent, names] : by_parent) all += names.size();
    return all;
  }
};
Result<Names> count_names(const Query& query, const Traces& inode);

}  // namespace lccfs::reclaim
