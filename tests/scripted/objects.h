// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of a scripted cluster, as values: a cluster can be copied whole. Not thread-safe: ScriptedCluster's lock
// guards it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "store/common/meta_object.h"

namespace lccfs::scripted {

struct MetaObject : MetaHead {
  std::map<std::string, Bytes> keys;
};

class Objects {
 public:
  /// `invalid`: a transaction that the port's contract forbids (an empty value, a Remove among others, ...).
  Result<Applied> apply(const MetaTxn& txn);
  /// Pages hold at most `page_limit` keys, whatever the caller asks for.
  Result<MetaSnapshot> query(const MetaRead& read, std::uint32_t page_limit) const;

  std::size_t read(const std::string& object, std::uint64_t offset, std::span<char> target) const;
  void write(const std::string& object, std::uint64_t offset, std::span<const char> bytes);
  void truncate(const std::string& object, std::uint64_t size_bytes);
  void remove(const std::string& object) { data_.erase(object); }
  void zero(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes);
  /// false: there is no source.
  bool copy(const std::string& source, const std::string& target);
  /// Blocks of 4 KiB with nothing but zeros are none.
  std::vector<DataExtent> extents(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes) const;

  const std::map<std::string, MetaObject>& metadata() const { return metadata_; }
  std::map<std::string, MetaObject>& metadata() { return metadata_; }
  const std::map<std::string, Bytes>& data() const { return data_; }

 private:
  std::map<std::string, MetaObject> metadata_;
  std::map<std::string, Bytes> data_;
  std::uint64_t last_version_ = 0;  // one counter for all objects: versions rise over remove and create
};

}  // namespace lccfs::scripted
