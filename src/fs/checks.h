// SPDX-License-Identifier: LGPL-2.1-or-later
// What an operation is refused for before anything is read: by what is asked alone. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lccfs/file_system.h"

namespace lccfs {

/// too long, or no single path component.
Result<> check_name(const std::string& name);
Result<> check_writable(const FileSystemOptions& options);
/// Both, for an operation that changes names.
Result<> check_change(const FileSystemOptions& options, const std::string& name);
Result<> check_node(const NewNode& node);
/// file_too_large: a file cannot have these bytes.
Result<> check_bytes(std::uint64_t offset_bytes, std::uint64_t size_bytes);
bool is_acl(std::string_view attribute_name);
/// Its length, and that it is of a kind that is kept.
Result<> check_attribute_name(const std::string& name);

}  // namespace lccfs
