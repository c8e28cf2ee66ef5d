// SPDX-License-Identifier: LGPL-2.1-or-later
// /lost+found: names for what has none. Blocking; one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "instance/instance.h"
#include "repair/objects.h"

namespace lccfs::repair {

class LostAndFound {
 public:
  LostAndFound(Instance& instance, Objects& objects) : instance_(instance), objects_(objects) {}

  /// The directory; made if it is not there.
  Result<Ino> directory();
  /// nullopt: it is not there.
  Result<std::optional<Ino>> existing();

  /// Points the inode back here, and still to where it pointed and to those that hold its `other_names`; then names it
  /// here, and leaves it to a collector to trim the rest. nullopt: it has changed since it was read. Otherwise the path.
  Result<std::optional<std::string>> adopt(const Object& inode, Ino ino, const std::string& name,
                                           const std::vector<Holder>& other_names);

  /// Names an inode that points back here already: with this name cut to what one may have, or one like it.
  Result<std::string> put(Ino ino, FileType type, Token token, const std::string& name);

  /// The first file here of that name, or of one that `put` would have given in its place, that is the one looked for:
  /// its path.
  using IsIt = std::function<Result<bool>(Ino)>;
  Result<std::optional<std::string>> find(const std::string& name, const IsIt& is_it);

 private:
  Result<std::optional<Ino>> find_in(Ino directory, const std::string& name, FileType type);
  Result<> look_for_directory();
  std::string path_of(const std::string& name) const { return "/" + name_ + "/" + name; }
  Result<Ino> make(const std::string& name);
  Result<bool> add_entry(Ino directory, const std::string& name, const format::EntryRecord& entry);

  Instance& instance_;
  Objects& objects_;
  std::optional<Ino> known_;
  std::string name_;  // of the directory, or one that is free for it
};

}  // namespace lccfs::repair
