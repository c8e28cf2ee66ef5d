// SPDX-License-Identifier: LGPL-2.1-or-later
// Single directories looked at again: their keys page by page, and which inodes they name. Blocking.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "check/sink.h"
#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::check {

struct NamedEntry {
  std::string name;
  format::EntryRecord record;
};

class DirectoryReader {
 public:
  DirectoryReader(ObjectStore& store, const format::VolumeUuid& uuid) : store_(store), uuid_(uuid) {}

  /// Entries that can be read, a page at a time.
  Result<> for_each_page(Ino directory, const std::function<Result<>(const std::vector<NamedEntry>&)>& work);
  /// Inodes that have d/ keys there, each once, a page at a time.
  Result<> for_each_detached(Ino directory, const std::function<Result<>(const std::vector<Ino>&)>& work);
  /// How many entries there are for each of these inodes.
  Result<std::vector<std::uint32_t>> count_names(Ino directory, std::span<const Ino> inodes);

  /// Entries without reverse keys, and the other way round; marks that differ. From then on count_names knows of the
  /// first.
  Result<> check_reverse_keys(Ino directory, Sink& sink);

 private:
  using Keys = std::vector<std::pair<std::string, Bytes>>;
  Result<> for_each_key_page(Ino directory, const std::string& prefix,
                             const std::function<Result<>(const Keys&)>& work);
  Result<> check_entries_have_reverse_keys(Ino directory, Sink& sink);
  void check_reverse_key(Ino directory, const NamedEntry& entry, const std::map<std::string, Bytes>& values,
                         Sink& sink);
  Result<> check_reverse_keys_have_entries(Ino directory, Sink& sink);
  Result<std::vector<std::uint32_t>> count_some_names(Ino directory, std::span<const Ino> inodes);

  ObjectStore& store_;
  const format::VolumeUuid uuid_;
  Mutex mutex_;
  /// Directory, and the inode of an entry without a reverse key.
  std::multiset<std::pair<Ino, Ino>> unreversed_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::check
