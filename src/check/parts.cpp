// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/parts.h"

#include "format/object_names.h"

namespace lccfs::check {

Finding finding_on(Finding::Kind kind, const std::string& object, const Part& part, const std::string& why) {
  return {.kind = kind,
          .object = object,
          .text = (part.is_key ? "key " : "xattr ") + printable(part.name) + ": " + why,
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

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      text += c;
    } else {
      text += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
  }
  return text;
}

std::string entry_text(std::string_view name, Ino ino) {
  return "entry \"" + printable(name) + "\" for " + format::inode_object(ino);
}

}  // namespace lccfs::check
