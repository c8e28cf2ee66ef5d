// SPDX-License-Identifier: LGPL-2.1-or-later
// What is wrong with a volume. A value: it describes itself, and holds what its repair (repair.h) needs.
#pragma once

#include <cstdint>
#include <string>

#include "lccfs/types.h"

namespace lccfs::check {

struct Finding {
  // Which fields a kind fills in stands behind it; `ino` is always the inode that `object` is, or that it belongs to as
  // a data object.
  enum class Kind {
    corrupt,             ///< bytes that no version of ours wrote. part, is_key (payload: part is empty), seen
    unsupported,         ///< written by a newer version. part, is_key, seen
    missing_part,        ///< an xattr that an inode of its type, Super or Alloc must have. part
    unknown_part,        ///< an xattr or key that this format does not know, or not there. part, is_key, seen
    unknown_object,      ///< an object whose name is none of ours
    missing_object,      ///< Super, Alloc or the root is not there
    number_not_given,    ///< Alloc's counter is not above every number in use. number: the highest in use
    fences_behind,       ///< Super's fence counter is below a number in use. number: the highest in use
    dangling_entry,      ///< V: an entry whose inode is missing or dead. name, target
    wrong_type,          ///< an entry whose type is not its inode's. name, target
    reverse_key,         ///< an entry without its reverse key. name, target
    stray_reverse_key,   ///< a reverse key without its entry. name, target
    subdirectories,      ///< nsub is not the number of subdirectories. number: how many there are
    several_names,       ///< a directory with a further entry, or the root with one: this one is too much. `object` is
                         ///< the directory that holds it. name, target
    unreachable,         ///< a directory that has a name, or content, and no path from the root; of a loop or a lost
                         ///< tree its topmost
    no_back_pointer,     ///< P: `target` (a directory) has an entry for this inode, which does not point back. target
    orphan,              ///< an inode without any name, and nothing of the queue leads to it
    wrong_links,         ///< an inode whose nlink is not its number of names, and nothing of the queue leads to it.
                         ///< number: how many names
    lost_trace,          ///< Q: a d/ or x/ key without a directory item, or a seal to which nothing leads
    stray_session,       ///< a session object without a record: its queue is never read. number: the instance
    data_without_inode,  ///< M: data objects whose inode is not there, or no regular file. One finding an inode:
                         ///< `object` is the first of them, number: how many
    unmapped_data,       ///< M: a data object whose bit "may exist" is not set. number: its index
    data_past_size,      ///< T: bytes past the size, while nobody holds the lease. number: the object's index
    denied_attribute,    ///< an extended attribute that the flags of `attr` deny. part
  };
  Kind kind = Kind::corrupt;
  std::string object;
  std::string text;  ///< for people, without the object's name, with names as they are stored; corrupt records: with
                     ///< the byte offset

  Ino ino{};
  Ino target{};
  std::string name{};   ///< of an entry, as it is
  std::string part{};   ///< the xattr's name, or the whole key
  bool is_key = false;  ///< `part` is a key, not an xattr
  Bytes seen{};         ///< the value as it was read
  std::uint64_t number = 0;
};

/// A stable name of the kind ("dangling entry").
const char* describe(Finding::Kind kind);

/// "<kind>: <object>: <text>", printable
std::string text_of(const Finding& finding);

}  // namespace lccfs::check
