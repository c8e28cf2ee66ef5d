// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/tree_walk.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "format/object_names.h"
#include "survey/paths.h"

namespace lccfs::survey {

namespace {
constexpr std::size_t pages_at_once = 32;
constexpr std::size_t names_of_a_page = 512;
}  // namespace

struct TreeWalk::ReadEntry {
  std::string name;
  format::EntryRecord record;
  std::optional<Result<objects::Inode>> inode;  // nullopt: it has moved away
};

struct TreeWalk::ReadPage {
  Job job;
  std::optional<Error> error;  // of the directory
  std::vector<std::string> damage;
  std::vector<ReadEntry> entries;
  std::string next;  // key after which the next page begins; empty: this is the last one
};

void TreeWalk::enter(Ino directory, std::uint64_t tag) {
  if (entered_.insert(directory).second) line_.push_back({directory, tag, ""});
}

Result<> TreeWalk::run(const OnPage& on_page) {
  while (!line_.empty()) LCCFS_CHECK(walk_some(on_page));
  return {};
}

Result<> TreeWalk::walk_some(const OnPage& on_page) {
  std::vector<ReadPage> pages(std::min(pages_at_once, line_.size()));
  for (auto& page : pages) {
    page.job = std::move(line_.front());
    line_.pop_front();
  }
  for_each_in_parallel(pages.size(), jobs_, [&](std::size_t i) { read_names(pages[i]); });
  for (auto rest = std::span(pages); !rest.empty();) {
    const auto some = rest.first(count_of_some(rest));
    read_inodes(some);
    for (auto& page : some) {
      LCCFS_TRY(const auto walked, judge(std::move(page)));
      LCCFS_CHECK(on_page(walked));
    }
    rest = rest.subspan(some.size());
  }
  return {};
}

/// One at least: no page has more names.
std::size_t TreeWalk::count_of_some(std::span<const ReadPage> pages) const {
  std::size_t count = 0, inodes = 0;
  while (count < pages.size()) {
    inodes += pages[count].entries.size();
    if (inodes > inodes_at_once_) break;
    ++count;
  }
  return count;
}

void TreeWalk::read_names(ReadPage& page) const {
  const auto object = format::inode_object(page.job.directory);
  const auto limit = static_cast<std::uint32_t>(std::min(names_of_a_page, inodes_at_once_));
  const auto read = objects::find_object(query_, {.object = object, .ranges = {{"n/", page.job.after, limit}}});
  if (!read) page.error = read.error();
  if (!read || !*read) return;
  const auto& keys = (*read)->ranges.front();
  for (const auto& [key, value] : keys.entries) {
    const auto parsed = format::parse_entry_key(key);
    auto record = objects::decode_part<format::EntryRecord>(object, key, value);
    const bool is_name = parsed && parsed->name != "." && parsed->name != "..";
    if (!is_name || parsed->hash != format::name_hash(uuid_, parsed->name)) {
      page.damage.push_back(std::string(object).append(": ").append(key).append(": not the key of a name"));
    } else if (!record) {
      page.damage.push_back(record.error().context);
    } else {
      page.entries.push_back({parsed->name, *record, std::nullopt});
    }
  }
  if (keys.more && !keys.entries.empty()) page.next = keys.entries.back().first;
}

void TreeWalk::read_inodes(std::span<ReadPage> pages) const {
  std::vector<ReadEntry*> entries;
  for (auto& page : pages) {
    for (auto& entry : page.entries) entries.push_back(&entry);
  }
  for_each_in_parallel(entries.size(), jobs_, [&](std::size_t i) {
    ReadEntry& entry = *entries[i];
    if (entry.record.mark) {
      const auto is_away = has_moved_away(query_, *entry.record.mark);
      if (!is_away) entry.inode = std::unexpected(is_away.error());
      if (!is_away || *is_away) return;
    }
    entry.inode = objects::read_inode(query_, entry.record.ino, parts_);
  });
}

/// What is gone or dead has no name. Damage is told; any other error ends the walk.
Result<WalkedPage> TreeWalk::judge(ReadPage page) {
  WalkedPage walked{page.job.directory, page.job.tag, {}};
  if (page.error && !objects::is_damage(*page.error)) return std::unexpected(*page.error);
  if (page.error) on_damage_(page.error->context);
  std::ranges::for_each(page.damage, on_damage_);
  for (auto& entry : page.entries) {
    if (!entry.inode) continue;
    if (auto& inode = *entry.inode) {
      if (inode->live()) walked.entries.push_back({std::move(entry.name), entry.record, std::move(*inode)});
    } else if (objects::is_damage(inode.error())) {
      on_damage_(inode.error().context);
    } else if (inode.error().code != ErrorCode::not_found) {
      return std::unexpected(inode.error());
    }
  }
  if (!page.next.empty()) line_.push_front({page.job.directory, page.job.tag, std::move(page.next)});
  return walked;
}

}  // namespace lccfs::survey
