// SPDX-License-Identifier: LGPL-2.1-or-later
// Files: what other instances and the namespace operations ask of the open files.
#include "fs/files.h"

#include "base/log.h"
#include "format/object_names.h"
#include "fs/files_private.h"

namespace lccfs {

namespace {
constexpr std::chrono::seconds answer_busy_after{2};
}

Files::Files(Instance& instance, ThreadPool& pool, const FileSystemOptions& options)
    : private_(std::make_unique<Private>(instance, pool, options)) {
  instance.set_question_handler(
      [me = private_.get()](const format::Question& question) { return me->answer(question); });
}

Files::~Files() {
  private_->instance.set_question_handler(nullptr);
  std::unique_lock lock(private_->mutex);
  private_->tasks_changed.wait(lock, [this] { return private_->tasks == 0; });
}

void Files::set_kernel_cache(KernelCache* cache) { private_->kernel = cache; }

// ---- questions of other instances

/// Runs on the instance's question threads: does steps on the store, never asks another instance.
format::Answer Files::Private::answer(const format::Question& question) {
  using format::Answer;
  using format::Question;
  const auto node = existing_node(question.ino);
  if (node && question.kind == Question::Kind::store_attributes) {
    bool keep = false;
    {
      const std::lock_guard lock(node->mutex);
      keep = node->lease_held && node->writers > 0;
    }
    if (keep) return {lease.store_dirty(*node, true) ? Answer::Kind::done : Answer::Kind::busy};
  }
  // Also where memory knows of no lease: the asker has read that it is ours, so a step of ours whose outcome we never
  // learnt may have taken it.
  begin_give_back(question.ino);
  std::unique_lock lock(mutex);
  const bool given =
      tasks_changed.wait_for(lock, answer_busy_after, [&] { return !being_recalled.contains(question.ino); });
  return {given ? Answer::Kind::done : Answer::Kind::busy};
}

/// The give-back goes on while the asker is told "busy"; there is one at a time for a file.
void Files::Private::begin_give_back(Ino ino) {
  {
    const std::lock_guard lock(mutex);
    if (!being_recalled.insert(ino).second) return;
  }
  post([this, ino] {
    auto recalled = node(ino);
    Result<> given;
    {
      const AloneInGate alone(recalled->gate);
      given = lease.find_own(*recalled);
      if (given) given = lease.give_back(*recalled);
    }
    if (!given) log::error(format::inode_object(ino) + ": giving back its lease: " + given.error().context);
    if (kernel != nullptr) kernel->invalidate_attributes(ino);  // takes no lock on a page: cannot wait for a request
    {
      const std::lock_guard lock(mutex);
      being_recalled.erase(ino);
      tasks_changed.notify_all();
    }
    if (kernel != nullptr) kernel->invalidate_pages(ino);
    let_go(std::move(recalled));
  });
}

// ---- what the namespace operations use

AttributesReply Files::reply_for(const InodeView& view) {
  bool leased_here = false;
  const auto merged = private_->overlay(view, leased_here);
  if (view.attr.type != FileType::regular) {
    return {attributes_of(view, private_->instance.super().object_size_bytes), private_->options.attributes_ttl};
  }
  return private_->reply(merged, leased_here);
}

bool Files::is_open(Ino ino) const {
  const auto node = private_->existing_node(ino);
  if (!node) return false;
  const std::lock_guard lock(node->mutex);
  return node->handles > 0;
}

void Files::attributes_changed(const InodeView& view) {
  const auto node = private_->existing_node(view.ino);
  if (!node) return;
  const std::lock_guard lock(node->mutex);
  node->view.attr = view.attr;
  node->view.attr_raw = view.attr_raw;
  node->view.ctime = std::max(node->view.ctime, view.ctime);
}

std::optional<bool> Files::has_capability(Ino ino) const {
  const auto node = private_->existing_node(ino);
  if (!node) return std::nullopt;
  const std::lock_guard lock(node->mutex);
  if (node->handles == 0 || node->view.ino != ino) return std::nullopt;
  return (node->view.attr.flags & format::attr_flag::capability) != 0;
}

void Files::born(const InodeView& view) {
  const auto node = private_->node(view.ino);
  const std::lock_guard lock(node->mutex);
  node->view = view;
  node->lease_held = true;
}

void Files::unborn(Ino ino) {
  auto node = private_->existing_node(ino);
  if (!node) return;
  {
    const std::lock_guard lock(node->mutex);
    node->lease_held = false;
  }
  private_->let_go(std::move(node));
}

OpenReply Files::open_new(Ino ino, int flags) { return {private_->add_handle(private_->node(ino), flags), false}; }

}  // namespace lccfs
