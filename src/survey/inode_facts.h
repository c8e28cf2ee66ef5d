// SPDX-License-Identifier: LGPL-2.1-or-later
// All that is known of one inode, as it is stored, and which instances say that it is open there. Blocking; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"
#include "objects/inode.h"

namespace lccfs::survey {

struct NameOf {
  Ino directory;
  std::string name;
  std::string path;            ///< from the root; empty: there is none, or it is not known
  std::string path_not_known;  ///< why; empty: it is known, or that there is none
};

/// Of a directory.
struct DirectoryFacts {
  std::uint64_t entries = 0;
  std::uint64_t marked = 0;  ///< of these: about to move to another directory
  std::uint64_t detached = 0;
  std::uint64_t decisions = 0;
};

struct AttributeFacts {
  std::string name;
  std::size_t size_bytes = 0;
};

/// What a client said to a liveness poll.
struct OpenAt {
  InstanceId instance;
  std::string host, mount_id;
  bool answered = false;  ///< otherwise it is live by its record, and it is not known what it has open
};

struct InodeFacts {
  objects::Inode inode;
  std::vector<objects::BackPointer> pointers;  ///< directories that may name it
  std::vector<NameOf> names;                   ///< what they do name it
  std::vector<AttributeFacts> attributes;
  std::optional<DirectoryFacts> directory;
  std::optional<format::LockStateRecord> lock_state;
  std::map<InstanceId, format::LocksRecord> locks;
  /// That have it open, and those that did not answer. nullopt: nobody was asked, of a directory that is not dead.
  std::optional<std::vector<OpenAt>> open_at;
};

/// not_found: there is no such inode object. corrupt: the error names the object and its part.
Result<InodeFacts> read_inode_facts(ObjectStore& store, Ino ino);

}  // namespace lccfs::survey
