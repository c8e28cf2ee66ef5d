// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A checksum is linear: what a changed byte does to it depends only on the change and on how many bytes follow, never
// on the other bytes. So the difference between the stored checksum and the right one is compared with what each change
// would do, from the last byte to the first.
#include "repair/one_byte.h"

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "format/object_names.h"
#include "format/records.h"

namespace lccfs::repair {

namespace xattr = format::xattr;

namespace {

constexpr std::size_t checksum_bytes = 4;
constexpr std::uint32_t polynomial = 0x82F63B78;  // CRC-32C, its bits reversed

using PerByte = std::array<std::uint32_t, 256>;

constexpr PerByte effects_of_a_last_byte() {
  PerByte effects{};
  for (std::uint32_t change = 0; change < effects.size(); ++change) {
    std::uint32_t effect = change;
    for (int bit = 0; bit < 8; ++bit) effect = (effect >> 1) ^ ((effect & 1) != 0 ? polynomial : 0);
    effects[change] = effect;
  }
  return effects;
}

constexpr PerByte last_byte = effects_of_a_last_byte();

char changed(char byte, std::uint32_t change) {
  return static_cast<char>(static_cast<unsigned char>(byte) ^ static_cast<unsigned char>(change));
}

std::vector<Bytes> candidates(std::string_view bytes) {
  std::vector<Bytes> found;
  const auto fields = bytes.substr(0, bytes.size() - checksum_bytes);
  ByteReader stored(bytes.substr(fields.size()));
  const auto difference = stored.get<std::uint32_t>() ^ crc32c(fields);
  const auto add = [&](std::size_t position, std::uint32_t change) {
    found.emplace_back(bytes);
    found.back()[position] = changed(bytes[position], change);
  };
  for (std::size_t i = 0; i < checksum_bytes; ++i) {
    const auto change = (difference >> (8 * i)) & 0xFF;
    if (difference == change << (8 * i) && change != 0) add(fields.size() + i, change);
  }
  PerByte effects = last_byte;
  for (std::size_t position = fields.size(); position-- > 0;) {
    for (std::uint32_t change = 1; change < effects.size(); ++change) {
      if (effects[change] == difference) add(position, change);
    }
    for (auto& effect : effects) effect = (effect >> 8) ^ last_byte[effect & 0xFF];
  }
  return found;
}

}  // namespace

std::optional<Bytes> with_one_byte_corrected(std::string_view bytes,
                                             const std::function<bool(std::string_view)>& decodes) {
  if (bytes.size() <= checksum_bytes) return std::nullopt;
  std::optional<Bytes> only;
  for (auto& candidate : candidates(bytes)) {
    if (!decodes(candidate)) continue;
    if (only) return std::nullopt;
    only = std::move(candidate);
  }
  return only;
}

// ---- which record stands in which part

namespace {

using Decodes = bool (*)(std::string_view bytes);

template <class Record>
bool is(std::string_view bytes) {
  return format::decode<Record>(bytes).has_value();
}

bool is_size(std::string_view bytes) {
  const auto size = format::decode<format::NumberRecord>(bytes);
  return size && size->value <= format::file_size_limit_bytes;
}

bool is_fence_number(std::string_view bytes) { return format::decode_fence_number(bytes).has_value(); }

bool is_next_number(std::string_view bytes) { return format::decode_next_number(bytes).has_value(); }

bool is_lease(std::string_view bytes) {
  return is<format::NumberRecord>(bytes) || is<format::DirectoryLeaseRecord>(bytes);
}

struct Place {
  std::string_view object;  // how its name starts
  std::string_view part;    // a key: how it starts
  bool is_key;
  Decodes decodes;
};

constexpr Place places[] = {
    {"Super", xattr::super, false, is<format::SuperRecord>},
    {"Super", xattr::fences, false, is_fence_number},
    {"Super", "s/", true, is<format::InstanceRecord>},
    {"Super", format::rename_lock_key, true, is<format::RenameLockRecord>},
    {"Alloc", xattr::next, false, is_next_number},
    {"Session.", "q/", true, is<format::QueueItem>},
    {"Inode.", xattr::attr, false, is<format::AttrRecord>},
    {"Inode.", xattr::state, false, is<format::StateRecord>},
    {"Inode.", xattr::parent, false, is<format::BackPointerRecord>},
    {"Inode.", xattr::size, false, is_size},
    {"Inode.", xattr::nsub, false, is<format::NumberRecord>},
    {"Inode.", xattr::lease, false, is_lease},
    {"Inode.", xattr::behind, false, is<format::DirectoryLeaseRecord>},
    {"Inode.", xattr::fence, false, is_fence_number},
    {"Inode.", xattr::locks, false, is<format::LockStateRecord>},
    {"Inode.", xattr::taken, false, is<format::TakenRecord>},
    {"Inode.", xattr::atime, false, is<format::TimeRecord>},
    {"Inode.", xattr::mtime, false, is<format::TimeRecord>},
    {"Inode.", xattr::ctime, false, is<format::TimeRecord>},
    {"Inode.", xattr::wtime, false, is<format::TimeRecord>},
    {"Inode.", "n/", true, is<format::EntryRecord>},
    {"Inode.", "m/", true, is<format::MapBlock>},
    {"Inode.", "k/", true, is<format::LocksRecord>},
    {"Inode.", "x/", true, is<format::DecisionRecord>},
};

}  // namespace

std::optional<Bytes> corrected(const std::string& object, const txn::Part& part, const Bytes& seen) {
  for (const auto& place : places) {
    const bool here = part.is_key ? part.name.starts_with(place.part) : part.name == place.part;
    if (part.is_key == place.is_key && here && object.starts_with(place.object)) {
      return with_one_byte_corrected(seen, place.decodes);
    }
  }
  return std::nullopt;
}

}  // namespace lccfs::repair
