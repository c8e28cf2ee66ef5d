// SPDX-License-Identifier: LGPL-2.1-or-later
// Inodes as operations read and change them.
#pragma once

#include <functional>
#include <stop_token>

#include "fs/acl.h"
#include "instance/instance.h"
#include "lccfs/file_system.h"
#include "objects/inode.h"

namespace lccfs {

using objects::AllocationMap;
using objects::Inode;
using objects::InodeParts;

/// 1 read. not_found: no such object. corrupt names the object. interrupted: a stop was requested.
Result<Inode> read_inode(Instance& instance, Ino ino, const InodeParts& parts = {}, const std::stop_token& stop = {});
/// The same with all of a file's allocation map: to take its lease, or to say what it occupies.
Result<Inode> read_inode_and_map(Instance& instance, Ino ino, const std::stop_token& stop = {});
/// The same as the first, under way. An answer that is not needed any more need not be taken.
Awaited<Result<Inode>> read_ahead(Instance& instance, Ino ino);

/// For operations on an inode, not on a name in it: `not_found` becomes `stale`.
Error gone_is_stale(Error error);
template <class T>
Result<T> or_stale(Result<T> result) {
  if (!result) return std::unexpected(gone_is_stale(std::move(result).error()));
  return result;
}

/// What stat shows of it, as stored. st_nlink of a directory is 2 + nsub, of whatever is dead 0.
Attributes attributes_of(const Inode& view, std::uint64_t object_size_bytes);

/// An ACL by what stands in its key. corrupt: names the object.
Result<Acl> stored_acl(Ino ino, const std::string& name, const Bytes& stored);

/// Changes `attr` under a guard on its old value, ctime with it (1 read unless `known` is still right, 1 write):
/// `change` edits the record, and may be called again after a lost race. The key of a flag that goes goes, too. An
/// access ACL changes with the mode; it is read first. Answers the inode as it is then. A directory's step goes by way
/// of `on_directory`, if there is one.
using RunStep = std::function<Result<StepResult>(MetaTxn)>;
Result<Inode> change_attr(Instance& instance, Ino ino, const std::function<Result<>(format::AttrRecord&)>& change,
                          const Inode* known = nullptr, const RunStep& on_directory = {});

}  // namespace lccfs
