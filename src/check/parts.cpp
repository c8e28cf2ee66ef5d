// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/parts.h"

#include "format/object_names.h"

namespace lccfs::check {

Finding finding_on(Finding::Kind kind, const std::string& object, const Part& part, const std::string& why) {
  return {.kind = kind,
          .object = object,
          .text = (part.is_key ? "key " : "xattr ") + part.name + ": " + why,
          .part = part.name,
          .is_key = part.is_key,
          .seen = Bytes(part.value)};
}

Finding missing_part(const std::string& object, const char* xattr) {
  return {.kind = Finding::Kind::missing_part,
          .object = object,
          .text = std::string("xattr ") + xattr + " is missing",
          .part = xattr};
}

std::string entry_text(std::string_view name, Ino ino) {
  return "entry \"" + std::string(name) + "\" for " + format::inode_object(ino);
}

}  // namespace lccfs::check
