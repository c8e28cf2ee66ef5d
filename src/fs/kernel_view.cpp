// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/kernel_view.h"

#include <utility>

#include "base/log.h"

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
  const Lock lock(mutex_);
  told_.erase(ino);
  if (auto* pages = find(ino)) pages->may_be_held = pages->is_forgotten = pages->buffered_handles != 0;
  drop_if_needless(ino);
}

// ---- attributes

KernelView::Told KernelView::told_of(const Attributes& attributes) {
  return {attributes.size_bytes, attributes.mtime, attributes.ctime};
}

void KernelView::told(const Attributes& attributes) {
  const Lock lock(mutex_);
  told_[attributes.ino] = told_of(attributes);
}

void KernelView::drop_attributes_unless(const Attributes& now) {
  {
    const Lock lock(mutex_);
    const auto found = told_.find(now.ino);
    if (found != told_.end() && found->second == told_of(now)) return;
  }
  drop_attributes(now.ino);
}

void KernelView::drop_attributes(Ino ino) {
  tell([ino](KernelCache& cache) { cache.invalidate_attributes(ino); });
}

bool KernelView::knows_size(Ino ino, std::uint64_t size_bytes) {
  const Lock lock(mutex_);
  const auto found = told_.find(ino);
  return found != told_.end() && found->second.size_bytes >= size_bytes;
}

// ---- names

bool KernelView::can_keep_names() {
  bool can = false;
  tell([&can](const KernelCache& cache) { can = cache.can_keep_names(); });
  return can;
}

void KernelView::expire_name(Ino directory, const std::string& name) {
  tell([directory, &name](KernelCache& cache) { cache.expire_name(directory, name); });
}

void KernelView::forget_names() {
  tell([](KernelCache& cache) { cache.forget_names(); });
}

void KernelView::forget_names_of(Ino directory) {
  forget_names();
  name_threads_.post([this, directory] {
    expire_name(directory, ".");  // no name in the kernel: it waits for the directory alone
    forget_names();
  });
}

// ---- pages

bool KernelView::right_for(const Pages& pages, const Inode& view, Holder holder) {
  if (!pages.may_be_held) return true;
  if (!pages.right || holder == Holder::another) return false;
  // Ours in memory and not in the store: it was released, and others may have come and gone since.
  return pages.leased ? holder == Holder::me : pages.stamp == view.bytes_stamp();
}

/// From now on. What another holds may change at any time under the same stamp.
void KernelView::are_right(Pages& pages, const Inode& view, Holder holder) {
  pages.right = pages.leased ? holder == Holder::me : holder == Holder::nobody;
  pages.stamp = view.bytes_stamp();
}

bool KernelView::opened(const Inode& view, Holder holder, bool buffered) {
  std::uint64_t leases = 0;
  {
    const Lock lock(mutex_);
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
  const Lock lock(mutex_);
  auto* pages = find(view.ino);
  if (pages != nullptr && pages->leases == leases) are_right(*pages, view, holder);
  return false;
}

void KernelView::closed(Ino ino, bool may_be_mapped) {
  const Lock lock(mutex_);
  auto* pages = find(ino);
  if (pages == nullptr) return;
  --pages->buffered_handles;
  const bool may_have_needless = may_be_mapped || pages->is_forgotten;
  if (may_have_needless && pages->may_be_held && pages->buffered_handles == 0) {
    page_threads_.post([this, ino] { drop_unused_pages(ino); });
  }
  drop_if_needless(ino);
}

void KernelView::mapped(Ino ino) {
  const Lock lock(mutex_);
  auto& pages = pages_[ino];
  // As of when they are right is not known: the next open drops them, unless the lease is ours.
  pages.right = pages.leased && (pages.right || !pages.may_be_held);
  pages.may_be_held = true;
  ++pages.buffered_handles;
  ++pages.opens;
}

bool KernelView::lease_taken(Ino ino, const objects::BytesStamp& since) {
  const Lock lock(mutex_);
  auto& pages = pages_[ino];
  ++pages.leases;
  pages.leased = true;
  pages.right = !pages.may_be_held || (pages.right && since.is_known() && pages.stamp == since);
  return pages.right;
}

void KernelView::lease_released(Ino ino, const objects::BytesStamp& left) {
  const Lock lock(mutex_);
  auto* pages = find(ino);
  if (pages == nullptr) return;
  ++pages->leases;
  pages->leased = false;
  pages->right = pages->right && left.is_known();
  pages->stamp = left;
  drop_if_needless(ino);
}

void KernelView::stamp_moved(Ino ino, const objects::BytesStamp& from, const objects::BytesStamp& to) {
  const Lock lock(mutex_);
  auto* pages = find(ino);
  if (pages != nullptr && !pages->leased && pages->stamp == from) pages->stamp = to;
}

void KernelView::pages_are_wrong(Ino ino) {
  const Lock lock(mutex_);
  if (auto* pages = find(ino)) pages->right = false;
  drop_pages_later(ino);
}

/// All of the files whose pages may be changed through a mapping: a handle that is not counted may be mapped, too.
std::vector<Ino> KernelView::with_pages() {
  std::vector<Ino> files;
  const Lock lock(mutex_);
  for (const auto& [ino, pages] : pages_) {
    if (pages.may_be_held) files.push_back(ino);
  }
  return files;
}

void KernelView::write_back_all(Clock& clock, std::chrono::nanoseconds at_most,
                                const std::function<bool(Ino)>& is_open) {
  struct Rest {
    Mutex mutex;
    std::condition_variable changed;
    std::size_t files GUARDED_BY(mutex) = 0;
  };
  auto files = with_pages();
  std::erase_if(files, [&is_open](Ino ino) { return !is_open(ino); });
  const auto rest = std::make_shared<Rest>();
  Lock lock(rest->mutex);
  rest->files = files.size();
  for (const Ino ino : files) {
    page_threads_.post([this, ino, rest] {
      drop_pages(ino);
      const Lock one_less(rest->mutex);
      --rest->files;
      rest->changed.notify_all();
    });
  }
  const auto are_written = [&rest]() REQUIRES(rest->mutex) { return rest->files == 0; };
  if (!clock.wait_for(rest->changed, lock, at_most, are_written))
    log::warning(std::to_string(rest->files) + " files: not all that was changed in their mappings is written back");
}

void KernelView::write_back_pages(Ino ino, ThreadPool::Work done) {
  if (!may_hold_pages(ino)) return done();
  page_threads_.post([this, ino, done = std::move(done)]() mutable {
    drop_pages(ino);  // there is no other way to have them written
    done();
  });
}

bool KernelView::may_hold_pages(Ino ino) {
  const Lock lock(mutex_);
  const auto* pages = find(ino);
  return pages != nullptr && pages->may_be_held;
}

void KernelView::drop_written_pages(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes,
                                    ThreadPool::Work done) {
  if (!may_hold_pages(ino)) return done();
  page_threads_.post([=, this, done = std::move(done)]() mutable {
    drop_written_pages_now(ino, offset_bytes, size_bytes);
    done();
  });
}

/// If no handle uses pages any more, all of them are dropped, so that the next write finds none.
void KernelView::drop_written_pages_now(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (drop_unused_pages(ino) || !may_hold_pages(ino)) return;
  tell([=](KernelCache& cache) { cache.invalidate_page_range(ino, offset_bytes, size_bytes); });
}

bool KernelView::drop_unused_pages(Ino ino) {
  std::uint64_t opens = 0;
  {
    const Lock lock(mutex_);
    const auto* pages = find(ino);
    if (pages == nullptr || !pages->may_be_held || pages->buffered_handles != 0) return false;
    opens = pages->opens;
  }
  drop_pages(ino);
  const Lock lock(mutex_);
  auto* pages = find(ino);
  if (pages == nullptr || pages->opens != opens || pages->buffered_handles != 0) return true;
  pages->may_be_held = pages->is_forgotten = false;
  drop_if_needless(ino);
  return true;
}

void KernelView::drop_pages(Ino ino) {
  tell([ino](KernelCache& cache) { cache.invalidate_pages(ino); });
}

void KernelView::drop_pages_later(Ino ino) {
  page_threads_.post([this, ino] { drop_pages(ino); });
}

/// The page of the old end has zeros after it, that of the new one has nothing but the byte: neither may stay.
void KernelView::tell_size(Ino ino, std::uint64_t size_bytes, char byte, ThreadPool::Work done) {
  page_threads_.post([=, this, done = std::move(done)]() mutable {
    drop_pages(ino);
    tell([=](KernelCache& cache) { cache.raise_size(ino, size_bytes, byte); });
    drop_pages(ino);
    done();
  });
}

/// Counted before `may_go` is asked: a thread that forbids it first, and then waits, waits for this one, too. The
/// attributes wait for no page. One thread drops the pages of a file.
void KernelView::changed_elsewhere(Ino ino, const std::function<bool()>& may_go) {
  begin_change(ino);
  if (!may_go()) return end_change(ino);
  bool is_first = false;
  {
    const Lock lock(mutex_);
    is_first = !dropping_.contains(ino);
    dropping_[ino] = !is_first;
  }
  if (is_first) page_threads_.post([this, ino] { drop_changed_pages(ino); });
  page_threads_.post([this, ino] {
    drop_attributes(ino);
    end_change(ino);
  });
}

/// As above.
void KernelView::drop_now(Ino ino, const std::function<bool()>& may_go, const std::function<void()>& drop) {
  begin_change(ino);
  if (may_go()) drop();
  end_change(ino);
}

void KernelView::begin_change(Ino ino) {
  const Lock lock(mutex_);
  ++changes_[ino];
}

void KernelView::end_change(Ino ino) {
  const Lock lock(mutex_);
  const auto under_way = changes_.find(ino);
  if (--under_way->second != 0) return;
  changes_.erase(under_way);
  dropped_.notify_all();
}

void KernelView::wait_for_changes(Ino ino) {
  Lock lock(mutex_);
  lock.wait(dropped_, [this, ino]() REQUIRES(mutex_) { return !dropping_.contains(ino) && !changes_.contains(ino); });
}

void KernelView::drop_changed_pages(Ino ino) {
  for (bool again = true; again;) {
    drop_pages(ino);
    const Lock lock(mutex_);
    const auto under_way = dropping_.find(ino);
    again = std::exchange(under_way->second, false);
    if (again) continue;
    dropping_.erase(under_way);
    dropped_.notify_all();
  }
}

KernelView::Pages* KernelView::find(Ino ino) {
  const auto found = pages_.find(ino);
  return found == pages_.end() ? nullptr : &found->second;
}

void KernelView::drop_if_needless(Ino ino) {
  const auto* pages = find(ino);
  if (pages != nullptr && !pages->may_be_held && !pages->leased && pages->buffered_handles == 0) pages_.erase(ino);
}

}  // namespace lccfs
