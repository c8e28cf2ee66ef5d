// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Directories whose names are removed one after the other (rm -r), and what is likely to go next there: what comes after in
// the order of the listing, and what the next subdirectory has. It saves steps and reads (docs/NAMES.md sections 3 and 4).
// Any thread; never blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "format/records.h"
#include "fs/metadata_cache.h"

namespace lccfs {

class Emptying {
 public:
  explicit Emptying(Clock& clock) : clock_(clock) {}

  /// A program is reading its names, from the first on.
  void was_listed(Ino directory) EXCLUDES(mutex_);
  /// A name is about to be removed there. Whether that is the first since it was listed: others will follow.
  bool is_first_removal(Ino directory) EXCLUDES(mutex_);
  /// A subdirectory is opened. Whether it is likely to go: as many are as have gone. Then all its names are.
  bool takes_next_directory(Ino parent, Ino directory) EXCLUDES(mutex_);
  /// A file is looked up. The same.
  bool takes_next_file(Ino directory) EXCLUDES(mutex_);
  void lost_file(Ino directory) EXCLUDES(mutex_);
  void lost_directory(Ino directory) EXCLUDES(mutex_);

  // -- reads ahead, in the order of keys
  /// How many names after that one, which is read now, are worth a read beside it: more and more as long as each that is
  /// read so comes next. nullopt: it is on its way already.
  std::optional<std::size_t> worth_reading_after(Ino directory, const std::string& key) EXCLUDES(mutex_);
  /// They are read; `next`: the one after them, or what comes after all names.
  void is_read_up_to(Ino directory, const std::string& next) EXCLUDES(mutex_);

  // -- files of which the kernel was told attributes that were not read for it, as they are likely to go
  void was_told(Ino directory, Ino file, const format::AttrRecord& attr) EXCLUDES(mutex_);
  /// It is used for something else. What the kernel was told; nullopt: it was not. No file is likely to go there,
  /// until it is listed again.
  std::optional<format::AttrRecord> is_used(Ino file) EXCLUDES(mutex_);
  /// The kernel is told what was read for it, or has forgotten it.
  void forget(Ino file) EXCLUDES(mutex_);

 private:
  struct Uses {
    bool is_listed = false;
    bool goes_whole = false;              // and nothing of it was read ahead
    bool was_wrong = false;               // a file that was likely to go was used: none is, until it is listed again
    unsigned files = 0, directories = 0;  // that have gone, but for those that were taken for the next ones
    std::size_t window = 0;               // names that are read ahead
    std::string read_from = {}, next = {};
  };
  struct Told {
    Ino directory;
    format::AttrRecord attr;
  };
  static constexpr std::size_t limit = 10'000;

  Uses* known(Ino directory) REQUIRES(mutex_) { return uses_.get(directory, clock_.elapsed()); }
  Uses& uses_of(Ino directory) REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  ExpiringMap<Ino, Uses> uses_ GUARDED_BY(mutex_){limit};
  std::unordered_map<Ino, Told> told_ GUARDED_BY(mutex_);  // what the kernel knows, so that it ends
};

}  // namespace lccfs
