// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/sink.h"

#include <variant>

#include "format/object_names.h"

namespace lccfs::check {

Finding finding_on(Kind kind, const std::string& object, const Part& part, const std::string& why) {
  return {.kind = kind,
          .object = object,
          .text = (part.is_key ? "key " : "xattr ") + part.name + ": " + why,
          .part = part.name,
          .is_key = part.is_key,
          .seen = as_seen(part.value)};
}

Finding missing_part(const std::string& object, const char* xattr) {
  return {.kind = Kind::missing_part,
          .object = object,
          .text = std::string("xattr ") + xattr + " is missing",
          .part = xattr};
}

Finding finding_on_name(Kind kind, Ino directory, const std::string& name, Ino target, std::string text) {
  return {
      .kind = kind, .object = format::inode_object(directory), .text = std::move(text), .target = target, .name = name};
}

std::string entry_text(std::string_view name, Ino ino) {
  return "entry \"" + std::string(name) + "\" for " + format::inode_object(ino);
}

void Sink::report(Finding finding) {
  if (const auto name = format::parse_object_name(finding.object)) {
    if (const auto* inode = std::get_if<format::InodeName>(&*name)) finding.ino = inode->ino;
    if (const auto* data = std::get_if<format::DataName>(&*name)) finding.ino = data->ino;
  }
  const Lock lock(mutex_);
  ++count_;
  on_finding_(finding);
}

void Sink::report(std::vector<Finding> findings) {
  for (auto& finding : findings) report(std::move(finding));
}

std::uint64_t Sink::count() {
  const Lock lock(mutex_);
  return count_;
}

}  // namespace lccfs::check
