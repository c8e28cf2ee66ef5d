// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/kernel_view.h"

namespace lccfs {

void KernelView::set(KernelCache* cache) {
  const std::lock_guard lock(cache_mutex_);
  cache_ = cache;
}

void KernelView::tell(const std::function<void(KernelCache&)>& what) {
  const std::shared_lock lock(cache_mutex_);
  if (cache_ != nullptr) what(*cache_);
}

void KernelView::forget(Ino ino) {
  const std::lock_guard lock(mutex_);
  told_.erase(ino);
  const auto record = pages_.find(ino);
  if (record == pages_.end()) return;
  record->second.may_be_held = false;
  drop_needless(record);
}

// ---- attributes

KernelView::Told KernelView::told_of(const Attributes& attributes) {
  return {attributes.size_bytes, attributes.mtime, attributes.ctime};
}

void KernelView::told(const Attributes& attributes) {
  const std::lock_guard lock(mutex_);
  told_[attributes.ino] = told_of(attributes);
}

void KernelView::drop_attributes_unless(const Attributes& now) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = told_.find(now.ino);
    if (found != told_.end() && found->second == told_of(now)) return;
  }
  drop_attributes(now.ino);
}

void KernelView::drop_attributes(Ino ino) {
  tell([ino](KernelCache& cache) { cache.invalidate_attributes(ino); });
}

// ---- pages

bool KernelView::right_for(const Pages& pages, const InodeView& view, Holder holder) {
  if (!pages.may_be_held) return true;
  if (!pages.right || holder == Holder::another) return false;
  // Ours in memory and not in the store: it was given back, and others may have come and gone since.
  return pages.leased ? holder == Holder::me : pages.version == view.version;
}

/// From now on. What another holds may change at any time without a new version.
void KernelView::are_right(Pages& pages, const InodeView& view, Holder holder) {
  pages.right = pages.leased ? holder == Holder::me : holder == Holder::nobody;
  pages.version = view.version;
}

bool KernelView::opened(const InodeView& view, Holder holder, bool buffered) {
  std::uint64_t leases = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!buffered && !pages_.contains(view.ino)) return true;
    auto& pages = pages_[view.ino];
    const bool right = right_for(pages, view, holder);
    if (right) are_right(pages, view, holder);
    if (buffered) {
      pages.may_be_held = true;
      ++pages.buffered_handles;
      ++pages.opens;
    }
    if (right) return true;
    leases = pages.leases;
  }
  drop_pages(view.ino);
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(view.ino);
  if (record != pages_.end() && record->second.leases == leases) are_right(record->second, view, holder);
  return false;
}

void KernelView::closed(Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  if (record == pages_.end()) return;
  --record->second.buffered_handles;
  drop_needless(record);
}

void KernelView::mapped(Ino ino) {
  const std::lock_guard lock(mutex_);
  auto& pages = pages_[ino];
  // As of which version they are going to be right nobody has looked: the next open drops them, unless the lease is ours.
  pages.right = pages.leased && (pages.right || !pages.may_be_held);
  pages.may_be_held = true;
  ++pages.buffered_handles;
  ++pages.opens;
}

void KernelView::lease_taken(Ino ino, std::uint64_t since_version) {
  const std::lock_guard lock(mutex_);
  auto& pages = pages_[ino];
  ++pages.leases;
  pages.leased = true;
  pages.right = !pages.may_be_held || (pages.right && since_version != 0 && pages.version == since_version);
}

void KernelView::lease_given_back(Ino ino, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  if (record == pages_.end()) return;
  auto& pages = record->second;
  ++pages.leases;
  pages.leased = false;
  pages.right = pages.right && version != 0;
  pages.version = version;
  drop_needless(record);
}

void KernelView::version_moved(Ino ino, std::uint64_t from, std::uint64_t to) {
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  if (record != pages_.end() && !record->second.leased && record->second.version == from) record->second.version = to;
}

void KernelView::pages_are_wrong(Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  if (record != pages_.end()) record->second.right = false;
}

bool KernelView::may_hold_pages(Ino ino) const {
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  return record != pages_.end() && record->second.may_be_held;
}

/// With nobody left who reads or writes through them they all go, so that the next write finds none.
void KernelView::drop_written_pages(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  std::uint64_t opens = 0;
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    const auto record = pages_.find(ino);
    if (record == pages_.end() || !record->second.may_be_held) return;
    opens = record->second.opens;
    all = record->second.buffered_handles == 0;
  }
  if (!all) {
    return tell([=](KernelCache& cache) { cache.invalidate_page_range(ino, offset_bytes, size_bytes); });
  }
  drop_pages(ino);
  const std::lock_guard lock(mutex_);
  const auto record = pages_.find(ino);
  if (record == pages_.end() || record->second.opens != opens || record->second.buffered_handles != 0) return;
  record->second.may_be_held = false;
  drop_needless(record);
}

void KernelView::drop_pages(Ino ino) {
  tell([ino](KernelCache& cache) { cache.invalidate_pages(ino); });
}

void KernelView::drop_needless(Table::iterator record) {
  const auto& pages = record->second;
  if (!pages.may_be_held && !pages.leased && pages.buffered_handles == 0) pages_.erase(record);
}

}  // namespace lccfs
