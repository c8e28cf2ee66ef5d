// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Names and attributes: every operation that is not on a regular file's bytes. One file per operation family, each with
// its step table on top (docs/ORDERING.md section 6). Threads as in lccfs/file_system.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/files.h"
#include "instance/instance.h"
#include "lccfs/file_system.h"

namespace lccfs {

class Namespace {
 public:
  Namespace(Instance& instance, Files& files, const FileSystemOptions& options);
  ~Namespace();
  /// Returns when no step is in flight behind an answer any more (a moved inode's ctime): unmount's first act.
  void wait_for_background_steps();

  Result<EntryReply> lookup(Ino parent, const std::string& name);
  Result<EntryReply> make_node(const Caller&, Ino parent, const std::string& name, const NewNode&);
  Result<CreateReply> create(const Caller&, Ino parent, const std::string& name, std::uint32_t mode, int flags);
  Result<> unlink(Ino parent, const std::string& name);
  Result<> rmdir(Ino parent, const std::string& name);
  Result<> rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                  RenameMode mode);
  Result<std::string> read_link(Ino ino);
  Result<HandleId> open_directory(Ino ino);
  Result<std::vector<DirectoryEntry>> read_directory(HandleId handle, std::uint64_t cookie, std::size_t max_entries);
  void release_directory(HandleId handle);
  /// Of a directory that a collector is about to remove (or any inode): whether it is open here, or something made here
  /// may point to it. If not, nothing will: nothing is remembered of it, and who reads it finds it dead.
  bool needs_directory(Ino ino);
  Result<AttributesReply> get_attributes(Ino ino);
  Result<AttributesReply> set_attributes(const Caller&, Ino ino, const SetAttributes&);
  Result<Bytes> get_xattr(Ino ino, const std::string& name);
  Result<std::vector<std::string>> list_xattrs(Ino ino);
  Result<> set_xattr(Ino ino, const std::string& name, const Bytes& value, XattrMode mode);
  Result<> remove_xattr(Ino ino, const std::string& name);
  Result<> sync_directory(Ino ino);
  void forget(Ino ino);

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace lccfs
