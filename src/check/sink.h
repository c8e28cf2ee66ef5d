// SPDX-License-Identifier: LGPL-2.1-or-later
// How findings are made, and where they go.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "check/finding.h"
#include "format/records.h"

namespace lccfs::check {

/// An xattr or a key of an object.
struct Part {
  const std::string& name;
  std::string_view value;
  bool is_key = false;
};

Finding finding_on(Kind kind, const std::string& object, const Part& part, const std::string& why);
Finding missing_part(const std::string& object, const char* xattr);

/// The record, or nullopt and a finding with the decoder's words.
template <class Record>
std::optional<Record> decode_part(std::vector<Finding>& findings, const std::string& object, const Part& part) {
  auto record = format::decode<Record>(part.value);
  if (record) return std::move(*record);
  const bool newer = record.error().code == ErrorCode::unsupported;
  findings.push_back(finding_on(newer ? Kind::unsupported : Kind::corrupt, object, part, record.error().context));
  return std::nullopt;
}

/// About the name `name` for `target` in a directory.
Finding finding_on_name(Kind kind, Ino directory, const std::string& name, Ino target, std::string text);

/// `entry "<name>" for Inode.<ino>`
std::string entry_text(std::string_view name, Ino ino);

/// Any thread may call any method.
class Sink {
 public:
  /// `on_finding` outlives the sink; it is called by one thread at a time.
  explicit Sink(const std::function<void(const Finding&)>& on_finding) : on_finding_(on_finding) {}

  /// Fills in `ino`.
  void report(Finding finding);
  void report(std::vector<Finding> findings);
  std::uint64_t count();

 private:
  const std::function<void(const Finding&)>& on_finding_;
  Mutex mutex_;  // held while on_finding_ is called
  std::uint64_t count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lccfs::check
