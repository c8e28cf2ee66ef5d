// SPDX-License-Identifier: LGPL-2.1-or-later
//
// LMDB's file, looked at before LMDB does. LMDB trusts what it maps: a page that is cut off or damaged is a fault or an
// abort of the process, or worse, memory of the process overwritten. So
//  - the file is checked when it is opened: that it is as long as its last page wants it, and, up to
//    `checked_whole_bytes` of it, every page that can be reached (its place, its kind, its bounds, the order of its
//    keys, no page twice, none that is free);
//  - whatever is met later ends the process with one line that names the file (UsingPages), never by a signal.
// What a page holds within its bounds is not LMDB's to know: records have checksums of their own (docs/FORMAT.md).
#pragma once

#include <cstdint>
#include <string>

#include "lccfs/result.h"

namespace lccfs::local {

/// Looked at in a fraction of a second; it holds some 100,000 files.
inline constexpr std::uint64_t checked_whole_bytes = 64U << 20;

/// Before LMDB opens it: are the two pages that say where all others are what they should be? corrupt names the file.
Result<> check_metadata_header(const std::string& path);

/// The pages as of transaction `number`, which must be pinned by a reader meanwhile. corrupt names file and page.
Result<> check_metadata_pages(const std::string& path, std::uint64_t number);

/// While one lives, a fault or an abort of this thread ends the process with its status of failure (base/program.h).
/// `file` is shown, and lives longer.
class UsingPages {
 public:
  explicit UsingPages(const std::string& file);
  ~UsingPages();
  UsingPages(const UsingPages&) = delete;
  UsingPages& operator=(const UsingPages&) = delete;

  /// To be called before the first: from then on such signals are looked at.
  static void watch_for_faults();
};

}  // namespace lccfs::local
