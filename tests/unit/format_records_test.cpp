// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/records.h"

#include <random>

#include "support/catch.h"
#include "unit/format_golden.h"

#define EVERY_RECORD                                                                                        \
  SuperRecord, NumberRecord, TimeRecord, AttrRecord, StateRecord, BackPointerRecord, EntryRecord, MapBlock, \
      DecisionRecord, LockStateRecord, DirectoryLeaseRecord, LocksRecord, TakenRecord, RenameLockRecord,    \
      InstanceRecord, QueueItem, Question, Answer, LivenessPoll, PollReply

namespace lccfs::format {
namespace {

using golden::from_hex;
using golden::to_hex;
using golden::with_checksum;

template <class Record>
ErrorCode refusal(const Bytes& bytes) {
  const auto decoded = decode<Record>(bytes);
  REQUIRE(!decoded);
  CHECK(!decoded.error().context.empty());
  return decoded.error().code;
}

/// The record with the bytes at `offset` replaced, under a right checksum.
template <class Record>
Bytes altered(const Record& record, std::size_t offset, std::string_view bytes) {
  Bytes fields = encode(record);
  fields.resize(fields.size() - 4);
  REQUIRE(offset + bytes.size() <= fields.size());
  return with_checksum(fields.replace(offset, bytes.size(), bytes));
}

std::string u32(std::uint32_t value) {
  ByteWriter out;
  out.put(value);
  return out.take();
}

TEMPLATE_TEST_CASE("a record has the bytes that format version 1 gave it", "", EVERY_RECORD) {
  for (const auto& [record, hex] : golden::all<TestType>()) {
    CHECK(to_hex(encode(record)) == hex);
    const auto decoded = decode<TestType>(from_hex(hex));
    REQUIRE(decoded.has_value());
    CHECK(*decoded == record);
  }
}

TEMPLATE_TEST_CASE("a record in which one byte or one bit is wrong is refused", "", EVERY_RECORD) {
  for (const auto& [record, hex] : golden::all<TestType>()) {
    const Bytes good = encode(record);
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (unsigned flip = 1; flip < 256; ++flip) {
        Bytes bad = good;
        bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ flip);
        if (decode<TestType>(bad)) FAIL("byte " << at << " xor " << flip << " was accepted");
      }
    }
  }
}

TEMPLATE_TEST_CASE("a record that is cut short or continues is refused as corrupt", "", EVERY_RECORD) {
  for (const auto& [record, hex] : golden::all<TestType>()) {
    const Bytes good = encode(record);
    for (std::size_t size = 0; size < good.size(); ++size) {
      CHECK(refusal<TestType>(good.substr(0, size)) == ErrorCode::corrupt);
    }
    const Bytes fields = good.substr(0, good.size() - 4);
    for (std::size_t size = 0; size < fields.size(); ++size) {
      CHECK(refusal<TestType>(with_checksum(fields.substr(0, size))) == ErrorCode::corrupt);
    }
    CHECK(refusal<TestType>(good + '\0') == ErrorCode::corrupt);
    CHECK(refusal<TestType>(with_checksum(fields + '\0')) == ErrorCode::corrupt);
  }
}

TEMPLATE_TEST_CASE("a record of a newer version is unsupported, not corrupt", "", EVERY_RECORD) {
  for (const auto& [record, hex] : golden::all<TestType>()) {
    const std::size_t version_at = std::is_same_v<TestType, EntryRecord> ? 1 : 0;
    CHECK(refusal<TestType>(altered(record, version_at, "\3")) == ErrorCode::unsupported);
    CHECK(refusal<TestType>(altered(record, version_at, std::string(1, '\0'))) == ErrorCode::corrupt);
  }
}

TEMPLATE_TEST_CASE("whatever a decoder takes is encoded to the same bytes", "", EVERY_RECORD) {
  std::mt19937_64 random(20);
  const auto goldens = golden::all<TestType>();
  const auto check = [](const Bytes& bytes) {
    const auto decoded = decode<TestType>(bytes);
    if (decoded && encode(*decoded) != bytes) FAIL("not canonical: " << to_hex(bytes));
    return decoded.has_value();
  };
  unsigned accepted = 0;
  for (unsigned i = 0; i < 100'000; ++i) {
    Bytes noise(random() % 96, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    check(noise);
    Bytes changed = from_hex(goldens[i % goldens.size()].hex);
    changed.resize(changed.size() - 4);
    for (unsigned change = 0; change < 1 + i % 3; ++change) {
      changed[random() % changed.size()] = static_cast<char>(i % 2 == 0 ? random() : random() % 4);
    }
    accepted += check(with_checksum(changed)) ? 1 : 0;
  }
  CHECK(accepted > 0);
}

TEST_CASE("an error names the record and the byte at which it is wrong") {
  const auto attr = decode<AttrRecord>(altered(AttrRecord{}, 1, "\x09"));
  REQUIRE(!attr);
  CHECK(attr.error().context == "attr: byte 2 of 62: no such value");
  const auto number = decode<NumberRecord>("\1");
  REQUIRE(!number);
  CHECK(number.error().context == "number: byte 1 of 1: too short");
}

TEST_CASE("nanoseconds are below a second") {
  CHECK(decode<TimeRecord>(encode(TimeRecord{{5, 999'999'999}})).has_value());
  CHECK(refusal<TimeRecord>(altered(TimeRecord{}, 9, u32(1'000'000'000))) == ErrorCode::corrupt);
  CHECK(refusal<AttrRecord>(altered(AttrRecord{}, 34, u32(1'000'000'000))) == ErrorCode::corrupt);
}

TEST_CASE("the object size is a power of two within its bounds") {
  SuperRecord super;
  for (const std::uint32_t good : {64U << 10, 4U << 20, 32U << 20}) {
    super.object_size_bytes = good;
    CHECK(decode<SuperRecord>(encode(super)).has_value());
  }
  for (const std::uint32_t bad : {0U, 32U << 10, (4U << 20) + 1, 3U << 20, 64U << 20}) {
    super.object_size_bytes = bad;
    CHECK(refusal<SuperRecord>(encode(super)) == ErrorCode::corrupt);
  }
}

TEST_CASE("a volume of a newer format is unsupported; a label is at most 255 bytes") {
  SuperRecord super;
  super.version = 2;
  CHECK(refusal<SuperRecord>(encode(super)) == ErrorCode::unsupported);
  super = {};
  super.label = std::string(255, 'x');
  CHECK(decode<SuperRecord>(encode(super)).has_value());
  super.label += 'x';
  CHECK(refusal<SuperRecord>(encode(super)) == ErrorCode::corrupt);
}

TEST_CASE("fences are counted below 2^63, so that the count never begins anew") {
  for (const std::uint64_t good : {std::uint64_t{0}, std::uint64_t{1}, fences_end - 1}) {
    CHECK(decode_fence_number(encode(NumberRecord{good})) == good);
  }
  for (const std::uint64_t bad : {fences_end, ~std::uint64_t{0}}) {
    const auto decoded = decode_fence_number(encode(NumberRecord{bad}));
    REQUIRE(!decoded);
    CHECK(decoded.error().code == ErrorCode::corrupt);
  }
  InstanceRecord record;
  record.state = InstanceRecord::State::fenced;
  record.fence_number = fences_end;
  CHECK(refusal<InstanceRecord>(encode(record)) == ErrorCode::corrupt);
}

TEST_CASE("a mode holds permission bits alone, and flags only what is known") {
  AttrRecord attr;
  attr.mode = 010000;
  CHECK(refusal<AttrRecord>(encode(attr)) == ErrorCode::corrupt);
  attr.mode = 07777;
  attr.flags = 15;
  CHECK(decode<AttrRecord>(encode(attr)).has_value());
  attr.flags = 16;
  CHECK(refusal<AttrRecord>(encode(attr)) == ErrorCode::corrupt);
}

TEST_CASE("a seal names a directory and a name of at most 255 bytes") {
  StateRecord state{StateRecord::Kind::sealed, golden::token, Ino{42}, std::string(255, 'x')};
  CHECK(decode<StateRecord>(encode(state)).has_value());
  state.name += 'x';
  CHECK(refusal<StateRecord>(encode(state)) == ErrorCode::corrupt);
  state.name = "";
  CHECK(refusal<StateRecord>(encode(state)) == ErrorCode::corrupt);
  state.name = "x";
  state.parent = {};
  CHECK(refusal<StateRecord>(encode(state)) == ErrorCode::corrupt);
}

TEST_CASE("an entry starts with its kind, and other kinds than a reference are refused") {
  const EntryRecord entry{Ino{42}, FileType::regular, golden::token};
  CHECK(encode(entry)[0] == 1);
  CHECK(refusal<EntryRecord>(altered(entry, 0, "\2")) == ErrorCode::corrupt);
  CHECK(refusal<EntryRecord>(encode(EntryRecord{})) == ErrorCode::corrupt);
}

TEST_CASE("what is believed there may exist") {
  MapBlock block;
  block.believed_there.set(3);
  CHECK(refusal<MapBlock>(encode(block)) == ErrorCode::corrupt);
}

TEST_CASE("a map block lists units once for each object, in order, and only where the bits cannot tell") {
  MapBlock block;
  for (const std::size_t bit : {2, 3, 4}) {
    block.may_exist.set(bit);
    if (bit != 4) block.believed_there.set(bit);
  }
  const auto with = [&block](std::vector<MapBlock::PartlyThere> parts) {
    block.partly_there = std::move(parts);
    return encode(block);
  };
  CHECK(decode<MapBlock>(with({{2, 5}, {3, 1}})) == block);
  CHECK(encode(block)[0] == 2);
  CHECK(with({})[0] == 1);
  for (const auto& wrong : std::vector<std::vector<MapBlock::PartlyThere>>{
           {{3, 1}, {2, 5}}, {{2, 5}, {2, 1}}, {{2, 0}}, {{2, ~std::uint64_t{0}}}, {{4, 1}}, {{1024, 1}}}) {
    CHECK(refusal<MapBlock>(with(wrong)) == ErrorCode::corrupt);
  }
  auto empty = with({{2, 5}});
  empty.replace(1 + 256, 14, std::string(4, '\0'));
  empty.resize(empty.size() - 4);
  CHECK(refusal<MapBlock>(with_checksum(empty)) == ErrorCode::corrupt);
}

TEST_CASE("a question and an answer of version 2 say something that version 1 cannot") {
  const Question question{.ino = Ino{7}, .others = {Ino{8}}};
  REQUIRE(encode(question)[0] == 2);
  auto none = encode(question).substr(0, 11) + std::string(4 + 8, '\0');
  CHECK(refusal<Question>(with_checksum(none)) == ErrorCode::corrupt);
  const Answer answer{Answer::Kind::busy, 9};
  REQUIRE(encode(answer)[0] == 2);
  CHECK(refusal<Answer>(altered(answer, 2, std::string(8, '\0'))) == ErrorCode::corrupt);
}

TEST_CASE("a fence number stands only in a record that is fenced") {
  InstanceRecord record;
  record.fence_number = 1;
  CHECK(refusal<InstanceRecord>(encode(record)) == ErrorCode::corrupt);
  record.state = InstanceRecord::State::fenced;
  CHECK(decode<InstanceRecord>(encode(record)).has_value());
}

TEST_CASE("a range has numbers in it, no more than any client takes, and no other item has an end") {
  const auto kind = QueueItem::Kind::range;
  const QueueItem longest{kind, Ino{5}, Ino{5 + QueueItem::most_numbers}, {}};
  CHECK(decode<QueueItem>(encode(longest)) == longest);
  CHECK(refusal<QueueItem>(encode(QueueItem{kind, Ino{5}, Ino{6 + QueueItem::most_numbers}, {}})) ==
        ErrorCode::corrupt);
  CHECK(refusal<QueueItem>(encode(QueueItem{kind, Ino{5}, Ino{5}, {}})) == ErrorCode::corrupt);
  CHECK(refusal<QueueItem>(encode(QueueItem{kind, Ino{5}, Ino{}, {}})) == ErrorCode::corrupt);
  CHECK(refusal<QueueItem>(encode(QueueItem{QueueItem::Kind::inode, Ino{5}, Ino{6}, {}})) == ErrorCode::corrupt);
  CHECK(refusal<QueueItem>(encode(QueueItem{QueueItem::Kind::inode, Ino{}, Ino{}, {}})) == ErrorCode::corrupt);
}

}  // namespace
}  // namespace lccfs::format
