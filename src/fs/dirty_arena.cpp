// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Blocks are given out as buddies: 2^order of them, from one up to a unit, which is as large as a record can be. Two halves
// of a whole are joined as soon as both are free. What was used last is used first: each page of fresh memory costs a
// fault.
//
// A record gets no more than the power of two that it needs. It grows where it is as long as nobody lies behind it, and
// large ones begin in units of their own as long as there are such: so the bytes of a stream are mostly copied once.
#include "fs/dirty_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) static_cast<void>(0)
#endif

namespace lccfs {

namespace {
constexpr std::size_t unit_blocks = DirtyArena::most_record_bytes / DirtyArena::block_bytes;
constexpr unsigned unit_order = std::countr_zero(unit_blocks);

/// So much at once is the beginning of a stream, which will fill its unit.
constexpr std::size_t stream_begins_bytes = 64 << 10;

constexpr std::size_t blocks_of(unsigned order) { return std::size_t{1} << order; }

unsigned order_of(std::size_t size_bytes) {
  const auto blocks = (size_bytes + DirtyArena::block_bytes - 1) / DirtyArena::block_bytes;
  return static_cast<unsigned>(std::countr_zero(std::bit_ceil(blocks)));
}

void publish_size(DirtyArena::Header& header, std::size_t size_bytes) {
  std::atomic_ref(header.size_bytes).store(static_cast<std::uint32_t>(size_bytes), std::memory_order_release);
}
}  // namespace

// ---- a region

/// Not synchronized.
class DirtyArena::Region {
 public:
  Region();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::span<Header> table() const { return {reinterpret_cast<Header*>(memory_), region_blocks}; }
  char* bytes_of(std::size_t block) const { return memory_ + table_bytes + block * block_bytes; }
  std::size_t taken_blocks() const { return taken_blocks_; }

  /// The first of the blocks. nullopt: there are not so many side by side.
  std::optional<std::size_t> take(unsigned order);
  bool widen(std::size_t block, unsigned order, unsigned wanted_order);
  void give_back(std::size_t block, unsigned order);

 private:
  /// Of the first block of some. Beside the headers, which tell nothing of free blocks.
  struct Link {
    std::uint32_t previous, next;  // in the list of its order
    std::uint32_t order;
    bool is_free;  // else the other fields say nothing
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::size_t table_bytes = region_blocks * sizeof(Header);
  static constexpr std::size_t links_at = table_bytes + region_blocks * block_bytes;
  static constexpr std::size_t memory_bytes = links_at + region_blocks * sizeof(Link);

  Link& link(std::size_t block) const { return reinterpret_cast<Link*>(memory_ + links_at)[block]; }
  bool is_free(std::size_t block, unsigned order) const { return link(block).is_free && link(block).order == order; }
  void add_free(std::size_t block, unsigned order);
  void remove_free(std::size_t block);

  char* memory_;
  std::array<std::uint32_t, unit_order + 1> first_free_;  // by order
  std::size_t fresh_from_ = 0;                            // units of which nothing was ever taken
  std::size_t taken_blocks_ = 0;
};

/// Large pages would make memory resident that nobody writes to.
DirtyArena::Region::Region() {
  void* const memory =
      ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, memory_bytes, MADV_NOHUGEPAGE);
  memory_ = static_cast<char*>(memory);
  first_free_.fill(none);
}

DirtyArena::Region::~Region() {
  ASAN_UNPOISON_MEMORY_REGION(bytes_of(0), fresh_from_ * block_bytes);
  ::munmap(memory_, memory_bytes);
}

void DirtyArena::Region::add_free(std::size_t block, unsigned order) {
  const auto next = std::exchange(first_free_[order], static_cast<std::uint32_t>(block));
  if (next != none) link(next).previous = first_free_[order];
  link(block) = {none, next, order, true};
}

void DirtyArena::Region::remove_free(std::size_t block) {
  const Link was = std::exchange(link(block), {});
  (was.previous == none ? first_free_[was.order] : link(was.previous).next) = was.next;
  if (was.next != none) link(was.next).previous = was.previous;
}

std::optional<std::size_t> DirtyArena::Region::take(unsigned order) {
  const bool has_units = first_free_[unit_order] != none || fresh_from_ < region_blocks;
  auto from = has_units && blocks_of(order) * block_bytes >= stream_begins_bytes ? unit_order : order;
  while (from < unit_order && first_free_[from] == none) ++from;
  std::size_t block = first_free_[from];
  if (block != none) {
    remove_free(block);
  } else if (fresh_from_ < region_blocks) {
    block = std::exchange(fresh_from_, fresh_from_ + unit_blocks);
  } else {
    return std::nullopt;
  }
  while (from > order) {
    --from;
    add_free(block + blocks_of(from), from);
  }
  taken_blocks_ += blocks_of(order);
  ASAN_UNPOISON_MEMORY_REGION(bytes_of(block), blocks_of(order) * block_bytes);
  return block;
}

bool DirtyArena::Region::widen(std::size_t block, unsigned order, unsigned wanted_order) {
  if (block % blocks_of(wanted_order) != 0) return false;
  for (auto next = order; next < wanted_order; ++next) {
    if (!is_free(block + blocks_of(next), next)) return false;
  }
  for (auto next = order; next < wanted_order; ++next) remove_free(block + blocks_of(next));
  taken_blocks_ += blocks_of(wanted_order) - blocks_of(order);
  ASAN_UNPOISON_MEMORY_REGION(bytes_of(block), blocks_of(wanted_order) * block_bytes);
  return true;
}

void DirtyArena::Region::give_back(std::size_t block, unsigned order) {
  ASAN_POISON_MEMORY_REGION(bytes_of(block), blocks_of(order) * block_bytes);
  taken_blocks_ -= blocks_of(order);
  for (; order < unit_order; ++order) {
    const auto buddy = block ^ blocks_of(order);
    if (!is_free(buddy, order)) break;
    remove_free(buddy);
    block = std::min(block, buddy);
  }
  add_free(block, order);
}

// ---- the arena

DirtyArena::DirtyArena() = default;
DirtyArena::~DirtyArena() = default;

/// From the first region that has room: so the others become empty.
DirtyArena::Place DirtyArena::take(unsigned order) {
  const auto place_in = [order](Region& region) -> std::optional<Place> {
    const auto block = region.take(order);
    if (!block) return std::nullopt;
    return Place{&region, &region.table()[*block], region.bytes_of(*block)};
  };
  const Lock lock(mutex_);
  std::optional<Place> place;
  for (auto at = regions_.begin(); at != regions_.end() && !place; ++at) place = place_in(**at);
  if (!place) place = place_in(*regions_.emplace_back(std::make_unique<Region>()));
  place->header->number = ++last_number_;
  place->header->order = order;
  return *place;
}

bool DirtyArena::widen(const Place& place, unsigned order) {
  const auto block = static_cast<std::size_t>(place.header - place.region->table().data());
  const Lock lock(mutex_);
  if (!place.region->widen(block, place.header->order, order)) return false;
  place.header->order = order;
  return true;
}

void DirtyArena::give_back(const Place& place) noexcept {
  const auto block = static_cast<std::size_t>(place.header - place.region->table().data());
  std::unique_ptr<Region> empty;  // goes without the lock: the kernel takes a while
  const Lock lock(mutex_);
  publish_size(*place.header, 0);
  place.region->give_back(block, place.header->order);
  if (place.region->taken_blocks() != 0 || place.region == regions_.front().get()) return;
  const auto is_it = [&](const std::unique_ptr<Region>& region) { return region.get() == place.region; };
  const auto at = std::ranges::find_if(regions_, is_it);
  empty = std::move(*at);
  regions_.erase(at);
}

std::vector<std::span<const DirtyArena::Header>> DirtyArena::regions() const {
  const Lock lock(mutex_);
  std::vector<std::span<const Header>> tables;
  tables.reserve(regions_.size());
  for (const auto& region : regions_) tables.emplace_back(region->table());
  return tables;
}

std::uint64_t DirtyArena::taken_bytes() const {
  const Lock lock(mutex_);
  std::uint64_t blocks = 0;
  for (const auto& region : regions_) blocks += region->taken_blocks();
  return blocks * block_bytes;
}

// ---- a record

DirtyRecord::DirtyRecord(std::shared_ptr<DirtyArena> arena, Ino ino, std::uint64_t offset_bytes,
                         std::span<const char> bytes)
    : arena_(std::move(arena)), place_(arena_->take(order_of(bytes.size()))), size_bytes_(bytes.size()) {
  std::memcpy(place_.bytes, bytes.data(), bytes.size());
  place_.header->ino = ino;
  place_.header->offset_bytes = offset_bytes;
  publish_size(*place_.header, size_bytes_);
}

DirtyRecord::DirtyRecord(DirtyRecord&& other) noexcept
    : arena_(std::move(other.arena_)), place_(other.place_), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

DirtyRecord::~DirtyRecord() {
  if (arena_) arena_->give_back(place_);
}

void DirtyRecord::move_to(unsigned order) {
  const auto place = arena_->take(order);
  std::memcpy(place.bytes, place_.bytes, size_bytes_);
  place.header->ino = place_.header->ino;
  place.header->offset_bytes = place_.header->offset_bytes;
  publish_size(*place.header, size_bytes_);
  arena_->give_back(std::exchange(place_, place));
}

void DirtyRecord::append(std::span<const char> bytes) {
  reserve(size_bytes_ + bytes.size());
  std::memcpy(place_.bytes + size_bytes_, bytes.data(), bytes.size());
  size_bytes_ += bytes.size();
  publish_size(*place_.header, size_bytes_);
}

void DirtyRecord::overwrite(std::size_t at_bytes, std::span<const char> bytes) {
  std::memcpy(place_.bytes + at_bytes, bytes.data(), bytes.size());
}

void DirtyRecord::reserve(std::size_t size_bytes) {
  const auto order = order_of(size_bytes);
  if (order > place_.header->order && !arena_->widen(place_, order)) move_to(order);
}

void DirtyRecord::withdraw() { publish_size(*place_.header, 0); }

}  // namespace lccfs
