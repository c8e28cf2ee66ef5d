// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers of links, names of directories and paths from the root, after the matching (check/namespace_check.h).
#include <algorithm>
#include <string>
#include <unordered_map>

#include "check/namespace_check.h"
#include "format/object_names.h"

namespace lccfs::check {

// ---- doubts

Result<> UnlessDetached::add_links(Ino ino, const InodeSummary& inode, std::uint64_t names) {
  if (ino == root_ino || !inode.type || (names != 0 && names == inode.nlink)) return {};
  // Of a directory with a further name that name is the finding (check_several_names).
  if (names > 1 && inode.is_directory()) return {};
  if (names == 0) return add_orphan(ino, inode.nlink, what_explains(ino, inode));
  const auto unless = inode.is_sealed() ? Unless::queued_or_sealed : Unless::queued;
  return add({.ino = ino, .kind = Kind::wrong_links, .nlink = inode.nlink, .names = names}, unless);
}

Result<> UnlessDetached::add(Doubt doubt, Unless unless) {
  const auto& queue = check_.facts.queue;
  if (unless != Unless::nothing && queue.leads_to(doubt.ino, unless == Unless::queued_or_sealed)) return {};
  doubt.unless = unless;
  const Lock lock(mutex_);
  doubts_.push_back(doubt);
  return doubts_.size() < room_ ? Result<>() : settle();
}

Result<> UnlessDetached::finish() {
  const Lock lock(mutex_);
  return settle();
}

std::size_t UnlessDetached::held() const {
  const Lock lock(mutex_);
  return doubts_.size();
}

Result<> UnlessDetached::settle() {
  if (doubts_.empty()) return {};
  std::ranges::sort(doubts_);
  std::vector<bool> explained(doubts_.size());
  const auto explain = [&](const std::vector<Ino>& detached) REQUIRES(mutex_) -> Result<> {
    for (const Ino ino : detached) {
      for (const auto& doubt : std::ranges::equal_range(doubts_, ino, {}, &Doubt::ino)) {
        explained[static_cast<std::size_t>(&doubt - doubts_.data())] = true;
      }
    }
    return {};
  };
  for (const auto& [directory, record] : check_.index.directories) {
    if (!record.has_detached || !check_.facts.queue.names_directory(directory)) continue;
    LCCFS_CHECK(check_.directories.for_each_detached(directory, explain));
  }
  for (std::size_t i = 0; i < doubts_.size(); ++i) {
    if (!explained[i] || doubts_[i].unless == Unless::nothing) check_.sink.report(finding_of(doubts_[i]));
  }
  doubts_.clear();
  return {};
}

Finding UnlessDetached::finding_of(const Doubt& doubt) {
  Finding finding{.kind = doubt.kind, .object = format::inode_object(doubt.ino), .text = {}, .number = doubt.names};
  if (doubt.kind == Kind::lost_trace && doubt.names != 0) {
    finding.text = "points back to a directory that was lost, and no item leads there";
  } else if (doubt.kind == Kind::lost_trace) {
    finding.text = "is sealed, and no item leads there";
  } else if (doubt.kind == Kind::unreachable) {
    finding.text = "it has content, and no path from the root";
  } else {
    finding.text = std::to_string(doubt.names) + " entries, nlink " + std::to_string(doubt.nlink);
  }
  return finding;
}

// ---- numbers of links

namespace {

Result<std::uint64_t> count_all_names(const NamespaceCheck& check, Ino ino, const std::set<Ino>& directories) {
  std::uint64_t names = 0;
  for (const Ino directory : directories) {
    LCCFS_TRY(const auto counts, check.directories.count_names(directory, {&ino, 1}));
    names += counts.front();
  }
  return names;
}

}  // namespace

Result<> check_links(const NamespaceCheck& check, const UnclearInodes& unclear, UnlessDetached& findings) {
  for (const auto& [ino, special] : check.index.specials) {
    LCCFS_CHECK(findings.add_links(ino, special.summary, special.names));
    const bool all_named = special.names != 0 && special.names == special.summary.nlink;
    if (all_named && check.index.points_to_lost_directory(ino, special)) {
      LCCFS_CHECK(findings.add_lost_pointer(ino, special.names));
    }
    if (special.summary.is_sealed()) LCCFS_CHECK(findings.add_seal(ino));
  }
  const std::vector<std::pair<Ino, std::set<Ino>>> to_count(unclear.begin(), unclear.end());
  return for_each_number(check.store, check.effort, to_count.size(), [&](ReadWindow&, std::size_t i) -> Result<> {
    auto [ino, directories] = to_count[i];
    if (check.facts.queue.leads_to(ino)) return {};
    LCCFS_TRY(const auto found, objects::find_object(objects::reader_of(check.store), summary_read(ino), 1));
    if (!found) return {};
    const auto inode = summary_of(*found);
    directories.insert(inode.parents.begin(), inode.parents.end());
    LCCFS_TRY(const auto names, count_all_names(check, ino, directories));
    return findings.add_links(ino, inode, names);
  });
}

// ---- names of directories, and paths

namespace {

auto names_of(const NamespaceIndex& index, Ino directory) {
  return std::ranges::equal_range(index.names, directory, {}, &DirectoryName::directory);
}

/// Whether the sums prove that its only parent names it.
bool is_in_parent(const NamespaceIndex& index, const DirectoryRecord& record) {
  const auto parent = index.directories.find(record.parent);
  return parent != index.directories.end() && parent->second.seen && parent->second.in_order && !record.lost_name;
}

/// 0: no entry names it.
Ino some_holder(const NamespaceIndex& index, Ino directory) {
  const auto& record = index.directories.at(directory);
  if (is_in_parent(index, record)) return record.parent;
  const auto names = names_of(index, directory);
  return names.empty() ? Ino{} : names.front().holder;
}

/// The one to be kept is where the directory points back to first, then where it points back to at all: a repair that
/// was cut has set the first back-pointer, and the others are of names that were to go.
void report_further_names(const NamespaceCheck& check, Ino ino, const DirectoryRecord& record) {
  std::vector<DirectoryName> names;
  std::ranges::copy(names_of(check.index, ino), std::back_inserter(names));
  const bool one_in_parent = is_in_parent(check.index, record);
  const auto total = names.size() + (one_in_parent ? 1 : 0);
  const auto special = check.index.specials.find(ino);
  const auto doubt_in = [&](const DirectoryName& name) {
    if (special == check.index.specials.end()) return name.holder == record.parent ? 0 : 2;
    const auto& summary = special->second.summary;
    if (name.holder == summary.first_parent) return 0;
    return summary.parents.contains(name.holder) ? 1 : 2;
  };
  std::ranges::stable_sort(names, {}, doubt_in);
  const bool all_are_further = one_in_parent || ino == root_ino;
  for (std::size_t i = all_are_further ? 0 : 1; i < names.size(); ++i) {
    check.sink.report(finding_on_name(Kind::several_names, names[i].holder, names[i].name, ino,
                                      "entry \"" + names[i].name + "\" is one of " + std::to_string(total) +
                                          " for the directory " + format::inode_object(ino)));
  }
}

void mark_reached(NamespaceIndex& index) {
  struct Edge {
    Ino holder, directory;
    auto operator<=>(const Edge&) const = default;
  };
  std::vector<Edge> edges;
  for (const auto& [ino, record] : index.directories) {
    if (is_in_parent(index, record)) edges.push_back({record.parent, ino});
  }
  for (const auto& name : index.names) edges.push_back({name.holder, name.directory});
  std::ranges::sort(edges);
  std::vector<Ino> to_visit{root_ino};
  while (!to_visit.empty()) {
    const Ino ino = to_visit.back();
    to_visit.pop_back();
    const auto found = index.directories.find(ino);
    if (found == index.directories.end() || found->second.reached) continue;
    found->second.reached = true;
    for (const auto& edge : std::ranges::equal_range(edges, ino, {}, &Edge::holder)) to_visit.push_back(edge.directory);
  }
}

/// Walks up from lost directories, each once.
class LostTrees {
 public:
  LostTrees(const NamespaceCheck& check, UnlessDetached& findings) : check_(check), findings_(findings) {}

  Result<> walk_up(Ino from) {
    ++walk_;
    Ino ino = from;
    for (;;) {
      const auto [met, first_time] = met_in_walk_.emplace(ino, walk_);
      if (!first_time) {
        if (met->second == walk_) report_loop(ino);
        return {};
      }
      const Ino holder = some_holder(check_.index, ino);
      if (holder == Ino{}) return report_top(ino);
      ino = holder;
    }
  }

 private:
  void report_loop(Ino from) {
    Ino lowest = from;
    for (Ino ino = some_holder(check_.index, from); ino != from; ino = some_holder(check_.index, ino)) {
      lowest = std::min(lowest, ino);
    }
    check_.sink.report({Kind::unreachable, format::inode_object(lowest), "its path leads back to itself"});
  }
  Result<> report_top(Ino ino) {
    const auto& record = check_.index.directories.at(ino);
    if (!record.is_directory || record.entries.count == 0) return {};
    LCCFS_TRY(const auto found, objects::find_object(objects::reader_of(check_.store), summary_read(ino), 1));
    if (!found) return {};
    return findings_.add_unreachable(ino, findings_.what_explains(ino, summary_of(*found)));
  }

  const NamespaceCheck& check_;
  UnlessDetached& findings_;
  std::unordered_map<Ino, unsigned> met_in_walk_;
  unsigned walk_ = 0;
};

}  // namespace

void check_several_names(const NamespaceCheck& check) {
  Ino last;
  for (const auto& name : check.index.names) {
    if (name.directory == last) continue;
    last = name.directory;
    const auto& record = check.index.directories.at(last);
    if (record.is_directory) report_further_names(check, last, record);
  }
}

Result<> check_paths(const NamespaceCheck& check, UnlessDetached& findings) {
  mark_reached(check.index);
  std::vector<Ino> lost;
  for (const auto& [ino, record] : check.index.directories) {
    if (record.seen && !record.reached && ino != root_ino) lost.push_back(ino);
  }
  std::ranges::sort(lost);
  LostTrees trees(check, findings);
  for (const Ino ino : lost) LCCFS_CHECK(trees.walk_up(ino));
  return {};
}

}  // namespace lccfs::check
