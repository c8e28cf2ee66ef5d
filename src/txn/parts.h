// SPDX-License-Identifier: LGPL-2.1-or-later
// What several transactions are put together of.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/object_store.h"
#include "txn/map_blocks.h"
#include "txn/namespace_txn.h"

namespace lccfs::txn {

using format::encode;
namespace xattr = format::xattr;

/// Guards and mutations, in the order given.
void add(MetaTxn& txn, auto... parts) {
  [[maybe_unused]] const auto add_one = [&txn](auto part) {
    if constexpr (std::constructible_from<Guard, decltype(part)>) {
      txn.guards.emplace_back(std::move(part));
    } else {
      txn.mutations.emplace_back(std::move(part));
    }
  };
  (add_one(std::move(parts)), ...);
}

MetaTxn make(std::string object, const char* step, auto... parts) {
  MetaTxn txn{std::move(object), step, {}, {}};
  add(txn, std::move(parts)...);
  return txn;
}
MetaTxn make(Ino ino, const char* step, auto... parts) {
  return make(format::inode_object(ino), step, std::move(parts)...);
}

template <class Record>
  requires std::is_class_v<Record>
mutation::SetXattr set(const char* name, const Record& record) {
  return {name, encode(record)};
}
inline mutation::SetXattr set(const char* name, std::uint64_t number) {
  return set(name, format::NumberRecord{number});
}
inline mutation::SetXattr set(const char* name, TimeSpec time) { return set(name, format::TimeRecord{time}); }
inline mutation::SetXattr set_state(format::StateRecord::Kind kind) {
  format::StateRecord state;
  state.kind = kind;
  return set(xattr::state, state);
}
/// What stands in the key is led by one byte, because no key's value is ever empty.
inline mutation::SetKey set_attribute(std::string_view name, const Bytes& value) {
  return {format::user_attribute_key(name), '\1' + value};
}
inline mutation::SetKey mark(std::string key) { return {std::move(key), Bytes(format::marker_value)}; }

/// A mark stands in the reverse key, too: recount looks there.
inline void add_name(MetaTxn& txn, const Name& name, const format::EntryRecord& entry) {
  add(txn, mutation::SetKey{name.key, encode(entry)},
      mutation::SetKey{format::reverse_key(entry.ino, name.name), format::reverse_value(entry)});
}
inline void remove_name(MetaTxn& txn, const Name& name, Ino ino) {
  add(txn, mutation::RemoveKey{name.key}, mutation::RemoveKey{format::reverse_key(ino, name.name)});
}
inline void set_nsub(MetaTxn& txn, const std::optional<std::uint64_t>& nsub) {
  if (nsub) add(txn, set(xattr::nsub, *nsub));
}
/// Of pairs: a block's number, and its bits.
void set_map(MetaTxn& txn, std::ranges::input_range auto&& blocks) {
  for (const auto& [block, bits] : blocks) add(txn, mutation::SetKey{format::map_key(block), encode(bits)});
}
/// As many as one step has room for, after so many.
inline void set_part_of_map(MetaTxn& txn, const std::map<std::uint64_t, format::MapBlock>& blocks,
                            std::size_t blocks_before) {
  set_map(txn, blocks | std::views::drop(blocks_before) | std::views::take(map_blocks_of_a_step));
}
inline void remove_keys(MetaTxn& txn, const std::vector<std::string>& keys) {
  for (const auto& key : keys) add(txn, mutation::RemoveKey{key});
}

/// A live inode with what all have.
inline MetaTxn make_inode(Ino ino, const char* step, const format::AttrRecord& attr, TimeSpec time) {
  return make(ino, step, mutation::CreateExclusive{}, set(xattr::attr, attr),
              set_state(format::StateRecord::Kind::live), set(xattr::atime, time), set(xattr::mtime, time),
              set(xattr::ctime, time));
}

}  // namespace lccfs::txn
