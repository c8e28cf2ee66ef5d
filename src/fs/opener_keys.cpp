// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  open   | object   | step, a second after the open                              | stop here leaves
//  1      | Inode.X  | [add opener] o/<me>; if the file has no `taken`: guard     | a key: void once I am expired. If I
//         |          | that, and set it                                           | live, a holder that tells me hears
//         |          |                                                            | "not open", and I remove the key
//  2      | Inode.X  | read; if another instance holds the lease, ask it          | the same: this holder does not know
//         |          | (file_opened)                                              | me, the next one does
//  -      | memory   | drop pages and attributes, unless they are right           |
//
//  close  | object   | step, a second after the last close                        | stop here leaves
//  1      | Inode.X  | [remove opener] o/<me>; no request waits for it            | a key, as above
//
// Without the feature `openers`, and on a read-only mount, there are no such steps. [release lease] adds the key, too,
// if the file stays open (file_node.cpp). The key of an expired instance is removed by the next one that would tell it
// of a change (announcements.cpp).
#include "fs/opener_keys.h"

#include <algorithm>

#include "base/expected_errors.h"
#include "instance/holder.h"
#include "txn/file_txn.h"

namespace lccfs {

using format::Question;

namespace {
constexpr std::chrono::seconds holder_time_out{2};
constexpr unsigned most_busy_answers = 10;
}  // namespace

void OpenerKeys::see_to(const OpenFiles::Use& node) {
  const auto what = node->opener_key->begin(node->held());
  if (what == Todo::add) add(node);
  if (what == Todo::remove) remove(node);
  if (what == Todo::introduce) post(Todo::introduce, node->ino);
}

void OpenerKeys::post(Todo what, Ino ino) {
  tasks_.post([this, what, ino] { what == Todo::add ? read_again(ino) : introduce(ino); });
}

/// No thread waits for the step: the object may not answer. What memory knows of `taken` may be old, and is read then.
void OpenerKeys::add(const OpenFiles::Use& node) {
  std::optional<Token> taken;
  {
    const Lock lock(node->mutex);
    if (!node->view.taken) taken = instance_.next_token();
  }
  instance_.store().apply_async(txn::add_opener(node->ino, instance_.id(), taken),
                                [link = link_, key = node->opener_key, ino = node->ino](Result<Applied> applied) {
                                  key->added(applied.has_value());
                                  const bool is_old_news = !applied && applied.error().code == ErrorCode::guard_failed;
                                  const Lock lock(link->mutex);
                                  if (link->keys == nullptr || (!applied && !is_old_news))
                                    return key->ended(Todo::add, false);
                                  link->keys->post(is_old_news ? Todo::add : Todo::introduce, ino);
                                });
}

void OpenerKeys::remove(const OpenFiles::Use& node) {
  instance_.store().apply_async(txn::remove_opener(node->ino, instance_.id()),
                                [key = node->opener_key](const Result<Applied>& removed) {
                                  key->ended(Todo::remove, done_or(ErrorCode::not_found, removed).has_value());
                                });
}

/// The end does not wait for it: the object may not answer.
Result<Inode> OpenerKeys::read(Ino ino) { return read_inode_and_map(instance_, ino, stop_.get_token()); }

void OpenerKeys::read_again(Ino ino) {
  const auto node = files_.use(ino);
  auto view = read(ino);
  if (view) node->learn(std::move(*view));
  node->opener_key->ended(Todo::add, false);
}

void OpenerKeys::introduce(Ino ino) {
  const auto node = files_.use(ino);
  const auto done = introduce_now(*node);
  node->opener_key->ended(Todo::introduce, done.has_value());
}

/// The order is what counts: a holder that has not read the key is found by the read that comes after it; what it has
/// changed before it knew of us goes with the pages that are dropped after its answer.
Result<> OpenerKeys::introduce_now(FileNode& node) {
  LCCFS_TRY(auto view, read(node.ino));
  if (view.lease && *view.lease != instance_.id()) {
    LCCFS_CHECK(tell(*view.lease, node.ino));
    LCCFS_TRY(view, read(node.ino));
  }
  LCCFS_CHECK(instance_.see_fence(view.fence));
  node.learn(view);
  look_(view);
  return {};
}

/// A holder that says nothing is tried again later: nobody waits for this, and nobody is fenced for it.
Result<> OpenerKeys::tell(InstanceId holder, Ino ino) {
  Question question{Question::Kind::file_opened, ino, true};
  question.asker = instance_.id();
  BusyPause busy_pause;
  for (unsigned asked = 0; asked < most_busy_answers; ++asked) {
    LCCFS_TRY(const auto answer, instance_.ask(holder, question, holder_time_out));
    if (answer == Instance::AskResult::done) return {};
    if (answer != Instance::AskResult::busy) break;
    question.work = std::max(question.work, answer.work);
    instance_.clock().sleep_for(busy_pause.next());
  }
  return failure(ErrorCode::timed_out, "instance " + std::to_string(holder.value) + " does not answer");
}

bool OpenerKeys::is_open(Ino ino) {
  const auto node = files_.use(ino);
  if (node->opener_key->is_open()) return true;
  node->opener_key->is_forgotten();
  node->opener_key->may_stand();
  return false;
}

void OpenerKeys::begin_anew() {
  for (const auto& node : files_.use_all()) node->opener_key->is_forgotten();
}

void OpenerKeys::end() {
  {
    const Lock lock(link_->mutex);
    link_->keys = nullptr;
  }
  stop_.request_stop();
  tasks_.wait();
}

}  // namespace lccfs
