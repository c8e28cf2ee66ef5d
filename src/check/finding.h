// SPDX-License-Identifier: LGPL-2.1-or-later
// What is wrong with a volume. A value, in which all names are as they are stored: it holds what its repair
// (src/repair) needs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "lccfs/types.h"

namespace lccfs::check {

/// What a finding keeps of a value, to know it again: of a long one not all of it, as there may be many.
inline Bytes as_seen(std::string_view value) {
  constexpr std::size_t most_bytes = 256;
  if (value.size() <= most_bytes) return Bytes(value);
  return Bytes(value.substr(0, most_bytes)) + " and " + std::to_string(value.size() - most_bytes) +
         " bytes: " + std::to_string(std::hash<std::string_view>()(value));
}

struct Finding {
  // Which fields a kind fills in stands after it; `ino` is always the inode that `object` is, or that it belongs to as
  // a data object.
  enum class Kind : std::uint8_t {
    corrupt,             ///< bytes that no version of ours wrote. part, is_key (payload: part is empty), seen
    unsupported,         ///< written by a newer version. part, is_key, seen
    unreadable,          ///< an object that the store says is there, and cannot read
    missing_part,        ///< an xattr that an inode of its type, Super or Alloc must have. part
    unknown_part,        ///< an xattr or key that this format does not know, or not there. part, is_key, seen
    unknown_object,      ///< an object whose name does not belong to LCCFS
    missing_object,      ///< Super, Alloc or the root is not there
    number_not_given,    ///< Alloc's counter is not above every number in use. number: the highest in use
    fences_behind,       ///< Super's fence counter is below a number in use. number: the highest in use
    dangling_entry,      ///< V: an entry whose inode is missing or dead. name, target
    wrong_type,          ///< an entry whose type is not its inode's. name, target
    reverse_key,         ///< an entry without its reverse key. name, target
    stray_reverse_key,   ///< a reverse key without its entry. name, target
    marks_differ,        ///< an entry that has another mark than its reverse key, or one of them has none. name, target
    subdirectories,      ///< nsub is not the number of subdirectories. number: how many there are
    several_names,       ///< a directory with a further entry, or the root with one: this one is too much. `object` is
                         ///< the directory that holds it. name, target
    unreachable,         ///< a directory that has a name, or content, and no path from the root; of a loop or a lost
                         ///< tree its topmost
    no_back_pointer,     ///< P: `target` (a directory) has an entry for this inode, which does not point back. target
    orphan,              ///< an inode without any name, and nothing of the queue leads to it
    wrong_links,         ///< an inode whose nlink is not its number of names, and nothing of the queue leads to it.
                         ///< number: how many names
    lost_trace,          ///< Q: a d/ or x/ key without a directory item, or a seal to which nothing leads; or a
                         ///< back-pointer to a lost directory, of an inode that has all its names elsewhere and to
                         ///< which nothing leads. number: of these, how many names
    stray_session,       ///< a session object without a record: its queue is never read. number: the instance
    data_without_inode,  ///< M: data objects whose inode is not there, or no regular file. One finding an inode:
                         ///< `object` is the first of them, number: how many
    unmapped_data,       ///< M: a data object whose bit "may exist" is not set. number: its index
    data_past_size,      ///< T: bytes past the size, while no client holds the lease. number: the object's index
    denied_attribute,    ///< an extended attribute that the flags of `attr` deny. part
    count                ///< none: how many kinds there are
  };

  Kind kind = Kind::corrupt;
  std::string object;
  std::string text;  ///< for people, without the object's name; corrupt records: with the byte offset
  std::uint64_t number = 0;

  Ino ino{};
  Ino target{};
  std::string name{};   ///< of an entry
  std::string part{};   ///< the xattr's name, or the whole key
  bool is_key = false;  ///< `part` is a key, not an xattr
  Bytes seen{};         ///< `as_seen` of the value that was read
};

using Kind = Finding::Kind;

inline constexpr std::size_t kinds = static_cast<std::size_t>(Kind::count);

/// A table with a row for each kind: it has `is_complete` asserted, so that a kind without a row does not compile.
template <class Row>
using KindTable = std::array<Row, kinds>;
template <class Row>
constexpr bool is_complete(const KindTable<Row>& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].kind != static_cast<Kind>(i)) return false;
  }
  return true;
}
/// Of a complete one.
template <class Row>
constexpr const Row& row_of(const KindTable<Row>& table, Kind kind) {
  return table.at(static_cast<std::size_t>(kind));
}

struct KindName {
  Kind kind;
  const char* name;  ///< stable: in texts and in JSON
};
inline constexpr KindTable<KindName> kind_names = {{
    {Kind::corrupt, "corrupt"},
    {Kind::unsupported, "newer version"},
    {Kind::unreadable, "unreadable"},
    {Kind::missing_part, "missing part"},
    {Kind::unknown_part, "unknown part"},
    {Kind::unknown_object, "unknown object"},
    {Kind::missing_object, "missing object"},
    {Kind::number_not_given, "number not handed out"},
    {Kind::fences_behind, "fence counter behind"},
    {Kind::dangling_entry, "dangling entry"},
    {Kind::wrong_type, "wrong type"},
    {Kind::reverse_key, "reverse key"},
    {Kind::stray_reverse_key, "stray reverse key"},
    {Kind::marks_differ, "different marks"},
    {Kind::subdirectories, "number of subdirectories"},
    {Kind::several_names, "directory with several names"},
    {Kind::unreachable, "unreachable"},
    {Kind::no_back_pointer, "no back-pointer"},
    {Kind::orphan, "orphan"},
    {Kind::wrong_links, "wrong links"},
    {Kind::lost_trace, "lost trace"},
    {Kind::stray_session, "stray session"},
    {Kind::data_without_inode, "data without inode"},
    {Kind::unmapped_data, "unmapped data"},
    {Kind::data_past_size, "data past the size"},
    {Kind::denied_attribute, "denied attribute"},
}};
static_assert(is_complete(kind_names));

constexpr const char* describe(Kind kind) { return row_of(kind_names, kind).name; }

/// "<kind>: <object>: <text>", printable
inline std::string text_of(const Finding& finding) {
  return printable(std::string(describe(finding.kind)) + ": " + finding.object + ": " + finding.text);
}

}  // namespace lccfs::check
