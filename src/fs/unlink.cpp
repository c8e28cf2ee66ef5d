// SPDX-License-Identifier: LGPL-2.1-or-later
//
// unlink (P, name -> X): 1 write.
//
//  # | object     | step                                                     | stop here leaves
//  0 | Session.me | directory item P, if none is relied on already           |
//  1 | Inode.P    | guard the entry's whole value; remove both keys;         | COMMIT
//    |            | set d/X/t; times                                         |
//  2 | Inode.X    | if nlink > 1, or this client has X open: nlink - 1, ctime | recount repairs it, from d/X/t
#include "base/log.h"
#include "fs/namespace_private.h"

namespace lccfs {

/// Step 2. The name is gone whatever becomes of it: who fails here leaves it to recount.
void Namespace::Private::one_name_less(const InodeView& inode) {
  if (inode.attr.nlink <= 1 && !files.is_open(inode.ino)) return inodes.drop(inode.ino);
  const auto take_one = [](format::AttrRecord& attr) -> Result<> {
    if (attr.nlink > 0) --attr.nlink;
    return {};
  };
  const auto changed = change_attr(instance, inode.ino, take_one, &inode);
  if (!changed) {
    log::warning(format::inode_object(inode.ino) + ": link count left to the collector: " + changed.error().context);
    return inodes.drop(inode.ino);
  }
  attr_changed(*changed);
}

Result<> Namespace::unlink(Ino parent, const std::string& text) {
  auto& my = *private_;
  LCCFS_CHECK(my.check_change(text));
  const auto name = my.name_in(parent, text);
  for (auto tries = my.attempts();;) {
    LCCFS_CHECK(tries.next());
    const auto sent = my.now();
    LCCFS_TRY(const auto seen, my.see({&name}, tries.first()));
    const auto& entry = seen.entries.front();
    if (!entry || entry->record.type == FileType::directory) {
      if (!seen.fresh) continue;
      if (!entry) return failure(ErrorCode::not_found, format::inode_object(parent) + ": no entry " + text);
    }
    LCCFS_TRY(const auto target, my.target_of(name, *entry));
    if (!target) continue;
    if (target->is_directory()) return failure(ErrorCode::is_directory, format::inode_object(parent) + ": " + text);
    LCCFS_CHECK(my.instance.rely_on_directory(parent));
    const auto time = my.wall_time();
    LCCFS_TRY(const auto step,
              my.run_in_directory(txn::remove_entry(name, *entry, my.instance.next_token(), time, std::nullopt)));
    if (step.decided == Decided::refused) continue;
    my.names.put(name, std::nullopt, sent);
    my.directory_changed(parent, step.version, time, nullptr);
    my.one_name_less(*target);
    return {};
  }
}

}  // namespace lccfs
