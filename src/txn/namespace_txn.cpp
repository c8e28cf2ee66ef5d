// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/namespace_txn.h"

#include <algorithm>

#include "txn/parts.h"

namespace lccfs::txn {

using format::StateRecord;

namespace {

/// What of an object it changes: an xattr or a key, with its name.
std::pair<bool, std::string> place_of(const Mutation& change) {
  return std::visit(
      [](const auto& its) -> std::pair<bool, std::string> {
        if constexpr (requires { its.key; }) return {true, its.key};
        if constexpr (requires { its.name; }) return {false, its.name};
        return {};
      },
      change);
}

void touch_directory(MetaTxn& txn, TimeSpec now) { add(txn, set(xattr::mtime, now), set(xattr::ctime, now)); }

void guard_entry(MetaTxn& txn, const Name& name, const Entry& entry) {
  add(txn, guard::KeyEquals{name.key, entry.raw});
}

void change_nsub(MetaTxn& txn, const SubdirectoryCount& nsub) {
  add(txn, guard::XattrEquals{xattr::nsub, nsub.raw});
  set_nsub(txn, nsub.changed);
}

/// The inode loses a name here: this key leads to the rest of it. A sealed directory is removed only if no other
/// instance has cancelled that.
void detach(MetaTxn& txn, Ino ino, Token token, const std::optional<SubdirectoryCount>& nsub) {
  add(txn, mark(format::detached_key(ino, token)));
  if (!nsub) return;
  add(txn, guard::KeyAbsent{format::decision_key(token)});
  change_nsub(txn, *nsub);
}

guard::XattrEquals state_is(const StateRecord& state) { return {xattr::state, encode(state)}; }

}  // namespace

MetaTxn create_inode(const NewInode& inode) {
  auto txn = make_inode(inode.ino, "create inode", inode.attr, inode.time);
  add(txn, set(xattr::parent, inode.parent));
  if (inode.attr.type == FileType::regular) add(txn, set(xattr::size, 0));
  if (inode.attr.type == FileType::directory) set_nsub(txn, 0);
  if (inode.attr.type == FileType::symlink) {
    add(txn, set(xattr::size, inode.symlink_target.size()), mutation::SetPayload{inode.symlink_target});
  }
  if (inode.lease) add(txn, set(xattr::lease, inode.lease->value));
  if (inode.directory_lease) add(txn, set(xattr::lease, format::DirectoryLeaseRecord{*inode.directory_lease}));
  if (inode.names_behind) add(txn, set(xattr::behind, format::DirectoryLeaseRecord{*inode.directory_lease}));
  set_map(txn, inode.map_blocks);
  for (const auto& [name, value] : inode.attributes) add(txn, set_attribute(name, value));
  return txn;
}

format::AttrRecord attr_of(const MetaTxn& create) {
  return *format::decode<format::AttrRecord>(xattr_of(create, xattr::attr));  // make_inode sets it
}

const Bytes& xattr_of(const MetaTxn& create, std::string_view name) {
  static const Bytes none;
  for (const auto& mutation : create.mutations) {
    const auto* set = std::get_if<mutation::SetXattr>(&mutation);
    if (set != nullptr && set->name == name) return set->value;
  }
  return none;
}

/// The step changes xattrs and keys only.
void include(MetaTxn& create, const MetaTxn& step) {
  for (const auto& change : step.mutations) {
    const auto place = place_of(change);
    std::erase_if(create.mutations, [&place](const Mutation& present) { return place_of(present) == place; });
    const bool removes =
        std::holds_alternative<mutation::RemoveXattr>(change) || std::holds_alternative<mutation::RemoveKey>(change);
    if (!removes) create.mutations.push_back(change);
  }
}

void change_new_inode(MetaTxn& create, const AttributeChange& change) {
  MetaTxn step;
  if (change.attr) add(step, set(xattr::attr, *change.attr));
  if (change.atime) add(step, set(xattr::atime, *change.atime));
  if (change.mtime) add(step, set(xattr::mtime, *change.mtime));
  add(step, set(xattr::ctime, change.ctime));
  include(create, step);
}

MetaTxn remove_new_inode(Ino ino, std::uint64_t version) {
  return make(ino, "remove new inode", guard::VersionIs{version}, mutation::Remove{});
}

MetaTxn insert_entry(const Name& name, const format::EntryRecord& entry, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub) {
  auto txn = make(name.directory, "insert entry", state_is(StateRecord{}), guard::KeyAbsent{name.key});
  add_name(txn, name, entry);
  touch_directory(txn, now);
  if (nsub) change_nsub(txn, *nsub);
  return txn;
}

MetaTxn add_link(const LinkCount& count) {
  auto txn = make(count.ino, "add link", state_is(StateRecord{}), guard::XattrEquals{xattr::attr, count.old_attr},
                  set(xattr::attr, count.attr), set(xattr::ctime, count.now),
                  mark(format::back_pointer_key(count.parent.parent, count.parent.token)));
  if (count.is_unwritten) add(txn, guard::XattrAbsent{xattr::lease});
  return txn;
}

MetaTxn take_back_link(const LinkCount& count) {
  return make(count.ino, "take back link", guard::XattrEquals{xattr::attr, count.old_attr},
              set(xattr::attr, count.attr), set(xattr::ctime, count.now),
              mutation::RemoveKey{format::back_pointer_key(count.parent.parent, count.parent.token)});
}

MetaTxn remove_entry(const Name& name, const Entry& entry, Token token, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub) {
  auto txn = make(name.directory, "remove entry");
  guard_entry(txn, name, entry);
  remove_name(txn, name, entry.record.ino);
  detach(txn, entry.record.ino, token, nsub);
  touch_directory(txn, now);
  return txn;
}

MetaTxn clear_dangling_entry(const Name& name, const Entry& entry, const std::optional<SubdirectoryCount>& nsub) {
  auto txn = make(name.directory, "clear dangling entry");
  guard_entry(txn, name, entry);
  remove_name(txn, name, entry.record.ino);
  if (nsub) change_nsub(txn, *nsub);
  return txn;
}

MetaTxn rename_entries(const Rename& rename) {
  auto txn = make(rename.from.directory, "rename entries");
  guard_entry(txn, rename.from, rename.moved);
  remove_name(txn, rename.from, rename.moved.record.ino);
  if (rename.replaced) {
    guard_entry(txn, rename.to, *rename.replaced);
    remove_name(txn, rename.to, rename.replaced->record.ino);
    detach(txn, rename.replaced->record.ino, rename.token, rename.nsub);
  } else {
    add(txn, guard::KeyAbsent{rename.to.key});
  }
  add_name(txn, rename.to, {rename.moved.record.ino, rename.moved.record.type, rename.token});
  touch_directory(txn, rename.now);
  return txn;
}

MetaTxn exchange_entries(const Name& first, const Entry& first_entry, const Name& second, const Entry& second_entry,
                         Token token, TimeSpec now) {
  auto txn = make(first.directory, "exchange entries");
  guard_entry(txn, first, first_entry);
  guard_entry(txn, second, second_entry);
  remove_name(txn, first, first_entry.record.ino);
  remove_name(txn, second, second_entry.record.ino);
  add_name(txn, first, {second_entry.record.ino, second_entry.record.type, token});
  add_name(txn, second, {first_entry.record.ino, first_entry.record.type, token});
  touch_directory(txn, now);
  return txn;
}

MetaTxn point_to_directory(Ino ino, const format::BackPointerRecord& pointer, TimeSpec now) {
  return make(ino, "point to directory", state_is(StateRecord{}), set(xattr::ctime, now),
              mark(format::back_pointer_key(pointer.parent, pointer.token)));
}

MetaTxn drop_back_pointer(Ino ino, const format::BackPointerRecord& pointer) {
  return make(ino, "drop back-pointer", mutation::RemoveKey{format::back_pointer_key(pointer.parent, pointer.token)});
}

Entry marked(const Entry& entry, const format::EntryRecord::Mark& mark) {
  auto record = entry.record;
  record.mark = mark;
  return {encode(record), record};
}

MetaTxn mark_entry(const Name& name, const Entry& entry, const Entry& marked) {
  auto txn = make(name.directory, "mark entry");
  guard_entry(txn, name, entry);
  add_name(txn, name, marked.record);
  return txn;
}

MetaTxn clear_mark(const Name& name, const Entry& marked) {
  auto txn = make(name.directory, "clear mark");
  guard_entry(txn, name, marked);
  auto record = marked.record;
  record.mark.reset();
  add_name(txn, name, record);
  return txn;
}

MetaTxn move_entry_in(const Rename& rename) {
  auto txn = make(rename.to.directory, "move entry in", state_is(StateRecord{}));
  const auto decision = format::decision_key(rename.token);
  if (rename.replaced) {
    guard_entry(txn, rename.to, *rename.replaced);
    remove_name(txn, rename.to, rename.replaced->record.ino);
    detach(txn, rename.replaced->record.ino, rename.token, std::nullopt);
  } else {
    add(txn, guard::KeyAbsent{rename.to.key});
  }
  add(txn, guard::KeyAbsent{decision});
  add_name(txn, rename.to, {rename.moved.record.ino, rename.moved.record.type, rename.token});
  const format::DecisionRecord committed{format::DecisionRecord::Kind::committed, rename.from.directory,
                                         rename.from.name};
  add(txn, mutation::SetKey{decision, encode(committed)});
  if (rename.nsub) change_nsub(txn, *rename.nsub);
  touch_directory(txn, rename.now);
  return txn;
}

MetaTxn move_entry_out(const Name& name, const Entry& marked, TimeSpec now,
                       const std::optional<SubdirectoryCount>& nsub) {
  auto txn = make(name.directory, "move entry out");
  guard_entry(txn, name, marked);
  remove_name(txn, name, marked.record.ino);
  detach(txn, marked.record.ino, marked.record.mark->token, std::nullopt);
  if (nsub) change_nsub(txn, *nsub);
  touch_directory(txn, now);
  return txn;
}

MetaTxn cancel_move(const format::EntryRecord::Mark& mark) {
  const auto decision = format::decision_key(mark.token);
  return make(mark.to, "cancel move", guard::KeyAbsent{decision},
              mutation::SetKey{decision, encode(format::DecisionRecord{})});
}

namespace {

Bytes lease_of(Token tenure) { return encode(format::DirectoryLeaseRecord{tenure}); }

}  // namespace

MetaTxn under_lease(MetaTxn step, const std::optional<Token>& mine) {
  if (mine) {
    add(step, guard::XattrEquals{xattr::lease, lease_of(*mine)});
  } else {
    add(step, guard::XattrAbsent{xattr::lease});
  }
  return step;
}

MetaTxn take_directory_lease(Ino directory, Token tenure, bool names_behind) {
  auto txn = make(directory, "take directory lease", state_is(StateRecord{}), guard::XattrAbsent{xattr::lease},
                  mutation::SetXattr{xattr::lease, lease_of(tenure)});
  if (names_behind) add(txn, mutation::SetXattr{xattr::behind, lease_of(tenure)});
  return txn;
}

MetaTxn write_names_behind(Ino directory, Token tenure) {
  return make(directory, "write names behind", guard::XattrEquals{xattr::lease, lease_of(tenure)},
              mutation::SetXattr{xattr::behind, lease_of(tenure)});
}

namespace {
/// What several steps leave together.
struct Net {
  std::map<std::string, Mutation> keys, xattrs;
};
Net net_of(std::span<const MetaTxn* const> changes, const std::set<Ino>& never_stored) {
  Net net;
  const auto keep = [&](const Mutation& mutation) {
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.key; }) {
            net.keys.insert_or_assign(one.key, mutation);
          } else if constexpr (requires { one.name; }) {
            net.xattrs.insert_or_assign(one.name, mutation);
          }
        },
        mutation);
  };
  for (const auto* change : changes) std::ranges::for_each(change->mutations, keep);
  for (const Ino ino : never_stored) {
    const auto prefix = format::detached_prefix(ino);
    std::erase_if(net.keys, [&prefix](const auto& key) { return key.first.starts_with(prefix); });
  }
  return net;
}
}  // namespace

MetaTxn store_names(Ino directory, std::span<const MetaTxn* const> changes, const std::set<Ino>& never_stored,
                    const std::optional<SubdirectoryCount>& nsub) {
  auto net = net_of(changes, never_stored);
  auto txn = make(directory, "store names", state_is(StateRecord{}));
  for (auto* parts : {&net.keys, &net.xattrs}) {
    for (auto& [name, mutation] : *parts) txn.mutations.push_back(std::move(mutation));
  }
  if (nsub) change_nsub(txn, *nsub);
  return txn;
}

/// An entry, which no collector removes; else what says that an inode has lost its name.
mutation::SetKey proof_of(std::span<const MetaTxn* const> changes, const std::set<Ino>& never_stored) {
  const auto net = net_of(changes, never_stored);
  mutation::SetKey proof;
  for (const auto& [key, mutation] : net.keys) {
    const auto* set = std::get_if<mutation::SetKey>(&mutation);
    const bool is_entry = key.starts_with("n/");
    if (set != nullptr && (is_entry || (key.starts_with("d/") && proof.key.empty()))) proof = *set;
    if (set != nullptr && is_entry) break;
  }
  return proof;
}

MetaTxn mark_removed_dead(Ino directory, Token tenure) {
  return make(directory, "mark removed directory dead", guard::XattrEquals{xattr::lease, lease_of(tenure)},
              set_state(StateRecord::Kind::dead), mutation::RemoveXattr{xattr::lease});
}

MetaTxn release_directory_lease(Ino directory, Token tenure) {
  return make(directory, "release directory lease", guard::XattrEquals{xattr::lease, lease_of(tenure)},
              mutation::RemoveXattr{xattr::lease});
}

MetaTxn seal(Ino directory, std::uint64_t version, const StateRecord& sealed) {
  return make(directory, "seal", guard::VersionIs{version}, set(xattr::state, sealed));
}

MetaTxn unseal(Ino directory, const StateRecord& sealed) {
  return make(directory, "unseal", state_is(sealed), set_state(StateRecord::Kind::live));
}

MetaTxn mark_dead(Ino directory, const StateRecord& sealed) {
  return make(directory, "mark dead", state_is(sealed), set_state(StateRecord::Kind::dead));
}

MetaTxn cancel_seal(Ino parent, Ino ino, Token token) {
  const auto decision = format::decision_key(token);
  const format::DecisionRecord cancelled{format::DecisionRecord::Kind::cancelled};
  return make(parent, "cancel seal", guard::KeyAbsent{format::detached_key(ino, token)}, guard::KeyAbsent{decision},
              mutation::SetKey{decision, encode(cancelled)});
}

MetaTxn remove_decision(Ino parent, Token token) {
  return make(parent, "remove decision", guard::ObjectExists{}, mutation::RemoveKey{format::decision_key(token)});
}

}  // namespace lccfs::txn
