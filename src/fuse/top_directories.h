// SPDX-License-Identifier: LGPL-2.1-or-later
// Which directories on top of the volume have a label in the metrics. Bounded by these labels.
#pragma once

#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "lccfs/types.h"
#include "metrics/directories.h"

namespace lccfs::fuse {

/// Any thread.
class TopDirectories {
 public:
  explicit TopDirectories(metrics::Directories& labels) : labels_(labels) {}

  /// The root has this directory under that name.
  metrics::DirectoryTag seen(Ino ino, std::string_view name) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    const auto found = tags_.find(ino);  // another may have taken its name, and its label with that
    if (found != tags_.end() && labels_.name(found->second, name)) return found->second;
    const auto tag = labels_.add(name);
    if (metrics::Directories::is_own(tag)) tags_[ino] = tag;
    return tag;
  }
  /// The kernel knows it no more, so it has nothing open below it that it knows by a name.
  void forgotten(Ino ino) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    const auto found = tags_.find(ino);
    if (found == tags_.end()) return;
    labels_.drop(found->second);
    tags_.erase(found);
  }

 private:
  metrics::Directories& labels_;
  Mutex mutex_;
  std::unordered_map<Ino, metrics::DirectoryTag> tags_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::fuse
