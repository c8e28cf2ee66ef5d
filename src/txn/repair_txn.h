// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions that only repairs need. Each is guarded by the object's version as it was read: run twice, or on an
// object that has changed, it does nothing. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"
#include "txn/map_blocks.h"
#include "txn/namespace_txn.h"

namespace lccfs::txn {

/// An object as it was read.
struct AsRead {
  std::string object;
  std::uint64_t version = 0;
};

/// An xattr, or a key.
struct Part {
  std::string name;
  bool is_key = false;
};
MetaTxn put_part(const AsRead& as_read, const Part& part, const Bytes& value);
MetaTxn drop_part(const AsRead& as_read, const Part& part);
/// A value that stands under a wrong key.
MetaTxn move_key(const AsRead& as_read, const std::string& from, const std::string& to, const Bytes& value);
MetaTxn drop_payload(const AsRead& as_read);

/// Sets an entry with its reverse key; `nsub` as it is to be after the step, if it changes.
MetaTxn put_entry(const AsRead& as_read, const Name& name, const format::EntryRecord& entry,
                  const std::optional<std::uint64_t>& nsub);
/// Removes an entry with its reverse key. No trace is left that leads anywhere.
MetaTxn drop_entry(const AsRead& as_read, const Name& name, Ino ino, const std::optional<std::uint64_t>& nsub);

/// Sets the first back-pointer, and those further ones that must not be lost with the old first one.
MetaTxn point_back(const AsRead& as_read, const format::BackPointerRecord& parent,
                   const std::vector<format::BackPointerRecord>& further);
/// What an inode needs for a new name: it is live, has that attr, and points back.
MetaTxn revive(const AsRead& as_read, const format::AttrRecord& attr, const format::BackPointerRecord& parent,
               const std::vector<format::BackPointerRecord>& further);

/// An inode for data objects that are there.
struct FoundFile {
  Ino ino;
  std::optional<format::BackPointerRecord> parent;
  Token token;
  TimeSpec time;
  std::uint64_t size_bytes = 0;
  std::map<std::uint64_t, format::MapBlock> map_blocks;
};
/// With the first blocks of its map. It must not be there.
MetaTxn make_found_file(const FoundFile& file);
/// The blocks that come after so many.
MetaTxn map_found_file(const AsRead& as_read, const FoundFile& file, std::size_t blocks_before);

MetaTxn make_alloc_from(std::uint64_t next);
MetaTxn drop_object(const AsRead& as_read);

}  // namespace lccfs::txn
