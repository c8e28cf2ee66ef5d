// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The rules of leased directories that can be switched off, one at a time: its name, the named case (cases.cpp) that
// goes wrong without it, what it says.
//
// Always on, because nothing goes wrong here without them: a batch guards "lease is mine", and its number (rule 5 of
// docs/PROTOCOL.md). Once fences are synced before a successor reads, no batch of an expired holder can be applied;
// and a batch that is applied twice under one lease does the same thing twice. Both are for real life: a batch that is
// refused tells a holder that it was fenced, and the number decides a step of which the answer is lost.
//
// Not modelled: nsub, times, attributes but of private inodes, pages of a large directory, exchange, a take that rides
// on a change, attributes folded into a record, what is undone after ENOSPC, truncation at the barrier, moves of
// directories, what link and move take back after a refusal, directories that are forgotten, more than three clients.
#pragma once

#include "../native_model.h"

namespace names_model {

// clang-format off
#define NAMES_MODEL_RULES(X) \
  X(guard_lease, "create x create", \
    "a step of who does not hold the directory guards: lease absent. The holder's: lease is mine") \
  X(guard_tenure, "one by one: rename, lookup x create of one client x unlink", \
    "... and of the very tenure in which the step was built") \
  X(ask, "create x lookup", \
    "who finds another's lease asks for the directory, and reads again: without a log or a kernel that keeps names only \
who changes it, else who reads it, too") \
  X(read_after_take, "rename x unlink, lookup", \
    "what a holder knows it has read after the take") \
  X(take_live, "create in C x rmdir C", \
    "only a live directory is leased") \
  X(drain, "create x lookup", \
    "a directory is released only with its log stored") \
  X(fence, "unlink, create; the holder dies; a collector", \
    "who relies on a fence syncs it, and reads after that") \
  X(step_number, "step by step: create x unlink, a step twice", \
    "numbers decide a step of which the answer is lost") \
  X(need_inode, "create x lookup", \
    "an entry goes out after its inode is stored") \
  X(need_child, "unlink in C, rmdir C; the holder dies", \
    "the removal of a directory goes out after the directory's own log") \
  X(prefix, "create a, b, mkdir, unlink a; the holder dies", \
    "a batch is a prefix of the directory's log") \
  X(drop_together, "create a, b, mkdir, unlink a; the holder dies", \
    "an insertion drops out only in one batch with its removal") \
  X(need_size, "write, rename over; the holder dies", \
    "a rename over a file goes out after the size of what it moves") \
  X(barrier, "create b, unlink C/a; the holder dies", \
    "a removal goes out after the insertions answered before it in other directories") \
  X(barrier_doomed, "a file moves twice by copies; the holder dies", \
    "... also after those whose own removal is in the log already") \
  X(barrier_step, "unlink step by step after a create; the holder dies", \
    "... also a removal that runs step by step") \
  X(step_drains, "create in C, link into C; the holder dies", \
    "a change that runs step by step in a directory held here waits for the directory's log") \
  X(fsync_upwards, "mkdir, fsync it; the holder dies", \
    "fsync stores the entries of the directories above, too") \
  X(fsync_name, "create, fsync, rename over; the holder dies", \
    "fsync of a file stores its name") \
  X(rely_on_token, "create; a collector", \
    "the tokens of records that are not stored are not retired") \
  X(take_child, "rmdir C x create in C", \
    "the holder of the parent takes a child's lease before it removes it") \
  X(take_child_version, "rmdir C x create in C", \
    "... under the version at which the child was seen empty") \
  X(removed_takes_none, "rmdir C, create in C", \
    "a directory that was removed under its lease takes no names") \
  X(removal_stored_first, "rmdir C x create in C", \
    "... it is given up after its removal is stored") \
  X(removal_marks_dead, "rmdir C x create in C", \
    "... and marked dead in that step") \
  X(look_for_name, "rmdir C; the holder dies; create in C", \
    "who takes a directory over looks whether it has a name; if not it is dead") \
  X(seal_unleased, "create in C x rmdir C", \
    "a directory that another holds is not sealed") \
  X(seal_version, "rmdir x rmdir x create in C", \
    "a seal guards the version at which the directory was seen empty") \
  X(own_child_stored, "create, unlink in C, rmdir C, P not held", \
    "who seals a directory that it holds itself stores its log first") \
  X(recheck_not_empty, "step by step: rmdir x rename, create in it", \
    "ENOTEMPTY is answered only if the name, read again, is unchanged") \
  X(tell_kernel, "kernel: lookup of a missing name x create", \
    "before a directory is released the kernel drops its names, and the attributes of private inodes") \
  X(short_when_asked, "kernel: lookups while asked x create", \
    "once a directory is asked for, replies carry no long time-outs") \
  X(hold_back_after_telling, "kernel: create x create", \
    "changes of a directory that is asked for wait only once the kernel was told: it needs a lock that they have") \
  X(give_way, "kernel: two rmdir, each holds one", \
    "a request that waits for another holder, while a directory is asked for that its kernel call locks, lets go and \
begins again") \
  X(tell_new_name, "kernel: lookup, rename x unlink", \
    "a rename takes the kernel's time-out along: the new name is one that the kernel was told") \
  X(keep_if_unchanged, "one by one: lookup x create of one client", \
    "what was read is kept only if nothing has changed that name here since the read was sent") \
  X(keep_same_tenure, "one by one: lookup in an earlier tenure", \
    "... and only in the tenure in which it was sent") \
  X(keep_no_marked, "a mark, then a take: move x lookup", \
    "a holder keeps nothing of a name that has a mark: who changes it settles the mark, others read it each time") \
  X(forget_marked, "no log: move from a held directory x lookups", \
    "a holder forgets a name that it marks, before it commits the move") \
  X(forget_once_marked, "no log: move, any held x lookups", \
    "... and does so once the mark is there: a read before that may show the name without it, and is kept") \
  X(know_all_names, "move out of C, rmdir C x lookup in C", \
    "what a holder says to be empty has no name that it does not know") \
  X(hide_target, "no log: move, any held x lookups of both, a step twice", \
    "while the commit of a move is under way the new name is read each time") \
  X(hide, "no log: create x lookup of one client, a step twice", \
    "from before a step that changes names is sent until its answer is here these names are read each time: others, who \
ask nobody, may have seen the change") \
  X(newest_counts, "no log: create x unlink, lookup of one client, a step twice", \
    "of a name the newest step counts: an earlier one whose answer comes later tells nothing of it") \
  X(move_both, "kernel: move into a held directory x lookups", \
    "where the kernel keeps names, a move holds both directories or neither: the kernel answers the new name on its \
own, and takes the old one's time-out along") \
  X(hear_first, "no log: lookups x create; an eviction", \
    "a holder that stood still answers nothing from memory before it has heard from the store") \
  X(link_ends_privacy, "create, link x chmod, stat", \
    "link and move end the privacy of an inode before it has the new name") \
  X(open_not_dropped, "create, open, unlink", \
    "an insertion whose inode is open here does not drop out") \
  X(ask_who_has_open, "open, unlink; a collector", \
    "a collector asks who has an inode open before it removes it") \
  X(own_only_private, "own removal: unlink x open", \
    "a client removes only what was private when it lost its name: else others may have it open") \
  X(own_after_batch, "own removal: create, unlink", \
    "... once the batch that takes the name away is stored") \
  X(own_guards_version, "own removal: create, unlink x link of one client", \
    "... if nothing has changed since it was seen to have no other parent") \
  X(own_marks_dead, "own removal: create, unlink x open of one client", \
    "... and marks it dead before it looks whether it is open here: who comes later finds that") \
  X(own_asks_itself, "own removal: create, open, unlink", \
    "... which it does")
// clang-format on

enum Rule { NAMES_MODEL_RULES(NATIVE_MODEL_NAME) };

inline constexpr native_model::RuleText rule_texts[] = {NAMES_MODEL_RULES(NATIVE_MODEL_TEXT)};

inline bool on(Rule rule) { return native_model::is_on(rule); }

}  // namespace names_model
