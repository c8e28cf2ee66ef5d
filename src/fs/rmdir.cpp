// SPDX-License-Identifier: LGPL-2.1-or-later
//
// rmdir (P, name -> X): 1 read, 3 writes.
//
//  # | object     | step                                                         | stop here leaves
//  - | Inode.X    | read version and entries; clean dangling ones; any left ->   |
//    |            | re-read the name unchanged -> not empty                      |
//  0 | Session.me | items X and directory P, in one write                        | items that find nothing to do
//  1 | Inode.X    | guard that version; state = sealed(t, P, name)               | still there, empty for readers;
//    |            |                                                              | whoever wants to change it settles
//  2 | Inode.P    | guard the entry's whole value, x/t absent; remove both keys; | COMMIT
//    |            | set d/X/t; nsub - 1, guarded; times                          |
//  3 | Inode.X    | dead: left to recount                                        |
//
// 2 failed: unseal (guard sealed(t)), remove the own x/t; another had cancelled it, or the name changed: start over.
#include "fs/namespace_private.h"

namespace lccfs {

Result<> Namespace::rmdir(Ino parent, const std::string& text) {
  auto& my = *private_;
  LCCFS_CHECK(my.check_change(text));
  const auto name = my.name_in(parent, text);
  Ino logged;
  for (auto tries = my.attempts();;) {
    LCCFS_CHECK(tries.next());
    const auto sent = my.now();
    LCCFS_TRY(const auto seen, my.see({&name}, tries.first()));
    const auto& entry = seen.entries.front();
    if (!seen.directory) continue;
    if (!entry || entry->record.type != FileType::directory) {
      if (!seen.fresh) continue;
      if (!entry) return failure(ErrorCode::not_found, format::inode_object(parent) + ": no entry " + text);
      LCCFS_TRY(const auto target, my.target_of(name, *entry));
      if (!target) continue;
      return failure(ErrorCode::not_directory, format::inode_object(parent) + ": " + text);
    }
    const Token token = my.instance.next_token();
    const std::vector<Private::ExpectedEntry> expected{{name, entry}};
    LCCFS_TRY(const auto seal, my.seal_empty(expected, token, logged));
    if (!seal) continue;
    const auto time = my.wall_time();
    LCCFS_TRY(const bool committed,
              my.commit_sealed(*seal, seen.directory, expected, time, [&](const txn::SubdirectoryCount& nsub) {
                return txn::remove_entry(name, *entry, token, time, nsub);
              }));
    if (!committed) continue;
    my.names.put(name, std::nullopt, sent);
    return {};
  }
}

}  // namespace lccfs
