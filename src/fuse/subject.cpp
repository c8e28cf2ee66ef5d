// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/subject.h"

#include <algorithm>
#include <charconv>

namespace lccfs::fuse {

namespace {
constexpr std::string_view before_number = "inode ", before_name = ", \"", after_name = "\"", cut = "...";
}

Subject::Subject(Ino ino, std::string_view name) {
  add(before_number);
  const char* const end = std::to_chars(text_.data() + size_, text_.data() + text_.size(), ino.value).ptr;
  size_ = static_cast<std::size_t>(end - text_.data());
  if (name.empty()) return;
  add(before_name);
  const std::size_t room = text_.size() - size_ - after_name.size();
  const bool fits = name.size() <= room;
  add(fits ? name : name.substr(0, room - cut.size()));
  if (!fits) add(cut);
  add(after_name);
}

void Subject::add(std::string_view part) {
  std::ranges::copy(part, text_.begin() + size_);
  size_ += part.size();
}

Ino Subject::ino_in(std::string_view text) {
  Ino ino;
  if (text.starts_with(before_number)) {
    std::from_chars(text.data() + before_number.size(), text.data() + text.size(), ino.value);
  }
  return ino;
}

}  // namespace lccfs::fuse
