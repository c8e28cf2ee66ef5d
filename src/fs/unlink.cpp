// SPDX-License-Identifier: LGPL-2.1-or-later
//
// unlink (P, name -> X): 1 write; 2, one after the other, if X has another name or is open here.
//
//  # | object     | step                                                       | stop here leaves
//  0 | Session.me | [log queue items] directory item P, if none is relied on   | an item that finds nothing to do
//    |            | already                                                    |
//  1 | Inode.P    | [remove entry] guard the entry's whole value; remove both  | COMMIT. A collector removes X, or
//    |            | keys; set d/X/t; times                                     | corrects its nlink, from d/X/t
//  2 | Inode.X    | [change attr] nlink - 1, ctime, if nlink > 1, or this      | done; a collector removes X, from
//    |            | client has X open                                          | d/X/t, if no name is left and no
//    |            |                                                            | client has it open
//
// Where names are written behind (docs/NAMES.md section 5), and there is no step 2, the answer comes first, and 1 is part
// of a batch (name_log.cpp); the first removal after a listing takes the lease for that (emptying.h). What nobody else can
// find, this client then removes itself (removals.h).
#include "fs/namespace.h"

namespace lccfs {

Result<> Namespace::unlink(Ino parent, const std::string& text) {
  LCCFS_CHECK(check_change(options_, text));
  const auto name = metadata_.name_in(parent, text);
  const auto kept = keep_behind(parent);
  const bool is_taken = begin_to_empty(parent);
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    const auto sent = now();
    LCCFS_TRY(const auto entries, seals_.find_to_change({&name}, tries.first() && !is_taken));
    const auto& entry = entries.found.front();
    if (!entry || entry->record.type == FileType::directory) {
      if (!entries.fresh) continue;
      if (!entry) return std::unexpected(no_entry(name));
    }
    LCCFS_TRY(const auto target, seals_.target_of(name, *entry));
    if (!target) continue;
    if (target->is_directory()) return failure(ErrorCode::is_directory, describe(name));
    const auto time = wall_time();
    const auto token = instance_.next_token();
    auto removal = txn::remove_entry(name, *entry, token, time, std::nullopt);
    LCCFS_TRY(const bool may_be_behind, metadata_.may_change_behind(entries));
    const bool is_gone = is_gone_with_its_name(*target);
    if (may_be_behind && is_gone &&
        metadata_.change_behind(
            {entries,
             {{name, entry, std::nullopt}},
             removal,
             time,
             {.unlinked = target->ino, .own_unlinked = token_if_own(target->ino, token), .removes = true},
             kept})) {
      lost_its_only_name(target->ino);
      emptying_.lost_file(parent);
      return {};
    }
    LCCFS_CHECK(instance_.rely_on_directory(parent));
    LCCFS_TRY(const bool are_stored, store_additions_before_a_name_goes(*target, is_gone));
    if (!are_stored) continue;
    const Metadata::Changing changing(metadata_, {&name});
    LCCFS_TRY(const auto step, metadata_.run_on_directory(std::move(removal), {&name}));
    if (step.decided == Decided::refused) continue;
    metadata_.name_changed(name, std::nullopt, sent, step.version);
    metadata_.directory_changed(parent, step.version, time);
    one_link_less(*target);
    return {};
  }
}

}  // namespace lccfs
