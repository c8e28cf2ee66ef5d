// SPDX-License-Identifier: LGPL-2.1-or-later
// Directories that are open here, each with one page of its listing, and those that inodes point to which were made
// here and may have no name yet. A collector asks before it removes a directory: one of these stays
// (docs/PROTOCOL.md section 5). Any thread; never blocks.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "lccfs/file_system.h"

namespace lccfs {

/// Part of a listing: all entries whose cookies are above `after` and, unless it is the last part, up to those of the
/// last entry in it.
struct ListingPage {
  bool read = false;
  std::chrono::nanoseconds sent{0};  // when the read was
  std::uint64_t after = 0;
  std::vector<DirectoryEntry> entries;
  bool last = false;

  bool covers(std::uint64_t cookie) const {
    return read && cookie >= after && (last || (!entries.empty() && cookie < entries.back().cookie));
  }
};

struct DirectoryHandle {
  explicit DirectoryHandle(Ino directory) : ino(directory) {}
  const Ino ino;
  Mutex mutex;  // held while a page is read, and a client in its way is asked: one at a time for one handle
  bool listed GUARDED_BY(mutex) = false;
  ListingPage page GUARDED_BY(mutex);
};

/// An inode that may point back to a directory, because of an operation that failed, without a name there.
struct PointerInDoubt {
  Ino ino, parent;
  bool operator==(const PointerInDoubt&) const = default;
};

class DirectoriesInUse {
 public:
  std::pair<HandleId, std::shared_ptr<DirectoryHandle>> open(Ino ino) {
    const Lock lock(mutex_);
    return *handles_.emplace(HandleId{++last_}, std::make_shared<DirectoryHandle>(ino)).first;
  }
  /// nullptr: not open.
  std::shared_ptr<DirectoryHandle> get(HandleId id) const {
    const Lock lock(mutex_);
    const auto found = handles_.find(id);
    return found == handles_.end() ? nullptr : found->second;
  }
  void release(HandleId id) {
    const Lock lock(mutex_);
    handles_.erase(id);
  }

  /// Around a make. Look at what memory holds of the directory only inside it. Otherwise a collector may be told
  /// meanwhile that no operation here needs the directory.
  class Making {
   public:
    Making(DirectoriesInUse& directories, Ino parent) : directories_(directories), parent_(parent) {
      directories_.keep(parent_);
    }
    ~Making() {
      const Lock lock(directories_.mutex_);
      directories_.parents_of_new_.extract(parent_);
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    DirectoriesInUse& directories_;
    const Ino parent_;
  };
  /// For an inode whose name is in doubt: the directory stays here to the end.
  void keep(Ino parent) {
    const Lock lock(mutex_);
    parents_of_new_.insert(parent);
  }
  /// Until it is let go.
  void keep(const PointerInDoubt& pointer) {
    const Lock lock(mutex_);
    in_doubt_.push_back(pointer);
  }
  void let_go(const PointerInDoubt& pointer) {
    const Lock lock(mutex_);
    std::erase(in_doubt_, pointer);
  }
  /// Those to this directory.
  std::vector<PointerInDoubt> in_doubt(Ino parent) const {
    const Lock lock(mutex_);
    std::vector<PointerInDoubt> found;
    std::ranges::copy_if(in_doubt_, std::back_inserter(found),
                         [parent](const PointerInDoubt& one) { return one.parent == parent; });
    return found;
  }

  bool is_open(Ino ino) const {
    const Lock lock(mutex_);
    return std::ranges::any_of(handles_, [ino](const auto& handle) { return handle.second->ino == ino; });
  }
  bool is_parent_of_new(Ino ino) const {
    const Lock lock(mutex_);
    const auto leads_here = [ino](const PointerInDoubt& one) { return one.parent == ino; };
    return parents_of_new_.contains(ino) || std::ranges::any_of(in_doubt_, leads_here);
  }

 private:
  mutable Mutex mutex_;
  std::map<HandleId, std::shared_ptr<DirectoryHandle>> handles_ GUARDED_BY(mutex_);
  /// No number is that of an open file, too: who has a request by its handle's number alone need not ask what it is of.
  std::uint64_t last_ GUARDED_BY(mutex_) = std::uint64_t{1} << 47;
  std::multiset<Ino> parents_of_new_ GUARDED_BY(mutex_);  // a kept one is there once more for ever
  std::vector<PointerInDoubt> in_doubt_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
