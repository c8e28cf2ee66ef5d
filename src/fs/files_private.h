// SPDX-License-Identifier: LGPL-2.1-or-later
// What the files_*.cpp share: the tables of open files and handles.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <set>
#include <unordered_map>

#include "base/log.h"
#include "format/object_names.h"
#include "fs/data_io.h"
#include "fs/file_node.h"
#include "fs/files.h"
#include "fs/kernel_view.h"
#include "fs/write_lease.h"

namespace lccfs {

inline bool for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// Appends that are not for mapping, too: through pages the kernel would split one where a page is not up to date, and
/// another client's append would come in between.
inline bool bypasses_pages(int flags) {
  return (flags & O_DIRECT) != 0 || (flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
}

struct FileHandle {
  std::shared_ptr<FileNode> node;
  int flags = 0;
  bool uses_pages = true;  // the kernel's: for buffered reads and writes, or for a mapping
};

/// What another instance has asked for is under way; whoever asks again meanwhile waits for the same.
struct Recall {
  bool finished = false;
  bool succeeded = false;
  unsigned waiting = 0;  // threads of this instance's, as in questions_waiting
};

struct Files::Private {
  Private(Instance& me, ThreadPool& threads, const FileSystemOptions& settings)
      : instance(me),
        pool(threads),
        options(settings),
        lease(me, kernel),
        io(me, threads, lease, kernel, page_threads, settings.attributes_ttl) {}

  Instance& instance;
  ThreadPool& pool;
  const FileSystemOptions options;
  KernelView kernel;
  WriteLease lease;
  DataIo io;

  mutable std::mutex mutex;  // guards the tables; never held over a call
  std::unordered_map<Ino, std::shared_ptr<FileNode>> nodes;
  std::map<HandleId, FileHandle> handles;
  std::uint64_t next_handle = 1;
  std::map<std::pair<format::Question::Kind, Ino>, std::shared_ptr<Recall>> recalls;
  unsigned questions_waiting = 0;  // threads of this instance's that wait for some recall
  unsigned tasks = 0;              // work of ours on the pools, or in line for it
  std::condition_variable tasks_changed;

  std::shared_ptr<FileNode> node(Ino ino) {
    const std::lock_guard lock(mutex);
    auto& found = nodes[ino];
    if (!found) found = std::make_shared<FileNode>(ino);
    return found;
  }

  std::shared_ptr<FileNode> existing_node(Ino ino) const {
    const std::lock_guard lock(mutex);
    const auto found = nodes.find(ino);
    return found == nodes.end() ? nullptr : found->second;
  }

  /// Forgets the node unless it is open, leased, or somebody else is at work on it.
  void let_go(std::shared_ptr<FileNode>&& node) {
    const std::lock_guard lock(mutex);
    const std::lock_guard node_lock(node->mutex);
    // Nobody gets another hold of it but through the table: two are the table's and ours.
    if (node.use_count() == 2 && node->handles == 0 && !node->lease_held) nodes.erase(node->ino);
  }

  std::optional<FileHandle> handle(HandleId id) const {
    const std::lock_guard lock(mutex);
    const auto found = handles.find(id);
    if (found == handles.end()) return std::nullopt;
    return found->second;
  }

  HandleId add_handle(const std::shared_ptr<FileNode>& node, int flags) {
    const std::lock_guard lock(mutex);
    const HandleId id{next_handle++};
    handles[id] = {node, flags, !bypasses_pages(flags)};
    const std::lock_guard node_lock(node->mutex);
    ++node->handles;
    if (for_writing(flags)) ++node->writers;
    return id;
  }

  std::shared_ptr<FileNode> drop_handle(HandleId id) {
    const std::lock_guard lock(mutex);
    const auto found = handles.find(id);
    if (found == handles.end()) return nullptr;
    const auto handle = std::move(found->second);
    handles.erase(found);
    if (handle.uses_pages) kernel.closed(handle.node->ino);
    const std::lock_guard node_lock(handle.node->mutex);
    --handle.node->handles;
    if (for_writing(handle.flags)) --handle.node->writers;
    return handle.node;
  }

  void post(ThreadPool::Work work) { post_to(pool, std::move(work)); }

  void post_to(ThreadPool& threads, ThreadPool::Work work) {
    begin_task();
    threads.post([this, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      end_task();
    });
  }

  void begin_task() {
    const std::lock_guard lock(mutex);
    ++tasks;
  }
  void end_task() {
    const std::lock_guard lock(mutex);
    --tasks;
    tasks_changed.notify_all();
  }

  void wait_for_tasks() {
    std::unique_lock lock(mutex);
    tasks_changed.wait(lock, [this] { return tasks == 0; });
  }

  void drop_kernel_pages(Ino ino) {
    kernel.drop_attributes(ino);
    post_to(page_threads, [this, ino] { kernel.drop_pages(ino); });
  }

  /// The inode read anew; if another client writes it, its size as of now. Our own lease in it is known to memory:
  /// where it was given back between the read and the look into memory, the read is old.
  Result<InodeView> read_told(Ino ino, WriteLease::Ask ask) {
    LCCFS_TRY(auto view, lease.read_current(ino, ask));
    if (is_old_news(view)) return lease.read_current(ino, ask);
    return view;
  }

  bool is_old_news(const InodeView& view) const {
    if (view.lease != instance.id()) return false;
    const auto node = existing_node(view.ino);
    if (!node) return true;
    const std::lock_guard lock(node->mutex);
    return !node->lease_held;
  }

  Result<> give_back_alone(FileNode& node) {
    const AloneInGate alone(node.gate);
    return lease.give_back(node);
  }

  /// What a holder that is over wrote past the end goes now, in the background, not only when somebody writes.
  void clean_up_behind(const std::shared_ptr<FileNode>& left, InstanceId holder) {
    post([this, node = left, holder]() mutable {
      Result<> done;
      {
        const AloneInGate alone(node->gate);
        const std::lock_guard one_step(node->lease_mutex);
        done = lease.clean_up_behind(*node, holder);
      }
      if (done) done = give_back_or_store(*node, 0, Dirty::may_stay);
      if (!done) {
        log::warning(format::inode_object(node->ino) + ": cleaning up behind its writer: " + done.error().context);
      }
      let_go(std::move(node));
    });
  }

  enum class Dirty { is_stored, may_stay };
  /// The lease goes if no other handle writes (`own_writers`: of the caller's). If it stays, what is dirty is stored,
  /// or may stay in memory for now.
  Result<> give_back_or_store(FileNode& node, unsigned own_writers, Dirty dirty) {
    bool keep = false;
    {
      const std::lock_guard lock(node.mutex);
      if (!node.lease_held) return {};
      keep = node.writers > own_writers;
    }
    if (!keep) return give_back_alone(node);
    return dirty == Dirty::is_stored ? lease.store_dirty(node, true) : Result<>{};
  }

  /// What is told of an inode just read; remembered as what the kernel knows.
  AttributesReply reply(const InodeView& read) {
    bool leased_here = false;
    const auto view = overlay(read, leased_here);
    AttributesReply answer{attributes_of(view, instance.super().object_size_bytes), options.attributes_ttl};
    // Another client writes it: what we say may be old at once. And what a file occupies is not known of a part of its map.
    const bool written_elsewhere = view.lease && !leased_here && *view.lease != instance.id();
    if (written_elsewhere || !view.map_is_whole) answer.attributes_ttl = {};
    kernel.told(answer.attributes);
    return answer;
  }

  /// Memory's size, times and map over an inode that was just read.
  InodeView overlay(const InodeView& read, bool& leased_here) const {
    leased_here = false;
    const auto node = existing_node(read.ino);
    if (!node) return read;
    const std::lock_guard lock(node->mutex);
    if (!node->lease_held) return read;
    leased_here = true;
    node->learn_attr(read);
    InodeView merged = read;
    merged.attr = node->view.attr;
    merged.attr_raw = node->view.attr_raw;
    merged.size_bytes = node->view.size_bytes;
    merged.atime = node->view.atime;
    merged.mtime = node->view.mtime;
    merged.wtime = node->view.wtime;
    merged.ctime = std::max(read.ctime, node->view.ctime);
    merged.map = node->view.map;
    merged.map_is_whole = true;
    return merged;
  }

  KernelView::Holder holder_of(const InodeView& view) const {
    using Holder = KernelView::Holder;
    if (!view.lease) return Holder::nobody;
    return *view.lease == instance.id() ? Holder::me : Holder::another;
  }
  // files_attributes.cpp
  Result<> resize_alone(FileNode& node, std::uint64_t size_bytes);
  Result<> change_times_alone(FileNode& node, const SetAttributes& changes);
  // files.cpp
  format::Answer answer(const format::Question& question);
  bool may_wait(const Recall& recall) const;
  std::shared_ptr<Recall> begin_recall(const format::Question& question);
  void recall(const format::Question& question);
  void give_back_when_asked(const format::Question& question, std::shared_ptr<FileNode>&& node);
  void end_recall(const format::Question& question, std::shared_ptr<FileNode>&& node, const Result<>& done);

  // Apart from the pool of requests: these wait for other clients' give-backs, which wait for ours. Neither this nor the
  // next has a bound in practice: each thread of theirs may wait for an object of its own that does not answer, and must
  // keep none waiting whose objects do.
  ThreadPool recall_threads;
  // Apart from both: the kernel may let these wait for pages that are being read, and reads need the pool of requests.
  ThreadPool page_threads;
};

}  // namespace lccfs
