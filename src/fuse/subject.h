// SPDX-License-Identifier: LGPL-2.1-or-later
// What a request is about, as lines about slow operations have it. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "lccfs/types.h"
#include "metrics/in_flight_table.h"

namespace lccfs::fuse {

/// Each request makes one: it takes no memory.
class Subject {
 public:
  /// `name`: one in this directory; empty: the inode itself is meant. A long name is cut, and says so.
  explicit Subject(Ino ino, std::string_view name = {});

  std::string_view text() const { return {text_.data(), size_}; }

  /// The inode in such a text. 0: it has none.
  static Ino ino_in(std::string_view text);

 private:
  void add(std::string_view part);

  std::array<char, metrics::InFlightTable::longest_subject> text_;
  std::size_t size_ = 0;
};

}  // namespace lccfs::fuse
