// SPDX-License-Identifier: LGPL-2.1-or-later
// Volumes to damage and to repair, and what is in them: as objects, and as a new client sees it.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "repair/repair.h"
#include "scripted/scripted_store.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/hooks.h"
#include "support/namespace_calls.h"
#include "support/paths.h"
#include "support/test_volume.h"

namespace lccfs::test {

/// All objects of a cluster, without their versions, and without the traces that a collector tidies up.
struct Content {
  std::map<std::string, Bytes> data;
  struct Metadata {
    Bytes payload;
    std::map<std::string, Bytes> xattrs, keys;
    bool operator==(const Metadata&) const = default;
  };
  std::map<std::string, Metadata> metadata;
};

inline Content content_of(ScriptedCluster& cluster) {
  Content content;
  cluster.with_objects([&](scripted::Objects& objects) {
    content.data = objects.data();
    for (const auto& [name, object] : objects.metadata()) {
      auto& kept = content.metadata[name] = {object.payload, object.xattrs, object.keys};
      std::erase_if(kept.keys, [](const auto& key_and_value) {
        const auto& key = key_and_value.first;
        return key.starts_with("d/") || key.starts_with("x/") || key.starts_with("l/");
      });
    }
  });
  return content;
}

/// Names of objects that are not the same in both, or in one only.
inline std::vector<std::string> differing(const Content& a, const Content& b) {
  std::vector<std::string> names;
  const auto compare = [&names](const auto& first, const auto& second) {
    for (const auto& [name, value] : first) {
      const auto other = second.find(name);
      if (other == second.end() || !(other->second == value)) names.push_back(name);
    }
    for (const auto& [name, value] : second) {
      if (!first.contains(name)) names.push_back(name);
    }
  };
  compare(a.metadata, b.metadata);
  compare(a.data, b.data);
  std::ranges::sort(names);
  return names;
}

/// "kind: object", sorted.
inline std::vector<std::string> findings_of(ScriptedCluster& cluster) {
  std::vector<std::string> texts;
  for (const auto& finding : need(check::check_volume(*cluster.new_client()))) {
    texts.push_back(std::string(describe(finding.kind)) + ": " + finding.object);
  }
  std::ranges::sort(texts);
  return texts;
}

/// For the nth step of a repair. Not counted, but for the first few: the data of numbers that a dead client has taken
/// and used for no file, 250 removals that are all alike.
class NthStepOfRepair {
 public:
  NthStepOfRepair(unsigned n, Fault fault) : nth_(n, fault) {}
  Fault operator()(const StepInfo& info) const {
    constexpr Ino last_counted{16};
    const auto name = format::parse_object_name(info.object);
    const auto* data = name ? std::get_if<format::DataName>(&*name) : nullptr;
    return data != nullptr && data->ino > last_counted ? Fault{} : nth_(info);
  }
  bool reached() const { return nth_.reached(); }

 private:
  NthMutation nth_;
};

/// What became of each finding.
struct Told {
  repair::RepairReport report;
  std::vector<std::string> repaired, left;
};

inline Result<Told> try_repair(const std::shared_ptr<ScriptedClient>& client, Clock& clock,
                               repair::Orphans orphans = repair::Orphans::keep, std::size_t findings_at_once = 1000) {
  Told told;
  repair::RepairOptions options;
  options.findings_at_once = findings_at_once;
  options.orphans = orphans;
  options.on_repair = [&told](const check::Finding& finding, const repair::Repair& what) {
    const auto text = std::string(describe(finding.kind)) + ": " + finding.object;
    (what.done ? told.repaired : told.left).push_back(text + ": " + what.text);
  };
  LCCFS_TRY(told.report, repair::repair_volume(client, clock, options));
  return told;
}

inline std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += "  " + line + "\n";
  return text;
}

/// All of a file, by its number.
inline Result<std::string> content_of_file(FileSystem& fs, Ino ino) {
  LCCFS_TRY(const auto attributes, fs.get_attributes(ino));
  LCCFS_TRY(const auto opened, fs.open({}, ino, O_RDONLY));
  auto content = read_at(fs, opened.handle, 0, attributes.attributes.size_bytes);
  fs.release(opened.handle);
  return content;
}

/// The tree, with the bytes of its files, as a new client sees it.
inline std::vector<std::string> tree_of(ScriptedCluster& cluster, Clock& clock) {
  const auto client = cluster.new_client();
  const auto mounted = mount_volume(client, clock, {});
  if (!mounted) return {std::string("cannot be mounted: ") + describe(mounted.error().code)};
  const auto& fs = *mounted;
  auto lines = Paths(*fs).tree();
  for (auto& line : lines) {
    const auto path = line.substr(0, line.find(' '));
    const auto ino = Paths(*fs).find(path);
    const auto content = ino ? content_of_file(*fs, *ino) : failure(ErrorCode::not_found, path);
    if (content) line += " " + std::to_string(std::hash<std::string>{}(*content));
  }
  need(fs->unmount());
  return lines;
}

}  // namespace lccfs::test
