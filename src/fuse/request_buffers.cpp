// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/request_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace lccfs::fuse {

namespace {
/// A smaller write costs less to copy than memory for a request of 1 MiB that it would keep.
constexpr std::size_t least_kept_bytes = 64 << 10;
/// Thousands of requests may wait for the store, each with a fraction of the memory of its largest.
constexpr unsigned most_kept = 32;
constexpr std::size_t most_spare = 16;

SharedBytes copy(const char* data, std::size_t size_bytes) {
  std::shared_ptr<char[]> owner = std::make_shared_for_overwrite<char[]>(size_bytes);
  std::copy_n(data, size_bytes, owner.get());
  const char* bytes = owner.get();
  return {.owner = std::shared_ptr<const char>(std::move(owner), bytes), .data = bytes, .size_bytes = size_bytes};
}
}  // namespace

RequestBuffers::~RequestBuffers() { std::free(current_.mem); }

SharedBytes RequestBuffers::keep(const char* data, std::size_t size_bytes) {
  const auto other = size_bytes < least_kept_bytes ? std::nullopt : spare_->begin_keeping();
  if (!other) return copy(data, size_bytes);
  void* const memory = std::exchange(current_.mem, *other);
  return {
      .owner = std::shared_ptr<const char>(data, [spare = spare_, memory](const char*) { spare->end_keeping(memory); }),
      .data = data,
      .size_bytes = size_bytes};
}

RequestBuffers::Spare::~Spare() { std::ranges::for_each(memory_, std::free); }

std::optional<void*> RequestBuffers::Spare::begin_keeping() {
  const Lock lock(mutex_);
  if (kept_ == most_kept) return std::nullopt;
  ++kept_;
  if (memory_.empty()) return nullptr;
  void* const memory = memory_.back();
  memory_.pop_back();
  return memory;
}

void RequestBuffers::Spare::end_keeping(void* memory) {
  {
    const Lock lock(mutex_);
    --kept_;
    if (memory_.size() < most_spare) return memory_.push_back(memory);
  }
  std::free(memory);
}

}  // namespace lccfs::fuse
