// SPDX-License-Identifier: LGPL-2.1-or-later
// Open directories, each with one page of its listing. Any thread; one page at a time is read for one handle.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lccfs/file_system.h"

namespace lccfs {

/// Part of a listing: all entries whose cookies are above `after` and, unless it is the last part, up to those of the
/// last entry in it.
struct ListingPage {
  bool read = false;
  std::uint64_t after = 0;
  std::vector<DirectoryEntry> entries;
  bool last = false;

  bool covers(std::uint64_t cookie) const {
    return read && cookie >= after && (last || (!entries.empty() && cookie < entries.back().cookie));
  }
};

struct DirectoryHandle {
  Ino ino;
  std::mutex mutex;  // guards all below
  bool listed = false;
  ListingPage page;
};

class DirectoryHandles {
 public:
  HandleId open(Ino ino) {
    auto handle = std::make_shared<DirectoryHandle>();
    handle->ino = ino;
    const std::lock_guard lock(mutex_);
    const HandleId id{++last_};
    handles_[id] = std::move(handle);
    return id;
  }

  /// nullptr: not open.
  std::shared_ptr<DirectoryHandle> get(HandleId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(id);
    return found == handles_.end() ? nullptr : found->second;
  }

  bool is_open(Ino ino) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(handles_, [ino](const auto& handle) { return handle.second->ino == ino; });
  }

  void release(HandleId id) {
    const std::lock_guard lock(mutex_);
    handles_.erase(id);
  }

 private:
  mutable std::mutex mutex_;
  std::map<HandleId, std::shared_ptr<DirectoryHandle>> handles_;
  std::uint64_t last_ = 0;
};

}  // namespace lccfs
