// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The rules of the write lease (docs/DATA.md) that can be switched off, one at a time: its name, a named
// case (cases.cpp) that goes wrong without it, what it says.
//
// Always on, because nothing goes wrong here without them: size and map steps guard "lease is mine".
#pragma once

#include "../native_model.h"

namespace lease_model {

// clang-format off
#define LEASE_MODEL_RULES(X) \
  X(take_guards_absent, "take: write after another's grow", \
    "taking the lease guards: absent") \
  X(take_guards_version, "two releases, growth", \
    "taking the lease guards the inode's version as read") \
  X(take_needs_no_name, "unlinked while open, write, close; collector", \
    "taking the lease guards: the inode exists, not: it lives (open unlinked files)") \
  X(take_over_guards_old, "asked while cleaning", \
    "taking the lease over guards: it is the old one") \
  X(take_over_reads_anew, "evicted holder truncates; other writes", \
    "after a take-over inode and map are read anew") \
  X(take_over_cuts_boundary, "take over an unfinished truncate: gap write", \
    "who takes over cuts the boundary object at the stored size") \
  X(take_over_removes_beyond, "take over an unfinished truncate: gap write", \
    "who takes over removes the mapped objects past it") \
  X(clean_before_answers, "asked while cleaning", \
    "the tail is clean before any request is answered") \
  X(own_lease_found_is_cleaned, "take-over run twice", \
    "a lease found to be one's own after a failed take-over: cleaned all the same") \
  X(release_guards_own, "release run twice, other grows", \
    "releasing guards: the lease is mine") \
  X(release_waits_for_writes, "evicted holder grows, fsyncs; other grows", \
    "releasing waits for all writes in flight") \
  X(reads_are_awaited, "reader in the holder x its truncate", \
    "releasing and truncate wait for the reads in flight too") \
  X(release_lets_nothing_in, "reader in the holder x truncate of another", \
    "a holder that is asked lets nothing new in") \
  X(take_syncs_fence, "holder dies with an overwrite; two takers", \
    "who takes the lease syncs fences if the inode's fence number is new to it") \
  X(read_syncs_fence, "holder dies with an overwrite; taker; reader", \
    "so does who reads without the lease") \
  X(others_fence_is_synced, "unlinked, writer dies, other fences; collector", \
    "whoever relies on another's fence syncs fences first") \
  X(one_inode_step, "map bits in parallel, one client", \
    "a holder has one step on the inode in flight") \
  X(bits_before_data, "failed growth beside growth", \
    "map bits are set before the data is written") \
  X(overlapping_writes_wait, "overlapping writes in one client, reader", \
    "writes of overlapping ranges go one after the other") \
  X(failed_write_is_cleaned, "failed growth run before, then gap growth", \
    "what a failed write past the end may have left is cut before it is answered") \
  X(failed_write_cleans_alone, "failed growth beside growth", \
    "... and that alone, at the size then") \
  X(append_alone, "appends in parallel and of two clients", \
    "an append runs alone") \
  X(append_at_own_size, "appends in parallel and of two clients", \
    "... at the size under the lease, whatever the kernel's offset") \
  X(truncate_alone, "reader in the holder x its truncate", \
    "truncate runs alone") \
  X(size_before_cut, "stat asked while the holder truncates", \
    "truncate stores the size before it cuts") \
  X(cut_is_definite, "evicted holder truncates; other writes", \
    "all cuts are definite before anything else is done") \
  X(step_without_change, "evicted holder punches a hole; other writes", \
    "where nothing is to be done, the size step is done all the same: who was evicted learns of it") \
  X(punch_alone, "punch and overwrite in one client, reader", \
    "punching a hole is alone for its range") \
  X(end_asks_holder, "extend x reader at the end", \
    "getattr, and a read that meets the end, ask the holder") \
  X(holder_stores_size, "extend x reader at the end", \
    "a holder that is asked stores its size before it answers") \
  X(reread_after_fence, "extend x reader at the end", \
    "a holder that was asked and is gone is fenced, and the inode read after that") \
  X(missing_bytes_reread, "reader x holder's truncate, append", \
    "a read that finds bytes missing reads the inode again: changed -> it starts over") \
  X(fsync_stores_size, "evicted holder grows, fsyncs; other grows", \
    "fsync stores the size") \
  X(collector_asks, "unlinked, writer dies or is evicted; collector", \
    "a collector asks who has a dead inode open") \
  X(collector_fences_gone, "unlinked while open, extends, close; collector", \
    "... and fences who is gone before it removes anything")
// clang-format on

enum Rule { LEASE_MODEL_RULES(NATIVE_MODEL_NAME) };

inline constexpr native_model::RuleText rule_texts[] = {LEASE_MODEL_RULES(NATIVE_MODEL_TEXT)};

inline bool on(Rule rule) { return native_model::is_on(rule); }

}  // namespace lease_model
