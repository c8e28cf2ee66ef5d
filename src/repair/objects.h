// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects as repairs see them: read at one version, and changed only if they still are as they were read. Blocking; one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "objects/object.h"
#include "txn/namespace_txn.h"
#include "txn/repair_txn.h"

namespace lccfs::repair {

/// Whether a newer version has written that. It is not to be overwritten, nor taken for absent.
template <class Record>
bool is_of_newer_version(std::string_view bytes) {
  const auto record = format::decode<Record>(bytes);
  return !record && record.error().code == ErrorCode::unsupported;
}

/// A metadata object, with those of its keys that were asked for. What of it cannot be read counts as not there.
struct Object : objects::Object {
  txn::AsRead as_read() const { return {name, version}; }
  /// Of the xattr or key; nullptr: it is not there.
  const Bytes* value_of(const txn::Part& part) const;
  std::optional<std::uint64_t> number(const char* xattr) const {
    const auto found = find<format::NumberRecord>(xattr);
    return found ? std::optional(found->value) : std::nullopt;
  }
  std::optional<format::AttrRecord> attr() const { return find<format::AttrRecord>(format::xattr::attr); }
  bool is(FileType type) const { return attr() && attr()->type == type; }
  std::optional<format::StateRecord> state() const { return find<format::StateRecord>(format::xattr::state); }
  bool is_dead() const { return state() && state()->kind == format::StateRecord::Kind::dead; }
  bool is_sealed() const { return state() && state()->kind == format::StateRecord::Kind::sealed; }
  template <class Record>
  bool is_newer(const txn::Part& part) const {
    const Bytes* value = value_of(part);
    return value != nullptr && is_of_newer_version<Record>(*value);
  }
  bool has_newer_pointer() const { return is_newer<format::BackPointerRecord>({format::xattr::parent}); }
  /// Then it gets no other name, and is not given up.
  bool has_newer_state_or_pointer() const {
    return has_newer_pointer() || is_newer<format::StateRecord>({format::xattr::state});
  }
  /// The entry of that name, if the key was asked for and can be read.
  std::optional<txn::Entry> entry(const std::string& key) const;
  /// Of all back-pointers; the keys were asked for with `p/`.
  std::set<Ino> parents() const;
};

/// An entry, and the directory that holds it.
struct Holder {
  Ino directory;
  std::string name;
  format::EntryRecord entry;
};

/// The entry that a reverse key of that inode belonged to. A plain one does not tell the token.
format::EntryRecord entry_of(const Bytes& reverse_value, Ino ino, const format::AttrRecord& attr);

class Objects {
 public:
  explicit Objects(ObjectStore& store) : store_(store) {}

  ObjectStore& store() { return store_; }
  void set_uuid(const format::VolumeUuid& uuid) { uuid_ = uuid; }
  const format::VolumeUuid& uuid() const { return uuid_; }

  /// With all keys of that prefix, of one version with the rest. nullopt: there is no such object.
  Result<std::optional<Object>> read(const std::string& object, const std::string& prefix);
  /// With these keys.
  Result<std::optional<Object>> read_keys(const std::string& object, const std::vector<std::string>& keys);
  /// With each key of that prefix, a page of them in memory at a time: of one version only if a step that guards the
  /// version which was read before is applied after it. None: there is no such object.
  using OnKey = std::function<Result<>(const std::string& key, const Bytes& value)>;
  Result<> for_each_key(const std::string& object, const std::string& prefix, const OnKey& work);
  Result<bool> has_key(const std::string& object, const std::string& prefix);
  /// With all its back-pointers, if no other prefix is given.
  Result<std::optional<Object>> read_inode(Ino ino, const std::string& prefix = "p/") {
    return read(format::inode_object(ino), prefix);
  }

  /// All entries for that inode in the directories that it points back to. Reverse keys lead there.
  Result<std::vector<Holder>> names_of(const Object& inode, Ino ino);
  /// The same of one directory.
  Result<std::vector<Holder>> names_in(Ino directory, Ino ino);

  /// With the name of every object there is.
  Result<> for_each_name(const std::function<void(const std::string&)>& work);

  /// Called with each inode before it is changed: makes way, if need be.
  using MakeWay = std::function<Result<>(Ino)>;
  void set_make_way(MakeWay make_way) { make_way_ = std::move(make_way); }

  /// Applies it. False: the object is no longer as it was read, and nothing was changed.
  Result<bool> change(const MetaTxn& txn);

  // -- data objects
  /// All of it, at most `limit_bytes`.
  Result<Bytes> read_data(const std::string& object, std::uint64_t offset, std::uint64_t limit_bytes);
  /// Those of the objects that hold a byte.
  Result<std::set<ObjectIndex>> with_bytes(Ino ino, const std::vector<ObjectIndex>& indexes);
  Result<> write_data(const std::string& object, std::uint64_t offset, const Bytes& bytes);
  Result<> cut_data(const std::string& object, std::uint64_t size_bytes);
  Result<> remove_data(const std::string& object);

  /// How many steps have changed something so far, or have met what had changed.
  std::uint64_t changes() const { return changes_; }
  void note_change() { ++changes_; }

 private:
  Result<std::optional<Object>> read(const MetaRead& read, std::size_t whole_ranges);

  ObjectStore& store_;
  format::VolumeUuid uuid_{};
  MakeWay make_way_;
  std::uint64_t changes_ = 0;
};

}  // namespace lccfs::repair
