// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/kernel_model.h"

#include <fcntl.h>
#include <linux/fuse.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "fuse/answers.h"
#include "support/namespace_calls.h"

namespace lccfs::crash {

namespace {

constexpr std::chrono::microseconds time_of_a_request{1};  // two writes have two mtimes
constexpr std::chrono::milliseconds hears_within{5};

thread_local unsigned requests_of_thread = 0;     // who tells the kernel something in the course of one
thread_local bool is_of_the_file_system = false;  // no program: nobody else runs in the midst of what it does

fuse_open_out open_out_of(const std::string& answer) {
  fuse_open_out out = {};
  std::memcpy(&out, answer.data() + answer.size() - sizeof out, sizeof out);
  return out;
}

}  // namespace

/// Something that others would have to wait for.
class KernelModel::Held {
 public:
  explicit Held(unsigned& count, std::condition_variable* free = nullptr) : count_(count), free_(free) { ++count_; }
  ~Held() {
    --count_;
    if (free_ != nullptr) free_->notify_all();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  unsigned& count_;
  std::condition_variable* const free_;
};

KernelModel::KernelModel(FileSystem& file_system, Clock& clock, std::function<void()> between)
    : file_system_(file_system), clock_(clock), between_(std::move(between)) {
  inodes_[root_ino].attributes.ino = root_ino;
  inodes_[root_ino].attributes.type = FileType::directory;
  file_system_.set_kernel_cache(this);
}

KernelModel::~KernelModel() { file_system_.set_kernel_cache(nullptr); }

// ---- requests

template <class Send>
auto KernelModel::request(Lock& lock, Send send) {
  lock.unlock();
  if (!is_of_the_file_system) between_();
  clock_.sleep_for(time_of_a_request);
  ++requests_of_thread;
  lock.lock();
  ++requests_;
  lock.unlock();
  auto answer = send();
  lock.lock();
  --requests_;
  lock.unlock();
  --requests_of_thread;
  if (!is_of_the_file_system) between_();
  lock.lock();
  return answer;
}

/// A path that leads to an inode which is gone is walked once more, asking for each name.
template <class Function>
auto KernelModel::on_path(Function function) {
  auto result = function(false);
  if (!result && result.error().code == ErrorCode::stale) result = function(true);
  return result;
}

Result<std::string> KernelModel::read_request(Lock& lock, const OpenFile& file, std::uint64_t offset_bytes,
                                              std::size_t size_bytes) {
  return request(lock, [&]() -> Result<std::string> {
    std::string bytes(size_bytes, '?');
    std::promise<Result<std::size_t>> promise;
    auto answer = promise.get_future();
    file_system_.read(file.handle, offset_bytes, bytes,
                      [&promise](Result<std::size_t> got) { promise.set_value(std::move(got)); });
    LCCFS_TRY(const std::size_t got, answer.get());
    bytes.resize(got);
    return bytes;
  });
}

Result<> KernelModel::write_request(Lock& lock, const OpenFile& file, std::uint64_t offset_bytes, std::string bytes,
                                    bool of_pages) {
  return request(lock, [&]() -> Result<> {
    const auto kept = std::make_shared<const std::string>(std::move(bytes));
    const SharedBytes shared{std::shared_ptr<const char>(kept, kept->data()), kept->data(), kept->size()};
    std::promise<Result<std::size_t>> promise;
    auto answer = promise.get_future();
    WriteRequest to_write{.offset_bytes = offset_bytes, .bytes = shared, .writes_back_pages = of_pages};
    if (!of_pages) to_write.flags = file.flags;
    file_system_.write(file.handle, std::move(to_write),
                       [&promise](Result<std::size_t> written) { promise.set_value(std::move(written)); });
    LCCFS_TRY(const std::size_t written, answer.get());
    if (written != kept->size()) return failure(ErrorCode::io, "a short write");
    return {};
  });
}

// ---- what the file system tells

void KernelModel::invalidate_attributes(Ino ino) {
  const Lock lock(mutex_);
  if (requests_of_thread == 0) ++announced_;
  const auto found = inodes_.find(ino);
  if (found == inodes_.end()) return;
  found->second.changed = ++changes_;
  found->second.attributes_until = {};
}

void KernelModel::invalidate_pages(Ino ino) { invalidate(ino, 0, ~std::uint64_t{0}); }

void KernelModel::invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (size_bytes == 0) return;
  invalidate(ino, offset_bytes / page_size_bytes, (offset_bytes + size_bytes - 1) / page_size_bytes);
}

void KernelModel::raise_size(Ino ino, std::uint64_t size_bytes, char) {
  const Lock lock(mutex_);
  const auto found = inodes_.find(ino);
  if (found == inodes_.end()) return;
  found->second.changed = ++changes_;
  found->second.attributes_until = {};
  found->second.attributes.size_bytes = std::max(found->second.attributes.size_bytes, size_bytes);
}

void KernelModel::invalidate(Ino ino, std::uint64_t first, std::uint64_t last) {
  const bool was = std::exchange(is_of_the_file_system, true);
  Lock lock(mutex_);
  if (const auto found = inodes_.find(ino); found != inodes_.end()) {
    found->second.changed = ++changes_;
    found->second.attributes_until = {};
    drop(lock, found->second, first, last);
  }
  if (heard_of_ < announced_) ++heard_of_;
  heard_.notify_all();
  lock.unlock();
  is_of_the_file_system = was;
}

void KernelModel::settle() {
  Lock lock(mutex_);
  heard_.wait_for(lock, hears_within, [this] { return heard_of_ >= announced_; });
  heard_of_ = announced_;
}

KernelModel::Busy KernelModel::busy() const {
  const Lock lock(mutex_);
  return {names_busy_ != 0, inodes_busy_ != 0, pages_busy_ != 0, requests_ != 0};
}

// ---- names and attributes

Result<Ino> KernelModel::walk(Lock& lock, const std::string& path, bool anew) {
  if (path.empty() || path == "/") return root_ino;
  LCCFS_TRY(const Place at, place(lock, path, anew));
  return look_up(lock, at, anew);
}

Result<KernelModel::Place> KernelModel::place(Lock& lock, const std::string& path, bool anew) {
  const auto slash = path.rfind('/');
  LCCFS_TRY(const Ino parent, walk(lock, path.substr(0, slash), anew));
  LCCFS_CHECK(refresh(lock, inode(parent)));  // whether the program may pass
  return Place{parent, path.substr(slash + 1)};
}

Result<Ino> KernelModel::look_up(Lock& lock, const Place& at, bool anew) {
  const auto key = std::pair(at.parent, at.name);
  const auto epoch = epoch_.load();
  if (const auto known = names_.find(key); known != names_.end() && !anew) {
    const auto& [ino, until, since] = known->second;
    if (since == epoch && clock_.elapsed() < until) return ino;
  }
  const auto asked_at = changes_;
  auto entry = request(lock, [&] {
    auto known = test::known_entry(file_system_, at.parent, at.name);
    return told(at, known ? std::move(*known) : file_system_.lookup(at.parent, at.name));
  });
  names_.erase(key);
  if (!entry) return std::unexpected(std::move(entry).error());
  names_[key] = name_of(*entry, epoch);
  learn(lock, *entry, asked_at);
  return entry->attributes.ino;
}

/// As operations.cpp answers.
Result<EntryReply> KernelModel::told(const Place& at, Result<EntryReply> entry) {
  if (!entry || entry->attributes.type != FileType::directory) return entry;
  const Ino ino = entry->attributes.ino;
  const auto is_known = [&] {
    const Lock lock(mutex_);
    return inodes_.contains(ino);
  };
  if (file_system_.begin_to_keep(at.parent, at.name, ino, is_known())) entry->entry_ttl = std::chrono::hours(1);
  return entry;
}

KernelModel::Name KernelModel::name_of(const EntryReply& entry, unsigned epoch) const {
  return {entry.attributes.ino, clock_.elapsed() + entry.entry_ttl, epoch};
}

/// Whoever changes names of a directory has it locked. Here all such calls are one.
void KernelModel::expire_name(Ino directory, const std::string& name) {
  Lock lock(mutex_);
  heard_.wait(lock, [this] { return names_busy_ == 0; });
  if (const auto found = names_.find({directory, name}); found != names_.end()) found->second.until = {};
}

KernelModel::Inode& KernelModel::learn(Lock& lock, const EntryReply& entry, std::uint64_t asked_at) {
  const auto [at, is_new] = inodes_.try_emplace(entry.attributes.ino);
  if (is_new) at->second.attributes = entry.attributes;
  learn(lock, at->second, entry.attributes, entry.attributes_ttl, asked_at);
  return at->second;
}

void KernelModel::learn(Lock& lock, Inode& inode, const Attributes& attributes, std::chrono::nanoseconds ttl,
                        std::uint64_t asked_at) {
  if (inode.changed > asked_at || inode.size_unstable) return;
  const auto before = std::exchange(inode.attributes, attributes);
  inode.attributes_until = clock_.elapsed() + ttl;
  inode.changed = ++changes_;
  if (attributes.type != FileType::regular) return;
  if (before.size_bytes != attributes.size_bytes) cut_pages(inode, attributes.size_bytes);
  if (before.size_bytes != attributes.size_bytes || before.mtime != attributes.mtime) drop(lock, inode);
}

Result<> KernelModel::refresh(Lock& lock, Inode& inode) {
  if (clock_.elapsed() < inode.attributes_until) return {};
  const auto asked_at = changes_;
  const auto reply = request(lock, [&] { return file_system_.get_attributes(inode.attributes.ino); });
  if (!reply) return std::unexpected(reply.error());
  learn(lock, inode, reply->attributes, reply->attributes_ttl, asked_at);
  return {};
}

Result<> KernelModel::set_attributes(Lock& lock, Inode& inode, const SetAttributes& changes) {
  const Held held(inodes_busy_);
  inode.size_unstable = changes.size_bytes.has_value();
  const auto reply = request(lock, [&] { return file_system_.set_attributes({}, inode.attributes.ino, changes); });
  inode.size_unstable = false;
  if (!reply) {
    inode.attributes_until = {};
    return std::unexpected(reply.error());
  }
  const auto before = std::exchange(inode.attributes, reply->attributes);
  inode.attributes_until = clock_.elapsed() + reply->attributes_ttl;
  inode.changed = ++changes_;
  if (before.type != FileType::regular || before.size_bytes == inode.attributes.size_bytes) return {};
  cut_pages(inode, inode.attributes.size_bytes);
  drop(lock, inode);
  return {};
}

void KernelModel::was_written(Inode& inode, std::uint64_t end_bytes) {
  inode.changed = ++changes_;
  inode.attributes_until = {};
  inode.attributes.size_bytes = std::max(inode.attributes.size_bytes, end_bytes);
}

// ---- pages

/// The bytes of a page, which is read with those after it up to `last` that are not there.
Result<std::string> KernelModel::page(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t index,
                                      std::uint64_t last) {
  if (inode.pages[index].up_to_date) return inode.pages[index].bytes;
  const Held held(pages_busy_);
  std::uint64_t end = index;
  for (; end <= last && end < index + most_pages && !inode.pages[end].up_to_date; ++end) inode.pages[end].locked = true;
  const auto asked_at = changes_;
  const auto from = index * page_size_bytes;
  auto got = read_request(lock, file, from, (end - index) * page_size_bytes);
  const auto got_end = from + (got ? got->size() : 0);
  if (got && got_end < end * page_size_bytes && inode.changed <= asked_at && !inode.size_unstable &&
      got_end < inode.attributes.size_bytes) {
    inode.attributes.size_bytes = got_end;
    inode.changed = ++changes_;
  }
  std::string bytes;
  if (got) got->resize((end - index) * page_size_bytes, '\0');
  for (auto i = index; i < end; ++i) {
    Page& one = inode.pages[i];
    one.up_to_date = got.has_value();
    if (got) one.bytes = got->substr((i - index) * page_size_bytes, page_size_bytes);
    if (i == index) bytes = one.bytes;
    unlock(inode, i);
  }
  if (!got) return std::unexpected(std::move(got).error());
  return bytes;
}

void KernelModel::unlock(Inode& inode, std::uint64_t index) {
  const auto found = inode.pages.find(index);
  if (found == inode.pages.end()) return;
  found->second.locked = false;
  if (found->second.to_be_dropped || !found->second.up_to_date) inode.pages.erase(found);
}

/// What was changed through mmap, by any descriptor of the inode that is mapped for writing.
Result<> KernelModel::write_back(Lock& lock, Inode& inode, std::uint64_t first, std::uint64_t last) {
  for (auto at = inode.pages.lower_bound(first); at != inode.pages.end() && at->first <= last;
       at = inode.pages.upper_bound(at->first)) {
    if (!at->second.dirty) continue;
    at->second.dirty = false;
    const auto from = at->first * page_size_bytes;
    if (from >= inode.attributes.size_bytes) continue;
    inode.mapped_for_writing.remove_if([](const auto& one) { return one.expired(); });
    if (inode.mapped_for_writing.empty()) return failure(ErrorCode::io, "a page without a descriptor");
    const auto file = inode.mapped_for_writing.front().lock();
    const auto size_bytes = std::min(page_size_bytes, inode.attributes.size_bytes - from);
    const Held held(pages_busy_);  // who writes into the page waits for this
    LCCFS_CHECK(write_request(lock, *file, from, at->second.bytes.substr(0, size_bytes), true));
  }
  return {};
}

/// A page that is just being read goes when that is done: whoever drops it would wait.
void KernelModel::drop(Lock& lock, Inode& inode, std::uint64_t first, std::uint64_t last) {
  static_cast<void>(write_back(lock, inode, first, last));
  auto at = inode.pages.lower_bound(first);
  while (at != inode.pages.end() && at->first <= last) {
    at->second.to_be_dropped = at->second.locked;
    at = at->second.locked ? std::next(at) : inode.pages.erase(at);
  }
}

void KernelModel::cut_pages(Inode& inode, std::uint64_t size_bytes) {
  const auto kept = (size_bytes + page_size_bytes - 1) / page_size_bytes;
  for (auto at = inode.pages.lower_bound(kept); at != inode.pages.end();) {
    at->second.to_be_dropped = at->second.locked;
    at = at->second.locked ? std::next(at) : inode.pages.erase(at);
  }
  const auto part = size_bytes % page_size_bytes;
  if (const auto at = inode.pages.find(size_bytes / page_size_bytes); part != 0 && at != inode.pages.end()) {
    at->second.bytes.replace(part, std::string::npos, page_size_bytes - part, '\0');
  }
}

// ---- opening and closing

Result<KernelModel::Descriptor> KernelModel::open(const std::string& path, int flags) {
  return on_path([&](bool anew) { return open_anew(path, flags, anew); });
}

Result<KernelModel::Descriptor> KernelModel::open_anew(const std::string& path, int flags, bool anew) {
  Lock lock(mutex_);
  LCCFS_TRY(const Place at, place(lock, path, anew));
  const auto found = look_up(lock, at, anew);
  if (found && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return failure(ErrorCode::exists, path);
  if (found) {
    const int asked = flags & ~(O_CREAT | O_EXCL);
    const auto reply = request(lock, [&] { return file_system_.open({}, *found, asked); });
    if (!reply) return std::unexpected(reply.error());
    auto file = opened(lock, inode(*found), fuse::open_answer(*reply, asked), flags, false);
    if ((flags & O_TRUNC) != 0) LCCFS_CHECK(remove_capability(lock, inode(*found)));
    return file;
  }
  if (found.error().code != ErrorCode::not_found || (flags & O_CREAT) == 0) return std::unexpected(found.error());
  const Held held(names_busy_, &heard_);
  const auto asked_at = changes_;
  const auto epoch = epoch_.load();
  const auto made = request(lock, [&] { return file_system_.create({}, at.parent, at.name, 0644, flags); });
  if (!made) return std::unexpected(made.error());
  names_[{at.parent, at.name}] = name_of(made->entry, epoch);
  inode(at.parent).attributes_until = {};
  return opened(lock, learn(lock, made->entry, asked_at), fuse::create_answer(*made, flags), flags, true);
}

Result<KernelModel::Descriptor> KernelModel::opened(Lock& lock, Inode& inode, const std::string& answer, int flags,
                                                    bool is_new) {
  const auto out = open_out_of(answer);
  const auto file = std::make_shared<OpenFile>();
  file->ino = inode.attributes.ino;
  file->handle = HandleId{out.fh};
  file->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
  file->direct = (out.open_flags & FOPEN_DIRECT_IO) != 0;
  ++inode.descriptors;
  if ((flags & O_TRUNC) != 0 && !is_new) {
    inode.changed = ++changes_;
    inode.attributes_until = {};
    inode.attributes.size_bytes = 0;
    cut_pages(inode, 0);
  } else if ((out.open_flags & FOPEN_KEEP_CACHE) == 0) {
    drop(lock, inode);
  }
  return file;
}

Result<> KernelModel::close(const Descriptor& file) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  file->is_closed = true;
  Result<> flushed;
  {
    const Held held(inodes_busy_);
    flushed = write_back(lock, of, 0, ~std::uint64_t{0});
  }
  if (flushed) flushed = request(lock, [&] { return file_system_.flush(file->handle); });
  if (file->maps == 0) release(lock, *file);
  return flushed;
}

void KernelModel::release(Lock& lock, const OpenFile& file) {
  request(lock, [&] {
    file_system_.release(file.handle);
    return true;
  });
  --inode(file.ino).descriptors;
}

// ---- bytes

Result<std::string> KernelModel::read(const Descriptor& file, std::uint64_t offset_bytes, std::size_t size_bytes) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  const bool direct = file->direct || (file->flags & O_DIRECT) != 0;
  return direct ? read_direct(lock, of, *file, offset_bytes, size_bytes)
                : read_buffered(lock, of, *file, offset_bytes, size_bytes);
}

Result<std::string> KernelModel::read_buffered(Lock& lock, Inode& inode, const OpenFile& file,
                                               std::uint64_t offset_bytes, std::size_t size_bytes) {
  LCCFS_CHECK(refresh(lock, inode));
  std::string got;
  while (got.size() < size_bytes) {
    const auto at = offset_bytes + got.size();
    if (at >= inode.attributes.size_bytes) break;
    const auto end = std::min(offset_bytes + size_bytes, inode.attributes.size_bytes);
    LCCFS_TRY(const auto bytes, page(lock, inode, file, at / page_size_bytes, (end - 1) / page_size_bytes));
    if (at >= inode.attributes.size_bytes) break;  // the page has shown that the file ends before
    const auto size_now = std::min(offset_bytes + size_bytes, inode.attributes.size_bytes);
    got += bytes.substr(at % page_size_bytes, size_now - at);
  }
  return got;
}

Result<std::string> KernelModel::read_direct(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                             std::size_t size_bytes) {
  LCCFS_CHECK(write_back(lock, inode, offset_bytes / page_size_bytes, (offset_bytes + size_bytes) / page_size_bytes));
  std::string got;
  while (got.size() < size_bytes) {
    const auto wanted = std::min<std::uint64_t>(size_bytes - got.size(), most_bytes_at_once);
    LCCFS_TRY(const auto part, read_request(lock, file, offset_bytes + got.size(), wanted));
    got += part;
    if (part.size() < wanted) break;
  }
  return got;
}

Result<> KernelModel::write(const Descriptor& file, std::uint64_t offset_bytes, const std::string& bytes) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  const Held held(inodes_busy_);
  const auto from = appends(file->flags) ? of.attributes.size_bytes : offset_bytes;
  if (file->direct) return write_direct(lock, of, *file, from, bytes);
  LCCFS_CHECK(remove_capability(lock, of));
  const bool direct = (file->flags & O_DIRECT) != 0;
  LCCFS_CHECK(direct ? write_direct(lock, of, *file, from, bytes) : write_buffered(lock, of, *file, from, bytes));
  if (direct) drop(lock, of, from / page_size_bytes, (from + bytes.size() - 1) / page_size_bytes);
  return (file->flags & O_DSYNC) == 0 ? Result<>{} : sync(lock, *file, (file->flags & O_SYNC) != O_SYNC);
}

Result<> KernelModel::remove_capability(Lock& lock, Inode& inode) {
  const Ino ino = inode.attributes.ino;
  if (!request(lock, [&] { return file_system_.get_xattr(ino, capability); })) return {};
  return request(lock, [&] { return file_system_.remove_xattr(ino, capability); });
}

Result<> KernelModel::write_buffered(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                     const std::string& bytes) {
  inode.size_unstable = offset_bytes + bytes.size() > inode.attributes.size_bytes;
  auto written = write_pages(lock, inode, file, offset_bytes, bytes);
  was_written(inode, written ? offset_bytes + bytes.size() : 0);
  inode.size_unstable = false;
  return written;
}

/// A request ends after a page that is written in part and was not up to date: only its new bytes are known.
Result<> KernelModel::write_pages(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                  const std::string& bytes) {
  for (std::uint64_t done = 0; done < bytes.size();) {
    const auto from = offset_bytes + done;
    std::uint64_t end = from;
    std::optional<std::uint64_t> in_part;
    for (std::uint64_t pages = 0; pages < most_pages && end < offset_bytes + bytes.size() && !in_part; ++pages) {
      const auto index = end / page_size_bytes;
      const auto size_bytes = std::min(page_size_bytes - end % page_size_bytes, offset_bytes + bytes.size() - end);
      Page& page = inode.pages[index];
      page.bytes.replace(end % page_size_bytes, size_bytes, bytes, end - offset_bytes, size_bytes);
      page.up_to_date = page.up_to_date || size_bytes == page_size_bytes;
      end += size_bytes;
      if (!page.up_to_date) in_part = index;
    }
    std::optional<Held> held;
    if (in_part) held.emplace(pages_busy_);
    if (in_part) inode.pages[*in_part].locked = true;
    auto written = write_request(lock, file, from, bytes.substr(done, end - from), false);
    if (in_part) unlock(inode, *in_part);
    if (!written) {
      drop(lock, inode, from / page_size_bytes, (end - 1) / page_size_bytes);
      return written;
    }
    done += end - from;
  }
  return {};
}

Result<> KernelModel::write_direct(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                   const std::string& bytes) {
  drop(lock, inode, offset_bytes / page_size_bytes, (offset_bytes + bytes.size() - 1) / page_size_bytes);
  Result<> written;
  std::uint64_t done = 0;
  while (written && done < bytes.size()) {
    const auto part = bytes.substr(done, most_bytes_at_once);
    written = write_request(lock, file, offset_bytes + done, part, false);
    if (written) done += part.size();
  }
  was_written(inode, done == 0 ? 0 : offset_bytes + done);
  return written;
}

Result<KernelModel::AsyncWrite> KernelModel::begin_write(const Descriptor& file, std::uint64_t offset_bytes,
                                                         const std::string& bytes) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  const auto end = offset_bytes + bytes.size();
  if (!file->direct || appends(file->flags) || bytes.size() > most_bytes_at_once || end > of.attributes.size_bytes) {
    return failure(ErrorCode::unsupported, "a write that is waited for");
  }
  const Held held(inodes_busy_);
  drop(lock, of, offset_bytes / page_size_bytes, (end - 1) / page_size_bytes);
  of.attributes_until = {};
  return AsyncWrite{file, offset_bytes, bytes, {}};
}

void KernelModel::do_write(AsyncWrite& write) {
  Lock lock(mutex_);
  write.result = write_request(lock, *write.file, write.offset_bytes, write.bytes, false);
}

Result<> KernelModel::end_write(const AsyncWrite& write) {
  const Lock lock(mutex_);
  inode(write.file->ino).changed = ++changes_;
  return write.result;
}

Result<> KernelModel::truncate(const Descriptor& file, std::uint64_t size_bytes) {
  Lock lock(mutex_);
  SetAttributes changes;
  changes.size_bytes = size_bytes;
  LCCFS_CHECK(remove_capability(lock, inode(file->ino)));
  return set_attributes(lock, inode(file->ino), changes);
}

Result<> KernelModel::fsync(const Descriptor& file, bool data_only) {
  Lock lock(mutex_);
  const Held held(inodes_busy_);
  return sync(lock, *file, data_only);
}

Result<> KernelModel::sync(Lock& lock, const OpenFile& file, bool data_only) {
  LCCFS_CHECK(write_back(lock, inode(file.ino), 0, ~std::uint64_t{0}));
  return request(lock, [&] { return file_system_.fsync(file.handle, data_only); });
}

// ---- mapped pages

Result<> KernelModel::map(const Descriptor& file) {
  const Lock lock(mutex_);
  if (file->direct) return failure(ErrorCode::unsupported, "mmap: no such device");
  ++file->maps;
  if ((file->flags & O_ACCMODE) == O_RDWR) inode(file->ino).mapped_for_writing.push_front(file);
  return {};
}

Result<> KernelModel::unmap(const Descriptor& file) {
  Lock lock(mutex_);
  auto written = write_back(lock, inode(file->ino), 0, ~std::uint64_t{0});
  if (--file->maps == 0 && file->is_closed) release(lock, *file);
  return written;
}

Result<std::string> KernelModel::load(const Descriptor& file, std::uint64_t offset_bytes, std::size_t size_bytes) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  std::string got;
  while (got.size() < size_bytes) {
    const auto at = offset_bytes + got.size();
    const auto index = at / page_size_bytes;
    if (index * page_size_bytes >= of.attributes.size_bytes) return failure(ErrorCode::invalid, "SIGBUS");
    LCCFS_TRY(const auto bytes, page(lock, of, *file, index, index));
    got += bytes.substr(at % page_size_bytes, size_bytes - got.size());
  }
  return got;
}

Result<> KernelModel::store(const Descriptor& file, std::uint64_t offset_bytes, const std::string& bytes) {
  Lock lock(mutex_);
  Inode& of = inode(file->ino);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto index = (offset_bytes + i) / page_size_bytes;
    if (index * page_size_bytes >= of.attributes.size_bytes) return failure(ErrorCode::invalid, "SIGBUS");
    while (!of.pages[index].up_to_date) LCCFS_CHECK(page(lock, of, *file, index, index));
    of.pages[index].bytes[(offset_bytes + i) % page_size_bytes] = bytes[i];
    of.pages[index].dirty = true;
  }
  return {};
}

// ---- by path

Result<Attributes> KernelModel::stat(const std::string& path) {
  return on_path([&](bool anew) -> Result<Attributes> {
    Lock lock(mutex_);
    LCCFS_TRY(const Ino ino, walk(lock, path, anew));
    LCCFS_CHECK(refresh(lock, inode(ino)));
    return inode(ino).attributes;
  });
}

Result<> KernelModel::chmod(const std::string& path, std::uint32_t mode) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Ino ino, walk(lock, path, anew));
    SetAttributes changes;
    changes.mode = mode;
    return set_attributes(lock, inode(ino), changes);
  });
}

Result<> KernelModel::set_mtime(const std::string& path, TimeSpec mtime) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Ino ino, walk(lock, path, anew));
    SetAttributes changes;
    changes.mtime = mtime;
    return set_attributes(lock, inode(ino), changes);
  });
}

Result<> KernelModel::set_xattr(const std::string& path, const std::string& name, const Bytes& value) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Ino ino, walk(lock, path, anew));
    const Held held(inodes_busy_);
    auto set = request(lock, [&] { return file_system_.set_xattr(ino, name, value, XattrMode::create_or_replace); });
    inode(ino).attributes_until = {};
    return set;
  });
}

Result<> KernelModel::unlink(const std::string& path) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Place at, place(lock, path, anew));
    const Held held(names_busy_, &heard_);
    LCCFS_TRY(const Ino ino, look_up(lock, at, anew));
    auto removed = request(lock, [&] { return file_system_.unlink(at.parent, at.name); });
    if (removed || removed.error().code == ErrorCode::not_found) names_.erase({at.parent, at.name});
    inode(at.parent).attributes_until = inode(ino).attributes_until = {};
    return removed;
  });
}

Result<> KernelModel::rmdir(const std::string& path) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Place at, place(lock, path, anew));
    const Held held(names_busy_, &heard_);
    LCCFS_CHECK(look_up(lock, at, anew));
    auto removed = request(lock, [&] { return file_system_.rmdir(at.parent, at.name); });
    if (removed || removed.error().code == ErrorCode::not_found) names_.erase({at.parent, at.name});
    inode(at.parent).attributes_until = {};
    return removed;
  });
}

Result<> KernelModel::mkdir(const std::string& path, std::uint32_t mode) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Place at, place(lock, path, anew));
    const Held held(names_busy_, &heard_);
    const auto found = look_up(lock, at, anew);
    if (found) return failure(ErrorCode::exists, path);
    if (found.error().code != ErrorCode::not_found) return std::unexpected(found.error());
    const auto asked_at = changes_;
    const NewNode node{FileType::directory, mode, 0, ""};
    const auto epoch = epoch_.load();
    const auto made = request(lock, [&] { return told(at, file_system_.make_node({}, at.parent, at.name, node)); });
    if (!made) return std::unexpected(made.error());
    names_[{at.parent, at.name}] = name_of(*made, epoch);
    learn(lock, *made, asked_at);
    inode(at.parent).attributes_until = {};
    return {};
  });
}

Result<> KernelModel::rename(const std::string& from, const std::string& to) {
  return on_path([&](bool anew) -> Result<> {
    Lock lock(mutex_);
    LCCFS_TRY(const Place old_place, place(lock, from, anew));
    LCCFS_TRY(const Place new_place, place(lock, to, anew));
    const Held held(names_busy_, &heard_);
    LCCFS_CHECK(look_up(lock, old_place, anew));
    const auto replaced = look_up(lock, new_place, anew);
    if (!replaced && replaced.error().code != ErrorCode::not_found) return std::unexpected(replaced.error());
    auto moved = request(lock, [&] {
      return file_system_.rename(old_place.parent, old_place.name, new_place.parent, new_place.name,
                                 RenameMode::replace);
    });
    const std::pair old_key(old_place.parent, old_place.name), new_key(new_place.parent, new_place.name);
    if (moved && names_.contains(old_key)) names_[new_key] = names_[old_key];
    if (moved || moved.error().code == ErrorCode::not_found) names_.erase(old_key);
    if (replaced) inode(*replaced).attributes_until = {};
    inode(old_place.parent).attributes_until = inode(new_place.parent).attributes_until = {};
    return moved;
  });
}

Result<std::vector<std::string>> KernelModel::list(const std::string& path) {
  return on_path([&](bool anew) -> Result<std::vector<std::string>> {
    Lock lock(mutex_);
    LCCFS_TRY(const Ino ino, walk(lock, path, anew));
    LCCFS_TRY(const HandleId handle, request(lock, [&] { return file_system_.open_directory(ino); }));
    const auto listed = request(lock, [&] { return file_system_.read_directory(handle, 0, 100); });
    request(lock, [&] {
      file_system_.release_directory(handle);
      return true;
    });
    if (!listed) return std::unexpected(listed.error());
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : *listed) {
      if (entry.name != "." && entry.name != "..") names.push_back(entry.name);
    }
    std::ranges::sort(names);
    return names;
  });
}

void KernelModel::forget() {
  Lock lock(mutex_);
  names_.clear();
  std::vector<Ino> gone;
  for (const auto& [ino, one] : inodes_) {
    if (one.descriptors == 0 && ino != root_ino) gone.push_back(ino);
  }
  for (const Ino ino : gone) inodes_.erase(ino);
  lock.unlock();
  for (const Ino ino : gone) file_system_.forget(ino);
}

}  // namespace lccfs::crash
