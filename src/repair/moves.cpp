// SPDX-License-Identifier: LGPL-2.1-or-later
// Marks of renames across directories, and their decisions (docs/PROTOCOL.md section 6). Which name goes the collector
// says; repairs see to it that it can. What was decided and lost, the new entry proves: it has the token of the move.
// Without it both names stay, because no name is taken away on doubt.
#include <algorithm>

#include "repair/repairs.h"

namespace lccfs::repair {

using format::DecisionRecord;
using format::EntryRecord;
using format::QueueItem;

namespace {

Bytes committed(const txn::Name& old_name) {
  return encode(DecisionRecord{DecisionRecord::Kind::committed, old_name.directory, old_name.name});
}

}  // namespace

/// Of an entry and its reverse key, each has what the other has lost, if the same step has written both.
Result<Repair> Repairs::repair_marks(const Finding& finding) {
  const auto name = name_of(finding.ino, finding.name);
  const txn::Part reverse{format::reverse_key(finding.target, finding.name), true};
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {name.key, reverse.name}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  const Bytes* value = directory ? directory->value_of(reverse) : nullptr;
  if (!entry || entry->record.ino != finding.target || value == nullptr) return settled();
  auto right = entry->record;
  if (*value == format::reverse_value(right)) return settled();
  const auto marked = format::marked_entry(*value, finding.target);
  if (!right.mark && marked && marked->token == right.token) right.mark = marked->mark;
  return restore_entry(*directory, name, right, right.mark ? "both have its mark" : "without a mark");
}

/// With its reverse key, and with what leads to its mark.
Result<Repair> Repairs::restore_entry(const Object& directory, const txn::Name& name, const EntryRecord& entry,
                                      std::string what) {
  if (entry.mark) {
    LCCFS_TRY(const bool led, lead_to_mark(name, entry));
    if (!led) return changed_meanwhile();
  }
  return step(txn::put_entry(directory.as_read(), name, entry, std::nullopt), std::move(what));
}

/// Comes before the mark: a collector that finds neither item nor decision takes the move for cancelled. False: the
/// other directory has changed meanwhile.
Result<bool> Repairs::lead_to_mark(const txn::Name& name, const EntryRecord& entry) {
  const auto& mark = *entry.mark;
  const auto now = clock_.wall_time();
  LCCFS_CHECK(
      log_items({{QueueItem::Kind::inode, entry.ino, {}, now}, {QueueItem::Kind::directory, mark.to, {}, now}}));
  const txn::Part decision{format::decision_key(mark.token), true};
  LCCFS_TRY(const auto to, objects_.read_keys(format::inode_object(mark.to), {decision.name}));
  if (!to) return true;
  LCCFS_TRY(const auto new_names, objects_.names_in(mark.to, entry.ino));
  const bool moved =
      std::ranges::any_of(new_names, [&](const Holder& holder) { return holder.entry.token == mark.token; });
  const Bytes* stored = to->value_of(decision);
  const bool is_there = stored != nullptr && *stored == committed(name);
  if (!moved || is_there || to->is_newer<DecisionRecord>(decision)) return true;
  return objects_.change(txn::put_part(to->as_read(), decision, committed(name)));
}

/// A seal's decision was "cancelled", and so counts a move's without proof: an owner that still waits for it commits no
/// more. An entry of a newer version may be the proof.
Result<Repair> Repairs::derive_decision(const Object& directory, Ino ino, const txn::Part& part) {
  const auto token = format::parse_decision_key(part.name);
  if (!token) return drop(directory, part, "removed");
  std::vector<Ino> moved;
  bool newer = false;
  LCCFS_CHECK(objects_.for_each_key(directory.name, "n/", [&](const std::string&, const Bytes& value) -> Result<> {
    const auto entry = format::decode<EntryRecord>(value);
    if (entry && entry->token == *token) moved.push_back(entry->ino);
    newer = newer || is_of_newer_version<EntryRecord>(value);
    return {};
  }));
  for (const Ino inode : moved) {
    LCCFS_TRY(const auto old_name, marked_name(inode, {*token, ino}));
    if (old_name) return put(directory, part, committed(*old_name), "taken for committed: the new name is there");
  }
  if (newer) return left_to_newer("one of the entries, which may be the new name");
  return put(directory, part, encode(DecisionRecord{}), "taken for cancelled");
}

/// Of all names of an inode one that a move has ended: so its decision says, or the new name, if that is lost.
Result<bool> Repairs::has_moved_away(const Holder& name, const std::vector<Holder>& all) {
  const auto& mark = name.entry.mark;
  if (!mark) return false;
  const bool has_new_name = std::ranges::any_of(
      all, [&](const Holder& other) { return other.directory == mark->to && other.entry.token == mark->token; });
  if (has_new_name) return true;
  const txn::Part part{format::decision_key(mark->token), true};
  LCCFS_TRY(const auto to, objects_.read_keys(format::inode_object(mark->to), {part.name}));
  const Bytes* stored = to ? to->value_of(part) : nullptr;
  if (stored == nullptr) return false;
  const auto decision = format::decode<DecisionRecord>(*stored);
  return decision && decision->kind == DecisionRecord::Kind::committed;
}

/// Those that the collector will not take away.
Result<std::vector<Holder>> Repairs::standing_names(const Object& inode, Ino ino) {
  LCCFS_TRY(const auto all, objects_.names_of(inode, ino));
  std::vector<Holder> standing;
  for (const auto& name : all) {
    LCCFS_TRY(const bool moved_away, has_moved_away(name, all));
    if (!moved_away) standing.push_back(name);
  }
  return standing;
}

/// The name of that inode that has that mark, in its entry or in its reverse key.
Result<std::optional<txn::Name>> Repairs::marked_name(Ino ino, const EntryRecord::Mark& mark) {
  LCCFS_TRY(const auto inode, objects_.read_inode(ino));
  if (!inode) return std::nullopt;
  for (const Ino parent : inode->parents()) {
    LCCFS_TRY(const auto reverse, objects_.read_inode(parent, format::reverse_key(ino, "")));
    if (!reverse) continue;
    for (const auto& [key, value] : reverse->keys) {
      const auto parsed = format::parse_reverse_key(key);
      const auto marked = format::marked_entry(value, ino);
      if (parsed && marked && marked->mark == mark) return name_of(parent, parsed->name);
    }
    LCCFS_TRY(const auto names, objects_.names_in(parent, ino));
    const auto found = std::ranges::find(names, std::optional(mark), [](const Holder& one) { return one.entry.mark; });
    if (found != names.end()) return name_of(parent, found->name);
  }
  return std::nullopt;
}

}  // namespace lccfs::repair
