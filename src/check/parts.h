// SPDX-License-Identifier: LGPL-2.1-or-later
// The xattrs and keys of an object, and findings about one of them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/finding.h"
#include "format/records.h"

namespace lccfs::check {

struct Part {
  const std::string& name;
  std::string_view value;
  bool is_key = false;
};

Finding finding_on(Finding::Kind kind, const std::string& object, const Part& part, const std::string& why);
Finding missing_part(const std::string& object, const char* xattr);

/// The record, or nullopt and a finding with the decoder's words.
template <class Record>
std::optional<Record> decode_part(std::vector<Finding>& findings, const std::string& object, const Part& part) {
  auto record = format::decode<Record>(part.value);
  if (record) return std::move(*record);
  const bool newer = record.error().code == ErrorCode::unsupported;
  findings.push_back(
      finding_on(newer ? Finding::Kind::unsupported : Finding::Kind::corrupt, object, part, record.error().context));
  return std::nullopt;
}

/// `entry "<name>" for Inode.<ino>`
std::string entry_text(std::string_view name, Ino ino);

}  // namespace lccfs::check
