// SPDX-License-Identifier: LGPL-2.1-or-later
// What is wrong with a volume. A value.
#pragma once

#include <string>

namespace lccfs::check {

struct Finding {
  enum class Kind {
    corrupt,            ///< bytes that no version of ours wrote
    unsupported,        ///< written by a newer version
    unknown_object,     ///< an object whose name is none of ours
    missing_object,     ///< Super, Alloc or the root is not there
    number_not_given,   ///< an inode or instance above Alloc's counter: its number would be handed out again
    dangling_entry,     ///< V: an entry whose inode is missing or dead
    wrong_type,         ///< an entry, an xattr or a key that does not fit the inode's type
    reverse_key,        ///< an entry without its reverse key, or the other way round
    subdirectories,     ///< nsub is not the number of subdirectories
    several_names,      ///< a directory with more than one entry, or the root with one
    unreachable,        ///< a directory that no path from the root leads to
    no_back_pointer,    ///< P: a directory has an entry for an inode that does not point back
    lost_to_the_queue,  ///< Q: wrong links, or a trace to be tidied up, and no item leads there
    stray_session,      ///< a session object without a record: its queue is never read
    unmapped_data,      ///< M: a data object without an inode, or that may not exist
    data_past_size,     ///< T: bytes past the size, while nobody holds the lease
    denied_attribute,   ///< an extended attribute that the flags of `attr` deny
  };
  Kind kind = Kind::corrupt;
  std::string object;
  std::string text;  ///< one line for people
};

/// A stable name of the kind ("dangling entry").
const char* describe(Finding::Kind kind);

/// "<kind>: <object>: <text>"
std::string text_of(const Finding& finding);

}  // namespace lccfs::check
