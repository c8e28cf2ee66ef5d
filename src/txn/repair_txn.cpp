// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/repair_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
using format::NumberRecord;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

constexpr std::uint32_t owner_may_read_and_write = 0600;

MetaTxn begin(const AsRead& as_read, const char* step) {
  return {as_read.object, step, {guard::VersionIs{as_read.version}}, {}};
}

void set_nsub(MetaTxn& txn, const std::optional<std::uint64_t>& nsub) {
  if (nsub) txn.mutations.emplace_back(mutation::SetXattr{xattr::nsub, encode(NumberRecord{*nsub})});
}

void set_back_pointers(MetaTxn& txn, const format::BackPointerRecord& parent,
                       const std::vector<format::BackPointerRecord>& further) {
  txn.mutations.emplace_back(mutation::SetXattr{xattr::parent, encode(parent)});
  for (const auto& pointer : further) {
    txn.mutations.emplace_back(
        mutation::SetKey{format::back_pointer_key(pointer.parent, pointer.token), Bytes(format::marker_value)});
  }
}

}  // namespace

MetaTxn put_part(const AsRead& as_read, const Part& part, const Bytes& value) {
  auto txn = begin(as_read, "put part");
  if (part.is_key) {
    txn.mutations.emplace_back(mutation::SetKey{part.name, value});
  } else {
    txn.mutations.emplace_back(mutation::SetXattr{part.name, value});
  }
  return txn;
}

MetaTxn drop_part(const AsRead& as_read, const Part& part) {
  auto txn = begin(as_read, "drop part");
  if (part.is_key) {
    txn.mutations.emplace_back(mutation::RemoveKey{part.name});
  } else {
    txn.mutations.emplace_back(mutation::RemoveXattr{part.name});
  }
  return txn;
}

MetaTxn move_key(const AsRead& as_read, const std::string& from, const std::string& to, const Bytes& value) {
  auto txn = begin(as_read, "move key");
  txn.mutations.emplace_back(mutation::RemoveKey{from});
  txn.mutations.emplace_back(mutation::SetKey{to, value});
  return txn;
}

MetaTxn drop_payload(const AsRead& as_read) {
  auto txn = begin(as_read, "drop payload");
  txn.mutations.emplace_back(mutation::SetPayload{});
  return txn;
}

MetaTxn put_entry(const AsRead& as_read, const Name& name, const format::EntryRecord& entry,
                  const std::optional<std::uint64_t>& nsub) {
  auto txn = begin(as_read, "put entry");
  txn.mutations.emplace_back(mutation::SetKey{name.key, encode(entry)});
  txn.mutations.emplace_back(mutation::SetKey{format::reverse_key(entry.ino, name.name), Bytes(format::marker_value)});
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn drop_entry(const AsRead& as_read, const Name& name, Ino ino, const std::optional<std::uint64_t>& nsub) {
  auto txn = begin(as_read, "drop entry");
  txn.mutations.emplace_back(mutation::RemoveKey{name.key});
  txn.mutations.emplace_back(mutation::RemoveKey{format::reverse_key(ino, name.name)});
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn point_back(const AsRead& as_read, const format::BackPointerRecord& parent,
                   const std::vector<format::BackPointerRecord>& further) {
  auto txn = begin(as_read, "point back");
  set_back_pointers(txn, parent, further);
  return txn;
}

MetaTxn revive(const AsRead& as_read, const format::AttrRecord& attr, const format::BackPointerRecord& parent,
               const std::vector<format::BackPointerRecord>& further) {
  auto txn = begin(as_read, "revive");
  txn.mutations.emplace_back(mutation::SetXattr{xattr::attr, encode(attr)});
  txn.mutations.emplace_back(mutation::SetXattr{xattr::state, encode(format::StateRecord{})});
  set_back_pointers(txn, parent, further);
  return txn;
}

MetaTxn make_found_file(const FoundFile& file) {
  format::AttrRecord attr;
  attr.mode = owner_may_read_and_write;
  attr.birth = file.time;
  attr.birth_token = file.token;
  const Bytes time = encode(TimeRecord{file.time});
  MetaTxn txn{
      format::inode_object(file.ino),
      "make found file",
      {},
      {mutation::CreateExclusive{}, mutation::SetXattr{xattr::attr, encode(attr)},
       mutation::SetXattr{xattr::state, encode(format::StateRecord{})},
       mutation::SetXattr{xattr::size, encode(NumberRecord{file.size_bytes})}, mutation::SetXattr{xattr::atime, time},
       mutation::SetXattr{xattr::mtime, time}, mutation::SetXattr{xattr::ctime, time}}};
  if (file.parent) txn.mutations.emplace_back(mutation::SetXattr{xattr::parent, encode(*file.parent)});
  for (const auto& [block, bits] : file.map_blocks) {
    txn.mutations.emplace_back(mutation::SetKey{format::map_key(block), encode(bits)});
  }
  return txn;
}

MetaTxn make_alloc_from(std::uint64_t next) {
  return {format::alloc_object,
          "make alloc anew",
          {},
          {mutation::CreateExclusive{}, mutation::SetXattr{xattr::next, encode(NumberRecord{next})}}};
}

MetaTxn drop_object(const AsRead& as_read) {
  auto txn = begin(as_read, "drop object");
  txn.mutations.emplace_back(mutation::Remove{});
  return txn;
}

}  // namespace lccfs::txn
