// SPDX-License-Identifier: LGPL-2.1-or-later
// Entries against the inodes that they name (check/namespace_check.h).
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "check/namespace_check.h"
#include "format/object_names.h"

namespace lccfs::check {

namespace {

class Matcher {
 public:
  Matcher(const NamespaceCheck& check, UnlessDetached& findings) : check_(check), findings_(findings) {}

  Result<UnclearInodes> run() {
    std::vector<Ino> suspicious;
    for (auto& [ino, record] : check_.index.directories) {
      record.in_order = record.matches();
      if (!record.in_order || record.names_differ) suspicious.push_back(ino);
    }
    std::ranges::sort(suspicious);
    std::ranges::sort(check_.index.queued);
    LCCFS_CHECK(for_each_number(check_.store, check_.effort, suspicious.size(),
                                [&](ReadWindow& window, std::size_t i) { return examine(window, suspicious[i]); }));
    Directories unexplained, lost_detached;
    {
      const Lock lock(mutex_);
      unexplained = unexplained_;
      lost_detached = lost_detached_;
    }
    LCCFS_CHECK(look_at_lost_detached(lost_detached, unexplained));
    if (!unexplained.empty()) LCCFS_CHECK(look_for_unexplained(unexplained));
    std::ranges::sort(check_.index.names);
    const Lock lock(mutex_);
    return std::move(unclear_);
  }

 private:
  using Directories = std::unordered_set<Ino>;
  using OnNameless = std::function<Result<>(Ino, FileType)>;

  Result<> examine(ReadWindow& window, Ino directory) {
    auto& record = check_.index.directories.at(directory);
    if (record.names_differ) LCCFS_CHECK(check_.directories.check_reverse_keys(directory, check_.sink));
    if (record.in_order) return {};
    if (!record.seen) return look_for_claims_of(directory), Result<>();
    LCCFS_TRY(const auto of_specials, look_at_specials(directory));
    const LinkSum of_plain = record.entries - of_specials;
    record.in_order = of_plain == record.claims;
    if (record.in_order) return {};
    LCCFS_TRY(const auto nameless, find_nameless(window, directory));
    record.in_order = of_plain == record.claims - nameless;
    return record.in_order ? Result<>{} : match_one_by_one(window, directory, nameless);
  }

  void look_for_claims_of(Ino directory) {
    const Lock lock(mutex_);
    unexplained_.insert(directory);
  }

  /// Entries for inodes that are in memory. The sum of their links.
  Result<LinkSum> look_at_specials(Ino directory) {
    LinkSum sum;
    LCCFS_CHECK(check_.directories.for_each_page(directory, [&](const std::vector<NamedEntry>& entries) -> Result<> {
      for (const auto& entry : entries) {
        const auto special = check_.index.specials.find(entry.record.ino);
        if (special == check_.index.specials.end()) continue;
        sum += link(directory, entry.record.ino, entry.record.type);
        judge_entry(directory, entry, &special->second.summary);
        LCCFS_TRY(const bool moved_away, has_moved_away(entry));
        if (!moved_away) remember_name(directory, entry);
        const Lock lock(check_.index.mutex);
        ++special->second.names;
        if (directory == root_ino) special->second.is_in_root = true;
      }
      return {};
    }));
    return sum;
  }

  // -- plain inodes that claim the directory, and lost their name there or never got it

  Result<LinkSum> find_nameless(ReadWindow& window, Ino directory) {
    LCCFS_TRY(auto sum, find_queued_nameless(directory));
    if (!check_.index.directories.at(directory).has_detached) return sum;
    LCCFS_CHECK(for_each_detached_nameless(window, directory, [&](Ino ino, FileType type) -> Result<> {
      sum += link(directory, ino, type);
      note_lost_name(ino);
      return {};
    }));
    const Lock lock(mutex_);
    if (!check_.facts.queue.names_directory(directory)) lost_detached_.insert(directory);
    return sum;
  }

  Result<LinkSum> find_queued_nameless(Ino directory) {
    const auto claims = std::ranges::equal_range(check_.index.queued, directory, {}, &QueuedClaim::directory);
    std::vector<Ino> inodes;
    for (const auto& claim : claims) inodes.push_back(claim.ino);
    LCCFS_TRY(const auto counts, check_.directories.count_names(directory, inodes));
    LinkSum sum;
    for (std::size_t i = 0; i < inodes.size(); ++i) {
      const auto& claim = claims[static_cast<std::ptrdiff_t>(i)];
      if (counts[i] != 0 || check_.index.was_in_lost_root(claim.ino, claim.oldest_in_root)) continue;
      sum += link(directory, claim.ino, claim.type);
      note_lost_name(inodes[i]);
    }
    return sum;
  }

  Result<> for_each_detached_nameless(ReadWindow& window, Ino directory, const OnNameless& work) {
    const auto& queue = check_.facts.queue;
    const auto look_at_page = [&](const std::vector<Ino>& page) -> Result<> {
      std::vector<Ino> detached;
      std::ranges::copy_if(page, std::back_inserter(detached),
                           [&](Ino ino) { return !check_.index.specials.contains(ino) && !queue.leads_to(ino); });
      LCCFS_TRY(const auto counts, check_.directories.count_names(directory, detached));
      for (std::size_t i = 0; i < detached.size(); ++i) {
        if (counts[i] != 0) continue;
        const auto take = [&, ino = detached[i]](const ReadWindow::Found& answer) -> Result<> {
          if (!answer) return {};
          const auto inode = summary_of(*answer);
          if (!inode.is_plain(ino) || !inode.parents.contains(directory)) return {};
          return work(ino, *inode.type);
        };
        LCCFS_CHECK(window.query(summary_read(detached[i]), take, 1));
      }
      return window.finish();
    };
    return check_.directories.for_each_detached(directory, look_at_page);
  }

  /// No item leads to these d/ keys, so none of their inodes is accounted for. Of directories that others claim, too,
  /// all inodes are looked for.
  Result<> look_at_lost_detached(const Directories& lost_detached, const Directories& unexplained) {
    std::vector<Ino> directories;
    std::ranges::copy_if(lost_detached, std::back_inserter(directories),
                         [&](Ino directory) { return !unexplained.contains(directory); });
    return for_each_number(check_.store, check_.effort, directories.size(), [&](ReadWindow& window, std::size_t i) {
      return for_each_detached_nameless(window, directories[i], [&, this](Ino ino, FileType) -> Result<> {
        return is_named_elsewhere(ino) ? Result<>() : findings_.add_orphan(ino, 1, UnlessDetached::Unless::queued);
      });
    });
  }

  // -- all others

  Result<> match_one_by_one(ReadWindow& window, Ino directory, const LinkSum& nameless) {
    std::vector<std::pair<Ino, FileType>> matched;
    const auto look_at = [&](const NamedEntry& entry) {
      return window.query(summary_read(entry.record.ino), [&, this](const ReadWindow::Found& answer) -> Result<> {
        const Ino ino = entry.record.ino;
        if (!answer) {
          judge_entry(directory, entry, nullptr);
          return {};
        }
        const auto inode = summary_of(*answer);
        judge_entry(directory, entry, &inode);
        remember_name(directory, entry);
        if (inode.is_plain(ino) && inode.parents.contains(directory)) {
          matched.emplace_back(ino, *inode.type);
        } else {
          remember_unclear(ino, directory);
        }
        return {};
      });
    };
    const auto look_at_page = [&](const std::vector<NamedEntry>& entries) -> Result<> {
      for (const auto& entry : entries) {
        if (!check_.index.specials.contains(entry.record.ino)) LCCFS_CHECK(look_at(entry));
      }
      return window.finish();
    };
    LCCFS_CHECK(check_.directories.for_each_page(directory, look_at_page));
    std::ranges::sort(matched);
    LinkSum sum;
    for (std::size_t i = 0; i < matched.size(); ++i) {
      const auto [ino, type] = matched[i];
      const bool again = i > 0 && matched[i - 1].first == ino;
      if (again) remember_unclear(ino, directory);
      if (!again) sum += link(directory, ino, type);
    }
    sum += nameless;
    if (sum != check_.index.directories.at(directory).claims) look_for_claims_of(directory);
    return {};
  }

  Result<> look_for_unexplained(const Directories& unexplained) {
    return for_each_name(check_.store, check_.effort, [&](ReadWindow& window, const std::vector<std::string>& names) {
      return look_for_unexplained_among(window, names, unexplained);
    });
  }

  Result<> look_for_unexplained_among(ReadWindow& window, const std::vector<std::string>& names,
                                      const Directories& unexplained) {
    using Unless = UnlessDetached::Unless;
    std::map<Ino, std::vector<Ino>> claims;  // by directory
    std::map<Ino, Unless> unless;
    for (const auto& name : names) {
      const auto parsed = format::parse_object_name(name);
      const auto* inode_name = parsed ? std::get_if<format::InodeName>(&*parsed) : nullptr;
      if (inode_name == nullptr || check_.index.specials.contains(inode_name->ino)) continue;
      const auto take = [&, ino = inode_name->ino](const ReadWindow::Found& answer) -> Result<> {
        if (!answer) return {};
        const auto inode = summary_of(*answer);
        if (!inode.is_plain(ino)) return {};
        const Ino parent = *inode.parents.begin();
        if (!unexplained.contains(parent)) return {};
        claims[parent].push_back(ino);
        unless[ino] = findings_.what_explains(ino, inode);
        return {};
      };
      LCCFS_CHECK(window.query(summary_read(inode_name->ino), take, 1));
    }
    LCCFS_CHECK(window.finish());
    for (const auto& [directory, inodes] : claims) {
      LCCFS_TRY(const auto counts, check_.directories.count_names(directory, inodes));
      for (std::size_t i = 0; i < inodes.size(); ++i) {
        if (counts[i] != 0) continue;
        note_lost_name(inodes[i]);
        if (!is_named_elsewhere(inodes[i])) LCCFS_CHECK(findings_.add_orphan(inodes[i], 1, unless.at(inodes[i])));
      }
    }
    return {};
  }

  void judge_entry(Ino directory, const NamedEntry& entry, const InodeSummary* inode) {
    const auto what = entry_text(entry.name, entry.record.ino);
    const auto report = [&](Kind kind, const char* why) {
      check_.sink.report(finding_on_name(kind, directory, entry.name, entry.record.ino, what + why));
    };
    if (inode == nullptr) return report(Kind::dangling_entry, ", which is not there");
    if (inode->is_dead()) {
      report(Kind::dangling_entry, ", which is dead");
    } else if (inode->type && *inode->type != entry.record.type) {
      report(Kind::wrong_type, ", which is of another type");
    }
    if (inode->parents.contains(directory)) return;
    check_.sink.report({.kind = Kind::no_back_pointer,
                        .object = format::inode_object(entry.record.ino),
                        .text = format::inode_object(directory) + " has it as \"" + entry.name + "\"",
                        .target = directory});
  }

  /// Of a directory: then this is no name, and not one of two. (Another inode may have several names, and what is
  /// counted of one that moves does not matter: the queue leads to it.)
  Result<bool> has_moved_away(const NamedEntry& entry) {
    const auto& mark = entry.record.mark;
    if (!mark || entry.record.type != FileType::directory) return false;
    const auto key = format::decision_key(mark->token);
    LCCFS_TRY(const auto found, objects::find_object(objects::reader_of(check_.store),
                                                     {.object = format::inode_object(mark->to), .keys = {key}}));
    if (!found || !found->keys.contains(key)) return false;
    const auto decision = format::decode<format::DecisionRecord>(found->keys.at(key));
    return decision && decision->kind == format::DecisionRecord::Kind::committed;
  }

  void remember_name(Ino directory, const NamedEntry& entry) {
    if (!check_.index.is_known_directory(entry.record.ino)) return;
    const Lock lock(check_.index.mutex);
    check_.index.names.push_back({entry.record.ino, directory, entry.name});
  }

  void remember_unclear(Ino ino, Ino met_in) {
    const Lock lock(mutex_);
    unclear_[ino].insert(met_in);
  }

  /// All entries that are not where their inode points were met by now.
  bool is_named_elsewhere(Ino ino) {
    const Lock lock(mutex_);
    return unclear_.contains(ino);
  }

  void note_lost_name(Ino ino) {
    const auto found = check_.index.directories.find(ino);
    if (found != check_.index.directories.end()) found->second.lost_name = true;
  }

  const NamespaceCheck check_;
  UnlessDetached& findings_;
  Mutex mutex_;
  UnclearInodes unclear_ GUARDED_BY(mutex_);
  /// Directories that inodes claim that were not found yet.
  Directories unexplained_ GUARDED_BY(mutex_);
  /// Directories with d/ keys that the queue does not name.
  Directories lost_detached_ GUARDED_BY(mutex_);
};

}  // namespace

Result<UnclearInodes> match_entries(const NamespaceCheck& check, UnlessDetached& findings) {
  return Matcher(check, findings).run();
}

}  // namespace lccfs::check
