// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/namespace_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
using format::NumberRecord;
using format::StateRecord;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

Bytes marker() { return Bytes(format::marker_value); }

void set_number(MetaTxn& txn, const char* name, std::uint64_t value) {
  txn.mutations.emplace_back(mutation::SetXattr{name, encode(NumberRecord{value})});
}

void set_time(MetaTxn& txn, const char* name, TimeSpec time) {
  txn.mutations.emplace_back(mutation::SetXattr{name, encode(TimeRecord{time})});
}

void touch_directory(MetaTxn& txn, TimeSpec now) {
  set_time(txn, xattr::mtime, now);
  set_time(txn, xattr::ctime, now);
}

void add_name(MetaTxn& txn, const Name& name, const format::EntryRecord& entry) {
  txn.mutations.emplace_back(mutation::SetKey{name.key, encode(entry)});
  txn.mutations.emplace_back(mutation::SetKey{format::reverse_key(entry.ino, name.name), marker()});
}

void remove_name(MetaTxn& txn, const Name& name, Ino ino) {
  txn.mutations.emplace_back(mutation::RemoveKey{name.key});
  txn.mutations.emplace_back(mutation::RemoveKey{format::reverse_key(ino, name.name)});
}

void guard_entry(MetaTxn& txn, const Name& name, const Entry& entry) {
  txn.guards.emplace_back(guard::KeyEquals{name.key, entry.raw});
}

void change_nsub(MetaTxn& txn, const SubdirectoryCount& nsub) {
  txn.guards.emplace_back(guard::XattrEquals{xattr::nsub, nsub.raw});
  set_number(txn, xattr::nsub, nsub.changed);
}

/// The inode loses a name here: whoever looks for the rest of it finds this key. A sealed directory goes only if nobody
/// has cancelled that.
void detach(MetaTxn& txn, Ino ino, Token token, const std::optional<SubdirectoryCount>& nsub) {
  txn.mutations.emplace_back(mutation::SetKey{format::detached_key(ino, token), marker()});
  if (!nsub) return;
  txn.guards.emplace_back(guard::KeyAbsent{format::decision_key(token)});
  change_nsub(txn, *nsub);
}

guard::XattrEquals state_is(const StateRecord& state) { return {xattr::state, encode(state)}; }

mutation::SetXattr set_state(StateRecord::Kind kind) {
  StateRecord state;
  state.kind = kind;
  return {xattr::state, encode(state)};
}

}  // namespace

MetaTxn create_inode(const NewInode& inode) {
  MetaTxn txn{format::inode_object(inode.ino),
              "create inode",
              {},
              {mutation::CreateExclusive{}, mutation::SetXattr{xattr::attr, encode(inode.attr)},
               set_state(StateRecord::Kind::live), mutation::SetXattr{xattr::parent, encode(inode.parent)}}};
  for (const char* name : {xattr::atime, xattr::mtime, xattr::ctime}) set_time(txn, name, inode.time);
  if (inode.attr.type == FileType::regular) set_number(txn, xattr::size, 0);
  if (inode.attr.type == FileType::directory) set_number(txn, xattr::nsub, 0);
  if (inode.attr.type == FileType::symlink) {
    set_number(txn, xattr::size, inode.symlink_target.size());
    txn.mutations.emplace_back(mutation::SetPayload{inode.symlink_target});
  }
  if (inode.lease) set_number(txn, xattr::lease, inode.lease->value);
  return txn;
}

MetaTxn remove_new_inode(Ino ino, std::uint64_t version) {
  return {format::inode_object(ino), "remove new inode", {guard::VersionIs{version}}, {mutation::Remove{}}};
}

MetaTxn insert_entry(const Name& name, const format::EntryRecord& entry, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub) {
  MetaTxn txn{
      format::inode_object(name.directory), "insert entry", {state_is(StateRecord{}), guard::KeyAbsent{name.key}}, {}};
  add_name(txn, name, entry);
  touch_directory(txn, now);
  if (nsub) change_nsub(txn, *nsub);
  return txn;
}

MetaTxn remove_entry(const Name& name, const Entry& entry, Token token, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub) {
  MetaTxn txn{format::inode_object(name.directory), "remove entry", {}, {}};
  guard_entry(txn, name, entry);
  remove_name(txn, name, entry.record.ino);
  detach(txn, entry.record.ino, token, nsub);
  touch_directory(txn, now);
  return txn;
}

MetaTxn clear_dangling_entry(const Name& name, const Entry& entry, const std::optional<SubdirectoryCount>& nsub) {
  MetaTxn txn{format::inode_object(name.directory), "clear dangling entry", {}, {}};
  guard_entry(txn, name, entry);
  remove_name(txn, name, entry.record.ino);
  if (nsub) change_nsub(txn, *nsub);
  return txn;
}

MetaTxn rename_entries(const Rename& rename) {
  MetaTxn txn{format::inode_object(rename.from.directory), "rename entries", {}, {}};
  guard_entry(txn, rename.from, rename.moved);
  remove_name(txn, rename.from, rename.moved.record.ino);
  if (rename.replaced) {
    guard_entry(txn, rename.to, *rename.replaced);
    remove_name(txn, rename.to, rename.replaced->record.ino);
    detach(txn, rename.replaced->record.ino, rename.token, rename.nsub);
  } else {
    txn.guards.emplace_back(guard::KeyAbsent{rename.to.key});
  }
  add_name(txn, rename.to, {rename.moved.record.ino, rename.moved.record.type, rename.token});
  touch_directory(txn, rename.now);
  return txn;
}

MetaTxn exchange_entries(const Name& first, const Entry& first_entry, const Name& second, const Entry& second_entry,
                         Token token, TimeSpec now) {
  MetaTxn txn{format::inode_object(first.directory), "exchange entries", {}, {}};
  guard_entry(txn, first, first_entry);
  guard_entry(txn, second, second_entry);
  remove_name(txn, first, first_entry.record.ino);
  remove_name(txn, second, second_entry.record.ino);
  add_name(txn, first, {second_entry.record.ino, second_entry.record.type, token});
  add_name(txn, second, {first_entry.record.ino, first_entry.record.type, token});
  touch_directory(txn, now);
  return txn;
}

MetaTxn seal(Ino directory, std::uint64_t version, const StateRecord& sealed) {
  return {format::inode_object(directory),
          "seal",
          {guard::VersionIs{version}},
          {mutation::SetXattr{xattr::state, encode(sealed)}}};
}

MetaTxn unseal(Ino directory, const StateRecord& sealed) {
  return {format::inode_object(directory), "unseal", {state_is(sealed)}, {set_state(StateRecord::Kind::live)}};
}

MetaTxn mark_dead(Ino directory, const StateRecord& sealed) {
  return {format::inode_object(directory), "mark dead", {state_is(sealed)}, {set_state(StateRecord::Kind::dead)}};
}

MetaTxn cancel_seal(Ino parent, Ino ino, Token token) {
  const auto decision = format::decision_key(token);
  return {format::inode_object(parent),
          "cancel seal",
          {guard::KeyAbsent{format::detached_key(ino, token)}, guard::KeyAbsent{decision}},
          {mutation::SetKey{decision, encode(format::DecisionRecord{format::DecisionRecord::Kind::cancelled})}}};
}

MetaTxn remove_decision(Ino parent, Token token) {
  return {format::inode_object(parent), "remove decision", {}, {mutation::RemoveKey{format::decision_key(token)}}};
}

}  // namespace lccfs::txn
