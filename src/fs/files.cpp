// SPDX-License-Identifier: LGPL-2.1-or-later
// Files: what other instances and the namespace operations ask of the open files.
#include "fs/files.h"

#include "base/log.h"
#include "format/object_names.h"
#include "fs/files_private.h"

namespace lccfs {

namespace {
constexpr std::chrono::milliseconds answer_busy_after{500};
constexpr unsigned most_waiting_for_one = 16;
/// Well below the threads that an instance answers questions with (Instance::question_threads_): a question never waits
/// for one of them, however many are asked of files that hang.
constexpr unsigned most_waiting = 128;
}  // namespace

Files::Files(Instance& instance, ThreadPool& pool, const FileSystemOptions& options)
    : private_(std::make_unique<Private>(instance, pool, options)) {
  instance.set_question_handler(
      [me = private_.get()](const format::Question& question) { return me->answer(question); });
}

Files::~Files() { stop_answering(); }

void Files::stop_answering() {
  private_->instance.set_question_handler(nullptr);
  private_->wait_for_tasks();
}

void Files::set_kernel_cache(KernelCache* cache) { private_->kernel.set(cache); }

// ---- questions of other instances

/// At once, or nearly: who is silent for long is evicted. The work goes on while the asker is told "busy".
format::Answer Files::Private::answer(const format::Question& question) {
  using format::Answer;
  const auto recall = begin_recall(question);
  std::unique_lock lock(mutex);
  if (may_wait(*recall)) {
    ++recall->waiting;
    ++questions_waiting;
    instance.clock().wait_for(tasks_changed, lock, answer_busy_after, [&recall] { return recall->finished; });
    --questions_waiting;
    --recall->waiting;
  }
  return {recall->succeeded ? Answer::Kind::done : Answer::Kind::busy};
}

/// With `mutex` held. Who may not is told at once what there is to be told.
bool Files::Private::may_wait(const Recall& recall) const {
  return recall.waiting < most_waiting_for_one && questions_waiting < most_waiting;
}

std::shared_ptr<Recall> Files::Private::begin_recall(const format::Question& question) {
  std::shared_ptr<Recall> mine;
  {
    const std::lock_guard lock(mutex);
    auto& under_way = recalls[{question.kind, question.ino}];
    if (under_way) return under_way;
    mine = under_way = std::make_shared<Recall>();
  }
  begin_task();
  recall(question);
  return mine;
}

/// Does not block: what has to wait for the store has threads, and what waits for the file's reads and writes has none.
void Files::Private::recall(const format::Question& question) {
  using format::Question;
  auto asked_for = node(question.ino);
  bool keep = false;
  {
    const std::lock_guard lock(asked_for->mutex);
    keep = question.kind == Question::Kind::store_attributes && asked_for->lease_held && asked_for->writers > 0;
  }
  if (keep) {
    return recall_threads.post([this, question, asked_for = std::move(asked_for)]() mutable {
      const auto done = lease.store_dirty(*asked_for, true);
      end_recall(question, std::move(asked_for), done);
    });
  }
  auto& gate = asked_for->gate;
  gate.enter_alone([this, question, asked_for = std::move(asked_for)]() mutable {
    recall_threads.post([this, question, asked_for = std::move(asked_for)]() mutable {
      give_back_when_asked(question, std::move(asked_for));
    });
  });
}

/// Also where memory knows of no lease: the asker has read that it is ours, so a step of ours whose outcome we never
/// learnt may have taken it.
void Files::Private::give_back_when_asked(const format::Question& question, std::shared_ptr<FileNode>&& node) {
  auto done = lease.find_own(*node);
  if (done) done = lease.give_back(*node);
  node->gate.leave_alone();
  drop_kernel_pages(question.ino);
  end_recall(question, std::move(node), done);
}

void Files::Private::end_recall(const format::Question& question, std::shared_ptr<FileNode>&& node,
                                const Result<>& done) {
  if (!done) log::error(format::inode_object(node->ino) + ": asked for by another client: " + done.error().context);
  let_go(std::move(node));
  {
    const std::lock_guard lock(mutex);
    const auto mine = recalls.find({question.kind, question.ino});
    mine->second->finished = true;
    mine->second->succeeded = done.has_value();
    recalls.erase(mine);
  }
  end_task();
}

// ---- what the namespace operations use

AttributesReply Files::reply_for(const InodeView& view) {
  auto& me = *private_;
  if (view.attr.type != FileType::regular) {
    return {attributes_of(view, me.instance.super().object_size_bytes), me.options.attributes_ttl};
  }
  const auto again =
      me.is_old_news(view) ? me.lease.read_current(view.ino, WriteLease::Ask::nobody) : Result<InodeView>(view);
  return me.reply(again ? *again : view);
}

bool Files::is_open(Ino ino) const {
  const auto node = private_->existing_node(ino);
  if (!node) return false;
  const std::lock_guard lock(node->mutex);
  return node->handles > 0;
}

bool Files::is_open_or_opening(Ino ino) const {
  const auto node = private_->existing_node(ino);
  if (!node) return false;
  const std::lock_guard lock(node->mutex);
  return node->handles > 0 || node->openings > 0;
}

void Files::attributes_changed(const InodeView& view) {
  const auto node = private_->existing_node(view.ino);
  if (!node) return;
  const std::lock_guard lock(node->mutex);
  node->learn_attr(view);
}

std::optional<bool> Files::has_capability(Ino ino) const {
  const auto node = private_->existing_node(ino);
  if (!node) return std::nullopt;
  const std::lock_guard lock(node->mutex);
  const auto age = private_->instance.clock().elapsed() - node->attr_sent;
  if (node->handles == 0 || node->view.ino != ino || age > private_->options.attributes_ttl) return std::nullopt;
  return (node->view.attr.flags & format::attr_flag::capability) != 0;
}

void Files::born(const InodeView& view) {
  private_->kernel.lease_taken(view.ino, 0);
  const auto node = private_->node(view.ino);
  const std::lock_guard lock(node->mutex);
  node->take(view);
  node->lease_held = true;
}

void Files::unborn(Ino ino) {
  private_->kernel.lease_given_back(ino, 0);
  auto node = private_->existing_node(ino);
  if (!node) return;
  {
    const std::lock_guard lock(node->mutex);
    node->lease_held = false;
  }
  private_->let_go(std::move(node));
}

OpenReply Files::open_new(const InodeView& view, int flags) {
  auto& me = *private_;
  const bool bypass = bypasses_pages(flags);
  const bool keep = me.kernel.opened(view, me.holder_of(view), !bypass);
  return {.handle = me.add_handle(me.node(view.ino), flags), .keep_pages = keep, .bypass_pages = bypass};
}

}  // namespace lccfs
