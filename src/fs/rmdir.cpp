// SPDX-License-Identifier: LGPL-2.1-or-later
//
// rmdir (P, name -> X): 1 read, 3 writes.
//
//  # | object     | step                                                    | stop here leaves
//  - | Inode.X    | read version and entries; [clear dangling entry] of     |
//    |            | dangling ones. Others are left, and the name, read      |
//    |            | again, is unchanged: not empty                          |
//  0 | Session.me | [log queue items] items X and directory P, in one write | items that find nothing to do: a
//    |            |                                                         | collector drops them
//  1 | Inode.X    | [seal] guard that version; state = sealed(t, P, name)   | X has its name, is empty, and takes no
//    |            |                                                         | names. The next insert into X, rmdir or
//    |            |                                                         | replacement of X settles the seal, or a
//    |            |                                                         | collector, from item X: X is live again
//  2 | Inode.P    | [remove entry] guard the entry's whole value, x/t       | COMMIT. X sealed, without a name: stale.
//    |            | absent; remove both keys; set d/X/t; nsub - 1, guarded; | A collector marks it dead and removes it,
//    |            | times                                                   | from item X or d/X/t
//  3 | Inode.X    | dead: left to recount                                   |
//
// 2 certainly not applied: if only nsub has changed, 2 again. Otherwise the seal is taken back; and if another instance
// had cancelled it, or the name has changed, the operation starts over.
//
//  # | object     | step                                                    | stop here leaves
//  3'| Inode.X    | [unseal] guard sealed(t)                                | as after 0, and perhaps x/t, which a
//    |            |                                                         | collector drops, from directory item P
//  4'| Inode.P    | [remove decision] the own x/t, whether it is there or   | as after 0
//    |            | not                                                     |
//
// The outcome of 2 is not known (the client was fenced, for example): the seal stays, as after 1 or 2.
//
// Where names are written behind (docs/NAMES.md section 5), and X is held here, and known to be empty, its lease stands in
// for the seal: it takes no names any more.
//
//  # | object     | step                                                    | stop here leaves
//  - |            | the answer                                              | as before
//  1 | Inode.P    | 2 without its guards, as part of a batch, after what    | COMMIT. X live, under our lease: who
//    |            | was changed in X (name_log.cpp); nsub - 1, guarded      | settles that finds that it has no name
//  2 | Inode.X    | [mark removed directory dead] with the release of its   | done; a collector removes it, from d/X/t
//    |            | lease (directory_leases.cpp)                            |
#include "fs/namespace.h"

namespace lccfs {

/// false: step by step.
Result<bool> Namespace::remove_behind(const txn::Name& name, const Entries& entries) {
  LCCFS_TRY(const bool may_be_behind, metadata_.may_change_behind(entries));
  if (!may_be_behind) return false;
  const auto kept = keep_behind(name.directory);
  const auto& entry = entries.found.front();
  const Ino removed = entry->record.ino;
  const auto time = wall_time();
  const bool is_behind =
      metadata_.change_behind({entries,
                               {{name, entry, std::nullopt}},
                               txn::remove_entry(name, *entry, instance_.next_token(), time, std::nullopt),
                               time,
                               {.removed = removed, .removes = true, .subdirectories = -1},
                               kept});
  if (!is_behind) return false;
  metadata_.inodes.drop(removed);
  emptying_.lost_directory(name.directory);
  return true;
}

Result<> Namespace::rmdir(Ino parent, const std::string& text) {
  LCCFS_CHECK(check_change(options_, text));
  const auto name = metadata_.name_in(parent, text);
  Ino logged;
  const bool is_taken = begin_to_empty(parent);
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    const auto sent = now();
    LCCFS_TRY(const auto entries, seals_.find_to_change({&name}, tries.first() && !is_taken));
    const auto& entry = entries.found.front();
    if (!entries.directory) continue;
    if (!entry || entry->record.type != FileType::directory) {
      if (!entries.fresh) continue;
      if (!entry) return std::unexpected(no_entry(name));
      LCCFS_TRY(const auto target, seals_.target_of(name, *entry));
      if (!target) continue;
      return failure(ErrorCode::not_directory, describe(name));
    }
    LCCFS_TRY(const bool is_behind, remove_behind(name, entries));
    if (is_behind) return {};
    LCCFS_CHECK(leases_.make_kernel_ask_before_step({&name}));
    LCCFS_CHECK(store_additions());
    const Token token = instance_.next_token();
    const std::vector<ExpectedEntry> expected{{name, entry}};
    const HeldDirectories::NoChangesBehind none(leases_.held, entry->record.ino);
    LCCFS_TRY(const auto seal, seals_.seal_empty(expected, token, logged));
    if (!seal) continue;
    const auto time = wall_time();
    const Metadata::Changing changing(metadata_, {&name});
    LCCFS_TRY(const auto committed,
              seals_.commit(*seal, entries.directory, expected, time, [&](const txn::SubdirectoryCount& nsub) {
                return txn::remove_entry(name, *entry, token, time, nsub);
              }));
    if (!committed) continue;
    metadata_.name_changed(name, std::nullopt, sent, *committed);
    return {};
  }
}

}  // namespace lccfs
