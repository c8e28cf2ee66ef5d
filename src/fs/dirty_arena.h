// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The memory of the bytes that were written, and that the store does not have yet: one arena for all write buffers of a
// mount (docs/DATA.md section 10). Its records say all about themselves. So whoever has this memory and nothing else
// finds in it what was answered and not stored.
//
// The layout, on which such a reader relies:
//
// - The arena is a few *regions*. Each begins with a table of `region_blocks` headers. As many blocks of `block_bytes`
//   follow. Memory that was never used is zero.
// - A *record* is some bytes of one file, one after the other, from the beginning of a block on. Its header stands in the
//   table at the number of that block. A header with size 0 begins no record: its block is free, goes on with another
//   record, or holds what nobody needs any more. The other fields then say nothing.
// - All records together are what is to be stored. Where two of one file overlap, the one with the greater number lies
//   over the other, or their bytes are the same.
//
// At each moment, also where its process is killed:
//
// - The size becomes what it is after the bytes below it, and after the other fields.
// - A record that moves, or becomes a part of another, is whole in its new place before it leaves the old one. Until then
//   the same bytes are there twice.
// - What was answered is there until the store has it, and no longer: also where the store holds the memory longer.
// - Of a write that was not answered, any part may be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "lccfs/types.h"

namespace lccfs {

/// Any thread. Nothing here waits, but for other calls of the same arena: so completions may let go of records. No memory
/// to be had: std::bad_alloc, and nothing has changed.
class DirtyArena {
 public:
  static constexpr std::size_t block_bytes = 512;
  static constexpr std::size_t region_blocks = (64 << 20) / block_bytes;
  /// As many blocks as that lie side by side, at a multiple of it.
  static constexpr std::size_t most_record_bytes = 1 << 20;

  struct Header {
    Ino ino;
    std::uint64_t offset_bytes = 0;  // in the file
    std::uint64_t number = 0;        // counts up
    std::uint32_t size_bytes = 0;  // 0: begins no record. Written and read as a whole, and in order (release, acquire)
    std::uint32_t order = 0;       // it may take up 2^order blocks; its first one is a multiple of that
  };
  static_assert(sizeof(Header) == 32);

  DirtyArena();
  ~DirtyArena();
  DirtyArena(const DirtyArena&) = delete;
  DirtyArena& operator=(const DirtyArena&) = delete;

  /// The table of each region; its blocks lie behind it. They may change and go at any time: for whoever knows that
  /// nobody writes.
  std::vector<std::span<const Header>> regions() const EXCLUDES(mutex_);
  /// In use by records, the rest of their last block and further ones that they keep included.
  std::uint64_t taken_bytes() const EXCLUDES(mutex_);

 private:
  friend class DirtyRecord;
  class Region;
  /// Where a record lies.
  struct Place {
    Region* region = nullptr;
    Header* header = nullptr;
    char* bytes = nullptr;
  };

  Place take(unsigned order) EXCLUDES(mutex_);
  /// Makes the place larger where it is. false: others lie behind it.
  bool widen(const Place& place, unsigned order) EXCLUDES(mutex_);
  void give_back(const Place& place) noexcept EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Region>> regions_
      GUARDED_BY(mutex_);  // the first one stays, others go when they are empty
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
};

/// One record. It may be read by several threads at once, changed by one, and destroyed by any.
class DirtyRecord {
 public:
  /// Copies the bytes: some, and at most `most_record_bytes`. Lies over all records that are there.
  DirtyRecord(std::shared_ptr<DirtyArena> arena, Ino ino, std::uint64_t offset_bytes, std::span<const char> bytes);
  DirtyRecord(DirtyRecord&& other) noexcept;
  DirtyRecord(const DirtyRecord&) = delete;
  DirtyRecord& operator=(const DirtyRecord&) = delete;
  ~DirtyRecord();

  /// Until it grows.
  std::span<const char> bytes() const { return {place_.bytes, size_bytes_}; }
  std::size_t size_bytes() const { return size_bytes_; }

  /// At its end; `most_record_bytes` in all.
  void append(std::span<const char> bytes);
  /// Some that it has.
  void overwrite(std::size_t at_bytes, std::span<const char> bytes);
  /// It will grow to that.
  void reserve(std::size_t size_bytes);
  /// The store has its bytes, or another record: a reader of the arena finds it no more. It can still be read, and does
  /// not change again.
  void withdraw();

 private:
  void move_to(unsigned order);

  std::shared_ptr<DirtyArena> arena_;
  DirtyArena::Place place_;
  std::size_t size_bytes_;
};

}  // namespace lccfs
