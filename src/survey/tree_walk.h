// SPDX-License-Identifier: LGPL-2.1-or-later
// All that has a name below a directory, as it is stored, with many reads in flight and little memory: a bounded number
// of pages of names is read at once, then their inodes, some at once. Takes no lease and changes nothing. What changes
// meanwhile may be seen as it was or as it is.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "format/records.h"
#include "objects/inode.h"

namespace lccfs::survey {

struct WalkedEntry {
  std::string name;
  format::EntryRecord record;
  objects::Inode inode;
};

/// A part of a directory: what names live inodes there. A directory without any has one page, too.
struct WalkedPage {
  Ino directory;
  std::uint64_t tag = 0;  ///< as it was entered with
  std::vector<WalkedEntry> entries;
};

/// One thread.
class TreeWalk {
 public:
  /// What cannot be read of the volume, in one line. The walk continues without it.
  using OnDamage = std::function<void(const std::string&)>;
  /// Called by the thread of `run`; enters the directories below.
  using OnPage = std::function<Result<>(const WalkedPage&)>;

  /// `parts` of each inode, `jobs` reads in flight. No more than `inodes_at_once` (1 or more) are in memory.
  TreeWalk(objects::Query query, const format::VolumeUuid& uuid, objects::InodeParts parts, unsigned jobs,
           std::size_t inodes_at_once, OnDamage on_damage)
      : query_(std::move(query)),
        uuid_(uuid),
        parts_(std::move(parts)),
        jobs_(jobs),
        inodes_at_once_(inodes_at_once),
        on_damage_(std::move(on_damage)) {}

  /// A directory is entered once, whatever names it.
  void enter(Ino directory, std::uint64_t tag = 0);
  /// Until all that was entered is walked. An error is the store's, or of `on_page`.
  Result<> run(const OnPage& on_page);

 private:
  struct Job {
    Ino directory;
    std::uint64_t tag = 0;
    std::string after;
  };
  struct ReadEntry;
  struct ReadPage;

  Result<> walk_some(const OnPage& on_page);
  void read_names(ReadPage& page) const;
  std::size_t count_of_some(std::span<const ReadPage> pages) const;
  void read_inodes(std::span<ReadPage> pages) const;
  Result<WalkedPage> judge(ReadPage page);

  const objects::Query query_;
  const format::VolumeUuid uuid_;
  const objects::InodeParts parts_;
  const unsigned jobs_;
  const std::size_t inodes_at_once_;
  const OnDamage on_damage_;
  std::deque<Job> line_;
  std::unordered_set<Ino> entered_;
};

}  // namespace lccfs::survey
