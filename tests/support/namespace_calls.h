// SPDX-License-Identifier: LGPL-2.1-or-later
// Names in short, and what must be true of all objects of a volume when nothing is in flight.
#pragma once

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/file_system.h"
#include "scripted/scripted_store.h"
#include "support/hooks.h"

namespace lccfs::test {

template <class T>
std::optional<ErrorCode> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

inline Ino make_file(FileSystem& fs, Ino parent, const std::string& name) {
  return need(fs.make_node({}, parent, name, {FileType::regular, 0644, 0, {}})).attributes.ino;
}
inline Ino make_dir(FileSystem& fs, Ino parent, const std::string& name, std::uint32_t mode = 0755) {
  return need(fs.make_node({}, parent, name, {FileType::directory, mode, 0, {}})).attributes.ino;
}
inline std::optional<Ino> ino_of(FileSystem& fs, Ino parent, const std::string& name) {
  const auto found = fs.lookup(parent, name);
  return found ? std::optional(found->attributes.ino) : std::nullopt;
}

/// What the thread that receives requests may answer, once a completion has come.
inline std::optional<Result<EntryReply>> known_entry(FileSystem& fs, Ino parent, const std::string& name) {
  std::promise<std::optional<Result<EntryReply>>> promise;
  auto answer = promise.get_future();
  fs.known_entry(parent, name, [promise = std::move(promise)](std::optional<Result<EntryReply>> known) mutable {
    promise.set_value(std::move(known));
  });
  return answer.get();
}

/// The whole listing in its order, `at_once` entries a call.
inline std::vector<DirectoryEntry> listing(FileSystem& fs, Ino directory, std::size_t at_once = 100) {
  const auto handle = need(fs.open_directory(directory));
  std::vector<DirectoryEntry> all;
  for (std::uint64_t cookie = 0;; cookie = all.back().cookie) {
    const auto some = need(fs.read_directory(handle, cookie, at_once));
    if (some.empty()) break;
    all.insert(all.end(), some.begin(), some.end());
  }
  fs.release_directory(handle);
  return all;
}

/// The names in it, sorted, without "." and "..".
inline std::vector<std::string> names_in(FileSystem& fs, Ino directory) {
  std::vector<std::string> names;
  for (const auto& entry : listing(fs, directory)) {
    if (entry.name != "." && entry.name != "..") names.push_back(entry.name);
  }
  std::ranges::sort(names);
  return names;
}

/// As a trace says it.
inline std::string step_on(const char* step, Ino ino) { return std::string(step) + " " + format::inode_object(ino); }

inline std::optional<scripted::MetaObject> inode_object_of(ScriptedCluster& cluster, Ino ino) {
  std::optional<scripted::MetaObject> found;
  cluster.with_objects([&](scripted::Objects& objects) {
    const auto object = objects.metadata().find(format::inode_object(ino));
    if (object != objects.metadata().end()) found = object->second;
  });
  return found;
}
inline format::StateRecord::Kind state_of(const scripted::MetaObject& object) {
  return need(format::decode<format::StateRecord>(object.xattrs.at(format::xattr::state))).kind;
}
inline bool has_keys(const scripted::MetaObject& object, const std::string& prefix) {
  const auto found = object.keys.lower_bound(prefix);
  return found != object.keys.end() && found->first.starts_with(prefix);
}

/// What is wrong with the names of a quiet volume: an entry without its live inode or its reverse key, a reverse key
/// without its entry, a wrong count of subdirectories, a seal on a directory whose name is still there.
inline std::vector<std::string> problems(ScriptedCluster& cluster) {
  std::vector<std::string> wrong;
  const auto check_directory = [&wrong](const scripted::Objects& objects, const std::string& object,
                                        const scripted::MetaObject& directory) {
    std::size_t entries = 0, reverse_keys = 0, subdirectories = 0;
    for (const auto& [key, value] : directory.keys) {
      if (format::parse_reverse_key(key)) ++reverse_keys;
      const auto name = format::parse_entry_key(key);
      if (!name) continue;
      ++entries;
      const auto entry = need(format::decode<format::EntryRecord>(value));
      if (entry.type == FileType::directory) ++subdirectories;
      if (!directory.keys.contains(format::reverse_key(entry.ino, name->name))) {
        wrong.push_back(object + ": no reverse key of " + name->name);
      }
      const auto target = objects.metadata().find(format::inode_object(entry.ino));
      if (target == objects.metadata().end()) {
        wrong.push_back(object + ": dangling " + name->name);
      } else if (state_of(target->second) != format::StateRecord::Kind::live) {
        wrong.push_back(object + ": not live: " + name->name);
      }
    }
    if (entries != reverse_keys) wrong.push_back(object + ": reverse keys without entries");
    const auto nsub = directory.xattrs.find(format::xattr::nsub);
    if (nsub == directory.xattrs.end()) return;
    if (need(format::decode<format::NumberRecord>(nsub->second)).value != subdirectories) {
      wrong.push_back(object + ": wrong nsub");
    }
  };
  cluster.with_objects([&](scripted::Objects& objects) {
    for (const auto& [object, content] : objects.metadata()) {
      if (object.starts_with("Inode.")) check_directory(objects, object, content);
    }
  });
  return wrong;
}

}  // namespace lccfs::test
