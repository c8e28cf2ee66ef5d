// SPDX-License-Identifier: LGPL-2.1-or-later
//
// link (X, P, name): 3 writes and the read of the answer, one after the other.
//
//  # | object     | step                                                       | stop here leaves
//  W | Data.X.*,  | only if an instance holds the lease of X, and answers      | an X of which more is stored
//    | Inode.X    | within seconds: it writes out what is buffered, and stores |
//    |            | the size (file_node.cpp)                                   |
//  P | Inode.P    | only if it is new, and not stored yet: it and those above  | directories without names: a collector
//    |            | it, as in unstored_inodes.cpp                              | removes them, from the range intent
//  0 | Session.me | [log queue items] inode item X                             | an item that finds nothing to do
//  1 | Inode.X    | [add link] guard live, attr as read, and the lease absent  | nlink and back-pointers too many: a
//    |            | if W found none; nlink + 1, ctime; back-pointer (P, token) | collector corrects both, from the item
//  2 | Inode.P    | [insert entry] guard open(P), the name absent; set both    | COMMIT
//    |            | keys; times                                                |
//  3 | Inode.X    | [take back link] only if 2 was refused: nlink - 1, remove  | as after 0
//    |            | that back-pointer                                          |
//
// The count comes before the name: where it is too low, a file with a name looks removed (docs/COUNTEREXAMPLES.md C34).
//
// While the link runs, and as long as X may point to P without a name there, no collector removes P: it asks this
// client first (docs/PROTOCOL.md section 5). After 1, X cannot die either, even if it loses its other names: the
// back-pointer is not retired before this operation is.
#include "base/expected_errors.h"
#include "base/log.h"
#include "fs/namespace.h"

namespace lccfs {

class Namespace::Link {
 public:
  Link(Namespace& its_namespace, Ino ino, const txn::Name& name)
      : namespace_(its_namespace),
        ino_(ino),
        name_(name),
        pointer_{name.directory, its_namespace.instance_.next_token()} {}

  Result<> run();

 private:
  Result<bool> name_once(bool from_memory);
  Result<bool> count_name(bool from_memory);
  bool take_back();
  Result<bool> take_back_once();

  Namespace& namespace_;
  Instance& instance_ = namespace_.instance_;
  Metadata& metadata_ = namespace_.metadata_;
  const Ino ino_;
  const txn::Name& name_;
  const format::BackPointerRecord pointer_;
  bool is_logged_ = false;
  std::optional<FileType> counted_;  // of X, once step 1 is applied
  bool may_be_counted_ = false;      // step 1 may have been applied
  bool may_have_name_ = false;       // step 2 may have been applied
};

namespace {

/// A caller that came by a path that leads elsewhere by now is told `stale`: the kernel looks the path up again. One
/// that has it open may have come by the descriptor, for which there is nothing to look up.
Result<> check_linkable(const Inode& inode, bool is_open) {
  const auto object = format::inode_object(inode.ino);
  if (inode.is_directory()) return failure(ErrorCode::not_permitted, object + ": a directory has one name");
  if (!inode.live() || inode.attr.nlink == 0) {
    return failure(is_open ? ErrorCode::not_found : ErrorCode::stale, object + " has no name any more");
  }
  if (inode.attr.nlink >= most_links) return failure(ErrorCode::too_many_links, object);
  return {};
}

}  // namespace

/// Steps W to 1. false: start over.
Result<bool> Namespace::Link::count_name(bool from_memory) {
  const auto begun = namespace_.now();
  if (!from_memory) LCCFS_CHECK(metadata_.read_existing(ino_));
  LCCFS_TRY(const auto known, metadata_.existing(ino_));
  if (auto linkable = check_linkable(*known, namespace_.files_.is_open(ino_)); !linkable) {
    if (from_memory) return false;  // so may be what is known of the name
    return std::unexpected(std::move(linkable).error());
  }
  const bool is_unwritten = !known->lease && !namespace_.files_.holds(ino_);
  if (!is_unwritten) LCCFS_CHECK(namespace_.files_.store_before_naming(*known, begun, Files::NewName::adds));
  LCCFS_CHECK(instance_.store_inode(name_.directory));
  if (!is_logged_) LCCFS_CHECK(instance_.log_inode(ino_));
  is_logged_ = true;
  auto attr = known->attr;
  ++attr.nlink;
  const auto step =
      metadata_.run(txn::add_link({ino_, known->attr_raw, attr, pointer_, namespace_.wall_time(), is_unwritten}));
  metadata_.inodes.drop(ino_);
  if (!step) {
    may_be_counted_ = !certainly_not_applied(step.error());
    return std::unexpected(step.error());
  }
  if (step->decided == Decided::refused) return false;
  counted_ = attr.type;
  return true;
}

/// Step 3. false: start over.
Result<bool> Namespace::Link::take_back_once() {
  LCCFS_TRY(const auto known, or_none(read_inode(instance_, ino_)));
  if (!known) return true;
  auto attr = known->attr;
  if (attr.nlink > 0) --attr.nlink;
  LCCFS_TRY(const auto step,
            instance_.run(txn::take_back_link({ino_, known->attr_raw, attr, pointer_, namespace_.wall_time()})));
  return step.decided == Decided::applied;
}

bool Namespace::Link::take_back() {
  const auto taken_back = until_done(instance_, [this](bool) { return take_back_once(); });
  metadata_.inodes.drop(ino_);
  if (!taken_back) {
    log::failed(log::Level::warning, format::inode_object(ino_) + ": link count left to the collector",
                taken_back.error());
  }
  return taken_back.has_value();
}

/// false: start over.
Result<bool> Namespace::Link::name_once(bool from_memory) {
  LCCFS_TRY(const auto entries, namespace_.directory_with_room_for(name_, from_memory));
  if (!entries) return false;
  if (!counted_) {
    LCCFS_TRY(const bool is_counted, count_name(from_memory));
    if (!is_counted) return false;
  }
  return namespace_.insert_entry(name_, {ino_, *counted_, pointer_.token}, std::nullopt, may_have_name_);
}

Result<> Namespace::Link::run() {
  const DirectoriesInUse::Making making(namespace_.directories_, name_.directory);
  if (const auto named = until_done(instance_, [this](bool first) { return name_once(first); }); !named) {
    const bool may_point_here = may_have_name_ || (counted_ ? !take_back() : may_be_counted_);
    if (may_point_here) namespace_.directories_.keep({ino_, name_.directory});
    return std::unexpected(named.error());
  }
  return {};
}

/// The answer is read anew: the kernel takes a size that comes with a name for the truth, and drops the pages past it,
/// those that a program has changed through a mapping too.
Result<EntryReply> Namespace::link(Ino ino, Ino parent, const std::string& text) {
  LCCFS_CHECK(check_change(options_, text));
  LCCFS_CHECK(check_as_told(ino));
  const auto sent = now();
  const auto name = metadata_.name_in(parent, text);
  LCCFS_CHECK(Link(*this, ino, name).run());
  LCCFS_TRY(const auto now_there, get_attributes(ino));
  return entry_reply(now_there, sent);
}

}  // namespace lccfs
