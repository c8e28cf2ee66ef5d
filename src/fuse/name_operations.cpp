// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>
#include <string>

#include "fuse/convert.h"
#include "fuse/operations.h"
#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

void answer_entry(Serving& serving, Request request, const Result<EntryReply>& entry) {
  if (!entry) return request.fail(entry.error());
  const Ino ino = entry->attributes.ino;
  serving.lookups.add(ino);
  if (!request.entry(*entry)) serving.forget(ino, 1);
}

void lookup(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  serve(raw, "lookup", [parent = Ino{parent}, name = std::string(name)](Serving& serving, Request request) {
    answer_entry(serving, std::move(request), serving.fs.lookup(parent, name));
  });
}

void forget(fuse_req_t raw, fuse_ino_t ino, std::uint64_t count) {
  serving_of(raw).forget(Ino{ino}, count);
  fuse_reply_none(raw);
}

void forget_multi(fuse_req_t raw, std::size_t count, fuse_forget_data* forgotten) {
  for (std::size_t i = 0; i < count; ++i) serving_of(raw).forget(Ino{forgotten[i].ino}, forgotten[i].nlookup);
  fuse_reply_none(raw);
}

void make_node(fuse_req_t raw, const char* operation, fuse_ino_t parent, const char* name, NewNode node) {
  serve(raw, operation,
        [parent = Ino{parent}, name = std::string(name), node = std::move(node)](Serving& serving, Request request) {
          const Result<EntryReply> entry = serving.fs.make_node(request.caller(), parent, name, node);
          answer_entry(serving, std::move(request), entry);
        });
}

void mknod(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const std::optional<FileType> type = type_of(mode);
  if (!type) {
    fuse_reply_err(raw, EINVAL);
    return;
  }
  make_node(raw, "mknod", parent, name, {.type = *type, .mode = mode & 07777, .rdev = device, .symlink_target = ""});
}

void mkdir(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode) {
  make_node(raw, "mkdir", parent, name,
            {.type = FileType::directory, .mode = mode & 07777, .rdev = 0, .symlink_target = ""});
}

void symlink(fuse_req_t raw, const char* target, fuse_ino_t parent, const char* name) {
  make_node(raw, "symlink", parent, name,
            {.type = FileType::symlink, .mode = 0777, .rdev = 0, .symlink_target = target});
}

void create(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  serve(raw, "create",
        [parent = Ino{parent}, name = std::string(name), mode, flags = info->flags](Serving& serving, Request request) {
          const Result<CreateReply> made = serving.fs.create(request.caller(), parent, name, mode & 07777, flags);
          if (!made) return request.fail(made.error());
          const Ino ino = made->entry.attributes.ino;
          serving.lookups.add(ino);
          if (request.create(*made, flags)) return;
          serving.fs.release(made->open.handle);
          serving.forget(ino, 1);
        });
}

void unlink(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  serve(raw, "unlink", [parent = Ino{parent}, name = std::string(name)](Serving& serving, Request request) {
    request.finish(serving.fs.unlink(parent, name));
  });
}

void rmdir(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  serve(raw, "rmdir", [parent = Ino{parent}, name = std::string(name)](Serving& serving, Request request) {
    request.finish(serving.fs.rmdir(parent, name));
  });
}

void rename(fuse_req_t raw, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned flags) {
  const std::optional<RenameMode> mode = to_rename_mode(flags);
  if (!mode) {
    fuse_reply_err(raw, EINVAL);
    return;
  }
  serve(raw, "rename",
        [parent = Ino{parent}, name = std::string(name), new_parent = Ino{new_parent}, new_name = std::string(new_name),
         mode = *mode](Serving& serving, Request request) {
          request.finish(serving.fs.rename(parent, name, new_parent, new_name, mode));
        });
}

// EPERM says "this file system makes no hard links" (link(2)); ENOSYS would not.
void link(fuse_req_t raw, fuse_ino_t, fuse_ino_t, const char*) { fuse_reply_err(raw, EPERM); }

void readlink(fuse_req_t raw, fuse_ino_t ino) {
  serve(raw, "readlink", [ino = Ino{ino}](Serving& serving, Request request) {
    const Result<std::string> target = serving.fs.read_link(ino);
    target ? request.link_target(*target) : request.fail(target.error());
  });
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = lookup;
  operations.forget = forget;
  operations.forget_multi = forget_multi;
  operations.mknod = mknod;
  operations.mkdir = mkdir;
  operations.symlink = symlink;
  operations.create = create;
  operations.unlink = unlink;
  operations.rmdir = rmdir;
  operations.rename = rename;
  operations.link = link;
  operations.readlink = readlink;
}

}  // namespace lccfs::fuse
