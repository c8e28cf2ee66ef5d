// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of inode objects.
#include <bit>

#include "format/codec.h"
#include "format/records.h"

namespace lccfs::format {
namespace {

constexpr std::uint8_t entry_reference = 1;
constexpr std::uint32_t known_flags =
    attr_flag::user_attributes | attr_flag::capability | attr_flag::access_acl | attr_flag::default_acl;

void put_bits(RecordWriter& out, const std::bitset<MapBlock::objects>& bits) {
  for (std::size_t byte = 0; byte < MapBlock::objects / 8; ++byte) {
    unsigned value = 0;
    for (std::size_t bit = 0; bit < 8; ++bit) value |= (bits[byte * 8 + bit] ? 1U : 0U) << bit;
    out.put(static_cast<std::uint8_t>(value));
  }
}

std::bitset<MapBlock::objects> get_bits(RecordReader& in) {
  std::bitset<MapBlock::objects> bits;
  const auto raw = in.raw(MapBlock::objects / 8);
  for (std::size_t byte = 0; byte < raw.size(); ++byte) {
    for (unsigned left = static_cast<unsigned char>(raw[byte]); left != 0; left &= left - 1) {
      bits.set(byte * 8 + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
  return bits;
}

}  // namespace

Bytes encode(const TimeRecord& record) {
  RecordWriter out;
  out.put_time(record.time);
  return out.finish();
}

template <>
Result<TimeRecord> decode(std::string_view bytes) {
  RecordReader in("time", bytes);
  TimeRecord record;
  in.version();
  record.time = in.time();
  LCCFS_CHECK(in.finish());
  return record;
}

Bytes encode(const AttrRecord& attr) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(attr.type));
  out.put(attr.mode);
  out.put(attr.uid);
  out.put(attr.gid);
  out.put(attr.rdev);
  out.put(attr.nlink);
  out.put_time(attr.birth);
  out.put_token(attr.birth_token);
  out.put(attr.flags);
  return out.finish();
}

template <>
Result<AttrRecord> decode(std::string_view bytes) {
  RecordReader in("attr", bytes);
  AttrRecord attr;
  in.version();
  attr.type = in.enumeration(FileType::block_device);
  attr.mode = in.get<std::uint32_t>();
  in.require((attr.mode & ~07777U) == 0, "mode out of range");
  attr.uid = in.get<std::uint32_t>();
  attr.gid = in.get<std::uint32_t>();
  attr.rdev = in.get<std::uint64_t>();
  attr.nlink = in.get<std::uint32_t>();
  attr.birth = in.time();
  attr.birth_token = in.token();
  attr.flags = in.get<std::uint32_t>();
  in.require((attr.flags & ~known_flags) == 0, "unknown flags");
  LCCFS_CHECK(in.finish());
  return attr;
}

Bytes encode(const StateRecord& state) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(state.kind));
  if (state.kind == StateRecord::Kind::sealed) {
    out.put_token(state.token);
    out.put(state.parent.value);
    out.put_string(state.name);
  }
  return out.finish();
}

template <>
Result<StateRecord> decode(std::string_view bytes) {
  RecordReader in("state", bytes);
  StateRecord state;
  in.version();
  state.kind = in.enumeration(StateRecord::Kind::dead);
  if (state.kind == StateRecord::Kind::sealed) {
    state.token = in.token();
    state.parent.value = in.get<std::uint64_t>();
    in.require(state.parent.value != 0, "no parent");
    state.name = in.string(name_limit_bytes);
    in.require(!state.name.empty(), "no name");
  }
  LCCFS_CHECK(in.finish());
  return state;
}

Bytes encode(const BackPointerRecord& pointer) {
  RecordWriter out;
  out.put(pointer.parent.value);
  out.put_token(pointer.token);
  return out.finish();
}

template <>
Result<BackPointerRecord> decode(std::string_view bytes) {
  RecordReader in("parent", bytes);
  BackPointerRecord pointer;
  in.version();
  pointer.parent.value = in.get<std::uint64_t>();
  in.require(pointer.parent.value != 0, "no parent");
  pointer.token = in.token();
  LCCFS_CHECK(in.finish());
  return pointer;
}

/// The kind comes before the version: docs/FORMAT.md keeps it as the first byte of every entry there will ever be.
Bytes encode(const EntryRecord& entry) {
  ByteWriter out;
  out.put(entry_reference);
  out.put(record_version);
  out.put(entry.ino.value);
  out.put(static_cast<std::uint8_t>(entry.type));
  out.put(entry.token.instance.value);
  out.put(entry.token.number);
  out.put(crc32c(out.bytes()));
  return out.take();
}

template <>
Result<EntryRecord> decode(std::string_view bytes) {
  RecordReader in("entry", bytes);
  EntryRecord entry;
  in.require(in.get<std::uint8_t>() == entry_reference, "no such kind");
  in.version();
  entry.ino.value = in.get<std::uint64_t>();
  in.require(entry.ino.value != 0, "no inode");
  entry.type = in.enumeration(FileType::block_device);
  entry.token = in.token();
  LCCFS_CHECK(in.finish());
  return entry;
}

Bytes encode(const MapBlock& block) {
  RecordWriter out;
  put_bits(out, block.may_exist);
  put_bits(out, block.believed_there);
  return out.finish();
}

template <>
Result<MapBlock> decode(std::string_view bytes) {
  RecordReader in("map block", bytes);
  MapBlock block;
  in.version();
  block.may_exist = get_bits(in);
  block.believed_there = get_bits(in);
  in.require((block.believed_there & ~block.may_exist).none(), "believed there, but may not exist");
  LCCFS_CHECK(in.finish());
  return block;
}

Bytes encode(const DecisionRecord& decision) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(decision.kind));
  return out.finish();
}

template <>
Result<DecisionRecord> decode(std::string_view bytes) {
  RecordReader in("decision", bytes);
  DecisionRecord decision;
  in.version();
  decision.kind = in.enumeration(DecisionRecord::Kind::committed);
  LCCFS_CHECK(in.finish());
  return decision;
}

}  // namespace lccfs::format
