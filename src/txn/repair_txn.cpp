// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/repair_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {
namespace {

constexpr std::uint32_t owner_may_read_and_write = 0600;

MetaTxn change(const AsRead& as_read, const char* step, auto... parts) {
  return make(as_read.object, step, guard::VersionIs{as_read.version}, std::move(parts)...);
}

void set_back_pointers(MetaTxn& txn, const format::BackPointerRecord& parent,
                       const std::vector<format::BackPointerRecord>& further) {
  add(txn, set(xattr::parent, parent));
  for (const auto& pointer : further) add(txn, mark(format::back_pointer_key(pointer.parent, pointer.token)));
}

}  // namespace

MetaTxn put_part(const AsRead& as_read, const Part& part, const Bytes& value) {
  if (part.is_key) return change(as_read, "put part", mutation::SetKey{part.name, value});
  return change(as_read, "put part", mutation::SetXattr{part.name, value});
}

MetaTxn drop_part(const AsRead& as_read, const Part& part) {
  if (part.is_key) return change(as_read, "drop part", mutation::RemoveKey{part.name});
  return change(as_read, "drop part", mutation::RemoveXattr{part.name});
}

MetaTxn move_key(const AsRead& as_read, const std::string& from, const std::string& to, const Bytes& value) {
  return change(as_read, "move key", mutation::RemoveKey{from}, mutation::SetKey{to, value});
}

MetaTxn drop_payload(const AsRead& as_read) { return change(as_read, "drop payload", mutation::SetPayload{}); }

MetaTxn put_entry(const AsRead& as_read, const Name& name, const format::EntryRecord& entry,
                  const std::optional<std::uint64_t>& nsub) {
  auto txn = change(as_read, "put entry");
  add_name(txn, name, entry);
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn drop_entry(const AsRead& as_read, const Name& name, Ino ino, const std::optional<std::uint64_t>& nsub) {
  auto txn = change(as_read, "drop entry");
  remove_name(txn, name, ino);
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn point_back(const AsRead& as_read, const format::BackPointerRecord& parent,
                   const std::vector<format::BackPointerRecord>& further) {
  auto txn = change(as_read, "point back");
  set_back_pointers(txn, parent, further);
  return txn;
}

MetaTxn revive(const AsRead& as_read, const format::AttrRecord& attr, const format::BackPointerRecord& parent,
               const std::vector<format::BackPointerRecord>& further) {
  auto txn = change(as_read, "revive", set(xattr::attr, attr), set_state(format::StateRecord::Kind::live));
  set_back_pointers(txn, parent, further);
  return txn;
}

MetaTxn make_found_file(const FoundFile& file) {
  format::AttrRecord attr;
  attr.mode = owner_may_read_and_write;
  attr.birth = file.time;
  attr.birth_token = file.token;
  auto txn = make_inode(file.ino, "make found file", attr, file.time);
  add(txn, set(xattr::size, file.size_bytes));
  if (file.parent) add(txn, set(xattr::parent, *file.parent));
  set_part_of_map(txn, file.map_blocks, 0);
  return txn;
}

MetaTxn map_found_file(const AsRead& as_read, const FoundFile& file, std::size_t blocks_before) {
  auto txn = change(as_read, "map found file");
  set_part_of_map(txn, file.map_blocks, blocks_before);
  return txn;
}

MetaTxn make_alloc_from(std::uint64_t next) {
  return make(format::alloc_object, "make alloc anew", mutation::CreateExclusive{}, set(xattr::next, next));
}

MetaTxn drop_object(const AsRead& as_read) { return change(as_read, "drop object", mutation::Remove{}); }

}  // namespace lccfs::txn
