// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>
#include <string>
#include <string_view>

#include "fuse/convert.h"
#include "fuse/operations.h"
#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

void answer_attributes(Request request, const Result<AttributesReply>& attributes) {
  attributes ? request.attributes(*attributes) : request.fail(attributes.error());
}

void getattr(fuse_req_t raw, fuse_ino_t ino, fuse_file_info*) {
  serve(raw, "getattr", [ino = Ino{ino}](Serving& serving, Request request) {
    answer_attributes(std::move(request), serving.fs.get_attributes(ino));
  });
}

void setattr(fuse_req_t raw, fuse_ino_t ino, struct stat* values, int to_set, fuse_file_info*) {
  serve(raw, "setattr",
        [ino = Ino{ino}, changes = to_changes(*values, to_set, serving_of(raw).clock.wall_time())](Serving& serving,
                                                                                                   Request request) {
          const Caller caller = request.caller();
          answer_attributes(std::move(request), serving.fs.set_attributes(caller, ino, changes));
        });
}

/// ACLs are not kept: users' tools take EOPNOTSUPP for "none".
bool is_acl(std::string_view name) { return name.starts_with("system.posix_acl_"); }

/// getxattr(2) and listxattr(2): a size of 0 asks how many bytes there are.
void answer_sized(Request request, std::string_view bytes, std::size_t size_bytes) {
  if (size_bytes == 0) return request.xattr_size(bytes.size());
  if (bytes.size() > size_bytes) return request.fail(ERANGE);
  request.bytes(bytes);
}

void getxattr(fuse_req_t raw, fuse_ino_t ino, const char* name, std::size_t size_bytes) {
  if (is_acl(name)) {
    fuse_reply_err(raw, EOPNOTSUPP);
    return;
  }
  serve(raw, "getxattr", [ino = Ino{ino}, name = std::string(name), size_bytes](Serving& serving, Request request) {
    const Result<Bytes> value = serving.fs.get_xattr(ino, name);
    value ? answer_sized(std::move(request), *value, size_bytes) : request.fail(value.error());
  });
}

void listxattr(fuse_req_t raw, fuse_ino_t ino, std::size_t size_bytes) {
  serve(raw, "listxattr", [ino = Ino{ino}, size_bytes](Serving& serving, Request request) {
    const auto names = serving.fs.list_xattrs(ino);
    if (!names) return request.fail(names.error());
    std::string joined;
    for (const std::string& name : *names) joined.append(name).push_back('\0');
    answer_sized(std::move(request), joined, size_bytes);
  });
}

void setxattr(fuse_req_t raw, fuse_ino_t ino, const char* name, const char* value, std::size_t size_bytes, int flags) {
  const std::optional<XattrMode> mode = to_xattr_mode(flags);
  if (!mode || is_acl(name)) {
    fuse_reply_err(raw, mode ? EOPNOTSUPP : EINVAL);
    return;
  }
  serve(raw, "setxattr",
        [ino = Ino{ino}, name = std::string(name), value = Bytes(value, size_bytes), mode = *mode](
            Serving& serving, Request request) { request.finish(serving.fs.set_xattr(ino, name, value, mode)); });
}

void removexattr(fuse_req_t raw, fuse_ino_t ino, const char* name) {
  if (is_acl(name)) {
    fuse_reply_err(raw, EOPNOTSUPP);
    return;
  }
  serve(raw, "removexattr", [ino = Ino{ino}, name = std::string(name)](Serving& serving, Request request) {
    request.finish(serving.fs.remove_xattr(ino, name));
  });
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = getattr;
  operations.setattr = setattr;
  operations.getxattr = getxattr;
  operations.listxattr = listxattr;
  operations.setxattr = setxattr;
  operations.removexattr = removexattr;
}

}  // namespace lccfs::fuse
