// SPDX-License-Identifier: LGPL-2.1-or-later
// A small volume made step by step, with leftovers of every kind that are in order, to be damaged and checked.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "scripted/scripted_store.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "txn/attribute_txn.h"
#include "txn/file_txn.h"
#include "txn/namespace_txn.h"
#include "txn/volume_txn.h"

namespace lccfs::test {

using check::check_volume;
using check::Finding;
using Kind = check::Finding::Kind;
using scripted::MetaObject;

inline constexpr TimeSpec now{1'700'000'000, 5};
inline constexpr InstanceId me{2};
inline constexpr std::uint64_t object_size = 64U << 10;
inline constexpr Ino directory{10}, file{11}, symlink{12}, unlinked{13}, leased{14}, subdirectory{15}, orphan{50};
inline const Bytes marker{format::marker_value};

/// /directory/file, /directory/subdirectory, /symlink, /leased; an unlinked file, and one that never had a name.
class HandMadeVolume {
 public:
  HandMadeVolume() {
    format::SuperRecord super;
    super.uuid = {1, 2, 3};
    super.object_size_bytes = object_size;
    uuid_ = super.uuid;
    for (const MetaTxn& txn : {txn::make_alloc(), txn::make_root(now), txn::make_super(super),
                               txn::take_numbers(format::first_number, 100), txn::make_session(me)}) {
      need(store->apply(txn));
    }
    format::InstanceRecord record;
    record.identity = "x";
    need(store->apply(txn::add_instance_record(me, encode(record))));
    using ItemKind = format::QueueItem::Kind;
    need(store->apply(txn::append_queue_items(me, {{1, {ItemKind::range, Ino{50}, Ino{60}, now}},
                                                   {2, {ItemKind::range, Ino{60}, Ino{62}, now}},
                                                   {3, {ItemKind::directory, root_ino, {}, now}},
                                                   {5, {ItemKind::directory, directory, {}, now}}})));
    make(directory, FileType::directory, root_ino, "directory");
    make(file, FileType::regular, directory, "file");
    make(subdirectory, FileType::directory, directory, "subdirectory");
    make(symlink, FileType::symlink, root_ino, "symlink");
    make(unlinked, FileType::regular, root_ino, "unlinked");
    make(leased, FileType::regular, root_ino, "leased");
    make(orphan, FileType::regular, root_ino, "");
    const txn::Entry entry = entry_for(unlinked, FileType::regular);
    run(txn::remove_entry({uuid_, root_ino, "unlinked"}, entry, Token{me, 99}, now, std::nullopt));
    fill(file, object_size + 10, false);
    fill(leased, 0, true);
    const Bytes value = "value";
    format::AttrRecord attr = attr_for(file, FileType::regular);
    const Bytes old = encode(attr);
    attr.flags = format::attr_flag::user_attributes;
    run(txn::set_user_attribute({file, "user.name", value, false, false, txn::AttrChange{old, attr}, now}));
    edit("Inode.10", [](MetaObject& object) {
      object.keys["l/2"] = format::step_number_value(7);
      object.keys["p/1/2.77"] = marker;
      object.keys["x/2.78"] = encode(format::DecisionRecord{});
    });
  }

  std::multiset<std::string> findings() {
    std::multiset<std::string> texts;
    for (const auto& finding : need(check_volume(*store))) {
      CHECK(!finding.text.empty());
      texts.insert(std::string(describe(finding.kind)) + ": " + finding.object);
    }
    return texts;
  }
  void edit(const std::string& object, const std::function<void(MetaObject&)>& change) {
    cluster->with_objects([&](scripted::Objects& objects) { change(objects.metadata()[object]); });
  }
  std::vector<Finding> all_findings(const check::CheckOptions& options = {}) {
    std::vector<Finding> found;
    need(check_volume(*store, options, [&found](const Finding& finding) { found.push_back(finding); }));
    return found;
  }
  /// The only one.
  Finding finding() {
    const auto found = all_findings();
    REQUIRE(found.size() == 1);
    return found.front();
  }
  template <class Record>
  void set(const std::string& object, const std::string& xattr, const Record& record) {
    edit(object, [&](MetaObject& o) { o.xattrs[xattr] = encode(record); });
  }
  void write_data(const std::string& object, std::uint64_t offset, const std::string& bytes) {
    cluster->with_objects([&](scripted::Objects& objects) { objects.write(object, offset, bytes); });
  }
  void put_entry(Ino parent, const std::string& name, Ino ino, FileType type) {
    edit(format::inode_object(parent), [&](MetaObject& o) {
      o.keys[key(name)] = encode(format::EntryRecord{ino, type, Token{me, ino.value}});
      o.keys[format::reverse_key(ino, name)] = marker;
    });
  }
  void drop_entry(Ino parent, const std::string& name, Ino ino) {
    edit(format::inode_object(parent), [&](MetaObject& o) {
      o.keys.erase(key(name));
      o.keys.erase(format::reverse_key(ino, name));
    });
  }
  std::string key(const std::string& name) const { return format::entry_key(uuid_, name); }
  static format::AttrRecord attr_for(Ino ino, FileType type) {
    format::AttrRecord attr;
    attr.type = type;
    attr.birth_token = Token{me, ino.value};
    return attr;
  }

  std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make({.page_limit = 3});
  std::shared_ptr<ScriptedClient> store = cluster->new_client();

 private:
  void run(MetaTxn txn) {
    txn.guards.insert(txn.guards.begin(), guard::ObjectExists{});
    need(store->apply(std::move(txn)));
  }
  static txn::Entry entry_for(Ino ino, FileType type) {
    const format::EntryRecord record{ino, type, Token{me, ino.value}};
    return {encode(record), record};
  }
  void make(Ino ino, FileType type, Ino parent, const std::string& name) {
    const Token token{me, ino.value};
    need(store->apply(txn::create_inode(
        {ino, attr_for(ino, type), {parent, token}, now, std::nullopt, type == FileType::symlink ? "target" : ""})));
    if (name.empty()) return;
    std::optional<txn::SubdirectoryCount> nsub;
    if (type == FileType::directory) nsub = {encode(format::NumberRecord{0}), 1};
    run(txn::insert_entry({uuid_, parent, name}, entry_for(ino, type).record, now, nsub));
  }
  /// Two data objects: one whole, and ten bytes.
  void fill(Ino ino, std::uint64_t size_bytes, bool keep_lease) {
    txn::FileChanges changes;
    changes.size_bytes = size_bytes;
    changes.wtime = now;
    changes.map_blocks[0].may_exist.set(0).set(1);
    edit(format::inode_object(ino), [](MetaObject& o) { o.xattrs["lease"] = encode(format::NumberRecord{me.value}); });
    need(store->apply(keep_lease ? txn::change_leased_file(ino, me, changes) : txn::release_lease(ino, me, changes)));
    write_data(format::data_object(ino, ObjectIndex{0}), 0, std::string(object_size, 'x'));
    write_data(format::data_object(ino, ObjectIndex{1}), 0, std::string(10, 'x'));
  }

  format::VolumeUuid uuid_{};
};

using Findings = std::multiset<std::string>;

}  // namespace lccfs::test
