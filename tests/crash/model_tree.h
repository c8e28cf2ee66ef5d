// SPDX-License-Identifier: LGPL-2.1-or-later
// A file system that does a call at once and whole: what the real one is judged by. A value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crash/call.h"

namespace lccfs::crash {

class ModelTree {
 public:
  using Id = unsigned;

  ModelTree() { nodes_[root] = {}; }

  /// "ok", or the meaning of the error, as text_of(Result) has it.
  std::string perform(const Call& call);
  /// A path is looked up before the call acts on what was found there: the directory of a name that is made or removed
  /// (but for names in /d, where clients stay), or the inode that is changed; of a link the inode, and then that
  /// directory. `found`: what was looked up already. nullopt: nothing is left to look up, or nothing found.
  std::optional<Id> look_up(const Call& call, const std::vector<Id>& found = {}) const;
  /// The rest of the call, on what look_up found: perhaps it has no name any more. `answered`: what the real one says
  /// decides where two answers are right (a link of what has just lost its last name).
  std::string perform_on(const std::vector<Id>& found, const Call& call, const std::string& answered = "ok");
  std::optional<Id> id_of(const std::string& path) const;
  /// Of a file.
  const std::string& bytes_of(Id id) const { return nodes_.at(id).bytes; }
  /// Of all files that have a name.
  std::vector<Id> files() const;
  /// A call without its growth. false: it changes nothing of what is there, or, if it is a write, has no growth.
  bool change_within(const Call& call);
  /// As test::Paths::tree.
  std::vector<std::string> lines() const;
  /// All there is, what has no name any more too: another tree has another text.
  std::string text() const;

 private:
  struct Node {
    FileType type = FileType::directory;
    std::uint32_t mode = 0755;
    bool is_removed = false;
    std::string target, bytes;
    std::map<std::string, Bytes> xattrs;
    std::map<std::string, Id> names;
    bool is_directory() const { return type == FileType::directory; }
  };
  static constexpr Id root = 0;

  Result<Id> find(const std::string& path) const;
  Result<std::string> act(const Call& call);
  Result<> act_in(Id directory, const Call& call);
  Result<> make(Node& directory, const Call& call);
  Result<> link(Id id, std::optional<Id> parent, const Call& call);
  unsigned names_of(Id id) const;
  Result<> remove(Node& directory, const Call& call);
  bool is_inside(Id id, Id above) const;
  Result<> rename(Node& directory, Id to_directory, const Call& call);
  Result<std::string> change(Node& node, const Call& call) const;
  Result<std::string> change_bytes(Node& node, const Call& call) const;
  Result<std::string> copied_by(const Node& target, const Call& call) const;
  void list(const Node& directory, const std::string& path, std::vector<std::string>& lines) const;
  std::string line_of(Id id, const std::string& path) const;

  std::map<Id, Node> nodes_;  // those that are removed, too
};

}  // namespace lccfs::crash
