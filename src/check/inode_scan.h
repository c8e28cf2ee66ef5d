// SPDX-License-Identifier: LGPL-2.1-or-later
// One inode object, page by page of its keys: all that can be judged by itself, and what others are judged by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/inode_summary.h"
#include "check/link_sums.h"
#include "check/parts.h"
#include "check/small_files.h"
#include "check/volume_facts.h"
#include "lccfs/object_store.h"

namespace lccfs::check {

struct ScannedInode {
  InodeSummary summary;
  LinkSum entries;         ///< links to inodes, as the entries have them
  LinkSum names, reverse;  ///< by entries, and by reverse keys
  std::uint64_t subdirectories = 0;
  bool has_detached = false;  ///< d/ keys
  bool has_decisions = false;
  std::uint64_t highest_fence = 0;
  std::optional<SmallFile> small_file;
  std::vector<Finding> findings;
};

class InodeScan {
 public:
  static constexpr std::uint32_t keys_at_once = 1024;

  /// `facts` outlive the scan.
  InodeScan(const VolumeFacts& facts, Ino ino, MetaSnapshot head);

  void take_keys(const std::vector<std::pair<std::string, Bytes>>& keys);
  /// Behind the last page.
  ScannedInode finish();

 private:
  template <class Record>
  std::optional<Record> decode(const Part& part) {
    return decode_part<Record>(result_.findings, object_, part);
  }
  void corrupt(const Part& part, const std::string& why);
  void corrupt_xattr(const char* name, const std::string& why);
  void corrupt_payload(const std::string& why);
  void unknown(const Part& part);
  void need(const char* name);
  void refuse(const char* name);
  bool is(FileType type) const { return result_.summary.type == type; }

  void scan_xattr(const Part& part);
  void scan_typed();
  void scan_payload();
  void scan_key(const Part& part);
  void scan_directory_key(const Part& part);
  void scan_marker(const Part& part, bool known);
  void scan_entry(const Part& part);
  void scan_reverse(const Part& part);
  void scan_map(const Part& part);
  void scan_user_attribute(const Part& part);
  void judge_subdirectories();
  void judge_traces();
  void note_small_file();

  const VolumeFacts& facts_;
  const Ino ino_;
  const std::string object_;
  const MetaSnapshot head_;
  std::uint32_t flags_ = 0;
  std::optional<std::uint64_t> size_bytes_, nsub_;
  std::uint64_t first_objects_ = 0;  // bits of the map
  bool has_further_objects_ = false;
  ScannedInode result_;
};

}  // namespace lccfs::check
