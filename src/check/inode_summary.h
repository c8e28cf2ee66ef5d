// SPDX-License-Identifier: LGPL-2.1-or-later
// What other objects are judged by, of an inode.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "format/records.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::check {

/// What could not be read is left out, so that no rule says anything about it.
struct InodeSummary {
  using State = format::StateRecord::Kind;

  std::optional<FileType> type;
  std::uint32_t nlink = 0;
  std::optional<State> state;
  std::set<Ino> parents;  ///< of all back-pointers

  bool is_directory() const { return type == FileType::directory; }
  bool is_dead() const { return state == State::dead; }
  bool is_sealed() const { return state == State::sealed; }
  /// As nearly all are: it says of itself that it has one name, in one directory, which must be as its only parent has
  /// it. What is not so plain is kept in memory.
  bool is_plain(Ino ino) const {
    return ino != root_ino && type && state == State::live && nlink == 1 && parents.size() == 1;
  }
};

/// The read that `summary_of` needs.
MetaRead summary_read(Ino ino);
/// Reads on where there are very many back-pointers. Blocks then: not to be called by a completion.
Result<InodeSummary> summary_of(ObjectStore& store, Ino ino, const MetaSnapshot& answer);
/// nullopt: there is no such inode. Blocks.
Result<std::optional<InodeSummary>> read_summary(ObjectStore& store, Ino ino);

}  // namespace lccfs::check
