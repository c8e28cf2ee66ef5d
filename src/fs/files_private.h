// SPDX-License-Identifier: LGPL-2.1-or-later
// What the files_*.cpp share: the tables of open files and handles.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "fs/data_io.h"
#include "fs/file_node.h"
#include "fs/files.h"
#include "fs/write_lease.h"

namespace lccfs {

inline bool for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

struct FileHandle {
  std::shared_ptr<FileNode> node;
  int flags = 0;
};

/// What of a file's attributes decides whether the kernel's cached pages are still right.
struct Told {
  std::uint64_t size_bytes = 0;
  TimeSpec mtime, ctime;
  bool operator==(const Told&) const = default;
};

inline Told told_of(const Attributes& attributes) {
  return {attributes.size_bytes, attributes.mtime, attributes.ctime};
}

/// What another instance has asked for is under way; whoever asks again meanwhile waits for the same.
struct Recall {
  bool finished = false;
  bool succeeded = false;
  unsigned waiting = 0;  // threads of this instance's; others are told "busy" at once
};

struct Files::Private {
  Private(Instance& me, ThreadPool& threads, const FileSystemOptions& settings)
      : instance(me), pool(threads), options(settings), lease(me), io(me, threads, lease, [this](Ino ino) {
          drop_kernel_pages(ino);
        }) {}

  Instance& instance;
  ThreadPool& pool;
  const FileSystemOptions options;
  WriteLease lease;
  DataIo io;

  std::shared_mutex kernel_mutex;  // shared by those who call the kernel; alone, who takes it away
  KernelCache* kernel = nullptr;

  mutable std::mutex mutex;  // guards the tables; never held over a call
  std::unordered_map<Ino, std::shared_ptr<FileNode>> nodes;
  std::map<HandleId, FileHandle> handles;
  std::uint64_t next_handle = 1;
  std::unordered_map<Ino, Told> told;
  std::map<std::pair<format::Question::Kind, Ino>, std::shared_ptr<Recall>> recalls;
  unsigned tasks = 0;  // work of ours on the pools
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
    handles[id] = {node, flags};
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
    const std::lock_guard node_lock(handle.node->mutex);
    --handle.node->handles;
    if (for_writing(handle.flags)) --handle.node->writers;
    return handle.node;
  }

  void post(ThreadPool::Work work) { post_to(pool, std::move(work)); }

  void post_to(ThreadPool& threads, ThreadPool::Work work) {
    {
      const std::lock_guard lock(mutex);
      ++tasks;
    }
    threads.post([this, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      const std::lock_guard lock(mutex);
      --tasks;
      tasks_changed.notify_all();
    });
  }

  void wait_for_tasks() {
    std::unique_lock lock(mutex);
    tasks_changed.wait(lock, [this] { return tasks == 0; });
  }

  void tell_kernel(const std::function<void(KernelCache&)>& what) {
    const std::shared_lock lock(kernel_mutex);
    if (kernel != nullptr) what(*kernel);
  }

  void drop_kernel_pages(Ino ino) {
    tell_kernel([ino](KernelCache& cache) { cache.invalidate_attributes(ino); });
    post_to(page_threads, [this, ino] { tell_kernel([ino](KernelCache& cache) { cache.invalidate_pages(ino); }); });
  }

  /// The inode read anew; if another client writes it, its size as of now. Our own lease in it is known to memory:
  /// where it was given back between the read and the look into memory, the read is old.
  Result<InodeView> read_told(Ino ino, bool from_open) {
    LCCFS_TRY(auto view, lease.read_current(ino, true, from_open));
    if (is_old_news(view)) return lease.read_current(ino, true, from_open);
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
    // Another client writes it: what we say may be old at once.
    if (view.lease && !leased_here && *view.lease != instance.id()) answer.attributes_ttl = {};
    const std::lock_guard lock(mutex);
    told[view.ino] = told_of(answer.attributes);
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
    merged.size_bytes = node->view.size_bytes;
    merged.atime = node->view.atime;
    merged.mtime = node->view.mtime;
    merged.wtime = node->view.wtime;
    merged.ctime = std::max(read.ctime, node->view.ctime);
    merged.map = node->view.map;
    return merged;
  }

  bool kernel_is_up_to_date(const InodeView& view);
  // files_attributes.cpp
  Result<> resize_alone(FileNode& node, std::uint64_t size_bytes);
  Result<> change_times_alone(FileNode& node, const SetAttributes& changes);
  // files.cpp
  format::Answer answer(const format::Question& question);
  std::shared_ptr<Recall> begin_recall(const format::Question& question);
  bool recall(const format::Question& question);

  // Apart from the pool of requests: these wait for other clients' give-backs, which wait for ours.
  ThreadPool recall_threads{256};
  // Apart from both: the kernel may let these wait for a page that is being read.
  ThreadPool page_threads{64};
};

}  // namespace lccfs
