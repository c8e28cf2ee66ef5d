// SPDX-License-Identifier: LGPL-2.1-or-later
// Bodies of the answers to the kernel, as its own structures: they are the same for every version of libfuse, whose own
// have no field for FOPEN_PARALLEL_DIRECT_WRITES (3.14). Pure functions.
#pragma once

#include <string>

#include "lccfs/file_system.h"

namespace lccfs::fuse {

std::string attributes_answer(const AttributesReply& reply);
std::string entry_answer(const EntryReply& reply);
/// One of a listing with attributes; without them the kernel looks it up when it wants it.
std::string listed_entry_answer(const ListedEntry& listed);
std::size_t listed_entry_bytes(const DirectoryEntry& entry);
/// `flags` as of open(2).
std::string open_answer(const OpenReply& reply, int flags);
std::string create_answer(const CreateReply& reply, int flags);
std::string open_directory_answer(HandleId handle);
std::string written_answer(std::size_t size_bytes);
std::string seek_answer(std::uint64_t offset);
/// nullopt: none is in the way.
std::string lock_answer(const std::optional<LockHeld>& held);
std::string xattr_size_answer(std::size_t size_bytes);
std::string usage_answer(const VolumeUsage& usage);

}  // namespace lccfs::fuse
