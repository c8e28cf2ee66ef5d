// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/checks.h"

#include <string_view>

#include "format/records.h"

namespace lccfs {

Result<> check_name(const std::string& name) {
  if (name.size() > format::name_limit_bytes) return failure(ErrorCode::name_too_long, "name of over 255 bytes");
  const bool component = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                         name.find('\0') == std::string::npos;
  if (!component) return failure(ErrorCode::invalid, "not the name of an entry: " + name);
  return {};
}

Result<> check_writable(const FileSystemOptions& options) {
  if (options.read_only) return failure(ErrorCode::read_only, "the volume is mounted read-only");
  return {};
}

Result<> check_change(const FileSystemOptions& options, const std::string& name) {
  LCCFS_CHECK(check_writable(options));
  return check_name(name);
}

Result<> check_node(const NewNode& node) {
  if (node.type != FileType::symlink) return {};
  if (node.symlink_target.empty()) return failure(ErrorCode::not_found, "a symlink to nowhere");
  if (node.symlink_target.size() > format::symlink_limit_bytes) {
    return failure(ErrorCode::name_too_long, "symlink target of over 4095 bytes");
  }
  return {};
}

Result<> check_bytes(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  constexpr auto limit = format::file_size_limit_bytes;
  if (size_bytes <= limit && offset_bytes <= limit - size_bytes) return {};
  return failure(ErrorCode::file_too_large, "a file has at most 2^63 - 1 bytes");
}

bool is_acl(std::string_view attribute_name) {
  return attribute_name == format::attribute::access_acl || attribute_name == format::attribute::default_acl;
}

Result<> check_attribute_name(const std::string& name) {
  if (name.size() > format::attribute_name_limit_bytes) {
    return failure(ErrorCode::range_too_small, "attribute name of over 255 bytes");
  }
  if (is_acl(name)) return {};
  for (const std::string_view space : {"user.", "trusted.", "security."}) {
    if (!name.starts_with(space)) continue;
    if (name.size() == space.size()) return failure(ErrorCode::invalid, "attribute without a name: " + name);
    return {};
  }
  return failure(ErrorCode::unsupported, "attributes of this kind are not supported: " + name);
}

}  // namespace lccfs
