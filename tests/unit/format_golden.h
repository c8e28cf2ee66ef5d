// SPDX-License-Identifier: LGPL-2.1-or-later
// The bytes of one record of every kind, in format version 1. Never changed once that is released: what was written
// then must be read for ever.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/records.h"

namespace lccfs::format::golden {

template <class Record>
struct Golden {
  Record record;
  const char* hex;
};

inline Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  return hex;
}

inline Bytes with_checksum(Bytes fields) {
  ByteWriter out;
  out.put_raw(fields);
  out.put(crc32c(fields));
  return out.take();
}

inline constexpr TimeSpec time{1'700'000'000, 123'456'789};
inline constexpr Token token{InstanceId{7}, 0x0102030405060708};

template <class Record>
std::vector<Golden<Record>> all();

template <>
inline std::vector<Golden<SuperRecord>> all() {
  SuperRecord super;
  super.compat = 1;
  super.ro_compat = 2;
  super.incompat = 4;
  for (std::size_t i = 0; i < super.uuid.size(); ++i) super.uuid[i] = static_cast<std::uint8_t>(i);
  super.label = "images";
  super.data_pool = "fast";
  super.birth = time;
  return {{super,
           "014c43434653766f6c01000000010000000000000002000000000000000400000000000000000102030405060708090a"
           "0b0c0d0e0f06000000696d616765730000400004000000666173743c00000000f153650000000015cd5b076ab01a4c"}};
}

template <>
inline std::vector<Golden<NumberRecord>> all() {
  return {{{0x1122334455667788}, "018877665544332211775daa6c"}};
}

template <>
inline std::vector<Golden<TimeRecord>> all() {
  return {{{{-1, 999'999'999}}, "01ffffffffffffffffffc99a3b9133ad05"}};
}

template <>
inline std::vector<Golden<AttrRecord>> all() {
  AttrRecord attr;
  attr.mode = 04755;
  attr.uid = 1000;
  attr.gid = 100;
  attr.rdev = 0x800;
  attr.nlink = 2;
  attr.birth = time;
  attr.birth_token = token;
  attr.flags = attr_flag::user_attributes | attr_flag::default_acl;
  return {{attr,
           "0101ed090000e80300006400000000080000000000000200000000f153650000000015cd5b0707000000000000000807"
           "06050403020109000000a6e122af"}};
}

template <>
inline std::vector<Golden<StateRecord>> all() {
  return {{{}, "0101a66ca810"},
          {{StateRecord::Kind::dead, {}, {}, ""}, "0103511c93f1"},
          {{StateRecord::Kind::sealed, token, Ino{42}, "na\xc3\xafve"},
           "0102070000000000000008070605040302012a00000000000000060000006e61c3af7665cb80f440"}};
}

template <>
inline std::vector<Golden<BackPointerRecord>> all() {
  return {{{Ino{42}, token}, "012a00000000000000070000000000000008070605040302013c3c42f3"}};
}

template <>
inline std::vector<Golden<EntryRecord>> all() {
  return {{{Ino{42}, FileType::directory, token}, "01012a0000000000000002070000000000000008070605040302015e6f37a9"},
          {{Ino{42}, FileType::regular, token, EntryRecord::Mark{{InstanceId{9}, 11}, Ino{77}}},
           "01022a00000000000000010700000000000000080706050403020109000000000000000b000000000000004d00000000000000f7120"
           "bbc"}};
}

template <>
inline std::vector<Golden<MapBlock>> all() {
  MapBlock block;
  for (const std::size_t bit : {0, 1, 7, 1023}) block.may_exist.set(bit);
  block.believed_there.set(1);
  MapBlock with_units = block;
  with_units.believed_there.set(7);
  with_units.believed_there.set(1023);
  with_units.partly_there = {{7, 0x0123456789abcdef}, {1023, 1}};
  return {{block,
           "018300000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000080020000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "0000000000000000000000000000000000038a7b8a"},
          {with_units,
           "028300000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000080820000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
           "0000000000000000000000000000000080020000000700efcdab8967452301ff030100000000000000ffc830a5"}};
}

template <>
inline std::vector<Golden<DecisionRecord>> all() {
  return {{{DecisionRecord::Kind::cancelled}, "0101a66ca810"},
          {{DecisionRecord::Kind::committed, Ino{77}, "old"}, "02024d00000000000000030000006f6c64ba43e6fa"}};
}

template <>
inline std::vector<Golden<LockStateRecord>> all() {
  return {{{LockStateRecord::Kind::leased, token}, "010107000000000000000807060504030201de6f85e6"},
          {{LockStateRecord::Kind::shared, token}, "0102070000000000000008070605040302013f0ba806"}};
}

template <>
inline std::vector<Golden<TakenRecord>> all() {
  return {{{token}, "0107000000000000000807060504030201380324fa"}};
}

template <>
inline std::vector<Golden<DirectoryLeaseRecord>> all() {
  return {{{token}, "0107000000000000000807060504030201380324fa"}};
}

template <>
inline std::vector<Golden<RenameLockRecord>> all() {
  return {
      {{RenameLockRecord::Kind::free, token, Ino{42}}, "0101070000000000000008070605040302012a000000000000007448978d"},
      {{RenameLockRecord::Kind::held, token, Ino{42}}, "0102070000000000000008070605040302012a00000000000000d314caff"}};
}

template <>
inline std::vector<Golden<LocksRecord>> all() {
  return {
      {{11, {{false, true, 100, 103}, {true, false, 0, 0x7fffffffffffffff}}},
       "010b000000000000000200000000016400000000000000670000000000000001000000000000000000ffffffffffffff7fbc2a45a2"}};
}

template <>
inline std::vector<Golden<InstanceRecord>> all() {
  InstanceRecord instance;
  instance.host = "host1";
  instance.pid = 4321;
  instance.version = "0.1.0";
  instance.since = time;
  instance.identity = Bytes("\0\xff id", 5);
  instance.mount_id = "/mnt";
  instance.state = InstanceRecord::State::fenced;
  instance.fence_number = 3;
  auto with_process = instance;
  with_process.process = {"0f3e", 4026531836, 8250};
  return {{instance,
           "0105000000686f737431e11000000000000005000000302e312e3000f153650000000015cd5b070500000000ff206964"
           "040000002f6d6e74020300000000000000787fce2b"},
          {with_process,
           "0205000000686f737431e11000000000000005000000302e312e3000f153650000000015cd5b070500000000ff206964"
           "040000002f6d6e740203000000000000000400000030663365fcffffef000000003a2000000000000094403ccd"}};
}

template <>
inline std::vector<Golden<QueueItem>> all() {
  return {{{QueueItem::Kind::range, Ino{2}, Ino{4098}, time},
           "01010200000000000000021000000000000000f153650000000015cd5b0786901036"},
          {{QueueItem::Kind::directory, Ino{1}, Ino{}, time},
           "01020100000000000000000000000000000000f153650000000015cd5b07245d2614"},
          {{QueueItem::Kind::inode, Ino{42}, Ino{}, time},
           "01032a00000000000000000000000000000000f153650000000015cd5b076d5b1909"}};
}

template <>
inline std::vector<Golden<Question>> all() {
  Question share{Question::Kind::share_locks, Ino{42}};
  share.asker = InstanceId{7};
  auto changed = share;
  changed.kind = Question::Kind::locks_changed;
  auto opened = share, told = share;
  opened.kind = Question::Kind::file_opened;
  opened.from_open = true;
  told.kind = Question::Kind::file_changed;
  return {{{Question::Kind::store_attributes, Ino{42}, true}, "01022a0000000000000001c94c7ee3"},
          {opened, "01052a00000000000000010700000000000000aeeaf9a6"},
          {told, "01062a000000000000000007000000000000009b3a7c43"},
          {share, "01032a000000000000000007000000000000001c30b171"},
          {changed, "01042a00000000000000000700000000000000cd3eae5d"},
          {{Question::Kind::release_directory, Ino{42}}, "01072a0000000000000000e8c12ef9"}};
}

template <>
inline std::vector<Golden<Answer>> all() {
  return {{{Answer::Kind::busy}, "0102529ff803"}};
}

template <>
inline std::vector<Golden<LivenessPoll>> all() {
  return {{{InstanceId{7}, {Ino{42}, Ino{43}}}, "010700000000000000020000002a000000000000002b000000000000008629dc62"}};
}

template <>
inline std::vector<Golden<PollReply>> all() {
  return {{{InstanceId{9}, 1234, {Ino{43}}}, "010900000000000000d204000000000000010000002b0000000000000097edde71"}};
}

}  // namespace lccfs::format::golden
