// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Listing: reads only, one for each 1,024 entries, the first when the directory is opened: where it is gone, the kernel
// looks its path up anew, as it does for no later call. Once open it may be removed: its listing ends. An entry's
// cookie is the hash of its name, so a listing continues after it whatever was created or removed meanwhile. Nothing
// ends between names of equal hashes.
//
// An entry with a mark costs a read or two more: whether it has moved away (settle.h).
//
// Of a directory that is held here, and known whole, memory has the page (docs/NAMES.md section 4): 0 reads, or 1 for its
// parent where others may move it.
//
// What a page shows is remembered: a lookup of a listed name has its two reads in flight at once (lookup.cpp).
//
// With attributes (readdirplus): one read more for each name, 32 in flight. The two reads of an entry are lookup's: the
// entry's first, and the inode's after it. Where the kernel would ask anew before it walks by the name, because names
// are not to be trusted (entry_ttl) or the page is old, the inode is not read. Nor is one awaited for longer than a
// second: the name comes without attributes, so that a listing does not hang on one object. Clients that write some of
// these files are asked for their sizes, as in a lookup, one question for many files.
#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "fs/namespace.h"
#include "reclaim/traces.h"

namespace lccfs {

namespace {

constexpr std::size_t page_entries_in_memory = 4096;
constexpr std::uint64_t self_cookie = 1;
constexpr std::uint64_t parent_cookie = 2;

/// What is no entry, or a damaged one, is left out: the others can be listed all the same. So is what has moved away.
Result<> append_entries(ListingPage& page, Metadata& metadata, Ino directory, const KeyPage& keys) {
  std::string first_left_out;
  std::size_t left_out = 0;
  for (const auto& [key, value] : keys.entries) {
    auto parsed = format::parse_entry_key(key);
    const auto record = format::decode<format::EntryRecord>(value);
    if (parsed && record) {
      const auto name = metadata.name_in(directory, parsed->name);
      const auto entry = metadata.standing(name, {value, *record});
      if (entry && !*entry) continue;
      if (entry) {
        const auto& shown = (*entry)->record;
        if (!shown.mark) metadata.names.put(name, **entry, page.sent);
        page.entries.push_back({std::move(parsed->name), shown.ino, shown.type, parsed->hash});
        continue;
      }
      if (!objects::is_damage(entry.error())) return std::unexpected(entry.error());
    }
    if (++left_out == 1) first_left_out = printable(key);
  }
  if (left_out == 0) return {};
  log::error(format::inode_object(directory) + ": left out of its listing: " + std::to_string(left_out) +
             " keys that are no sound entries, the first is " + first_left_out + "; lccfs-fsck looks after them");
  return {};
}

/// They stand at the front of the first page.
void put_dots(ListingPage& page, Ino directory, Ino parent) {
  page.entries.insert(page.entries.begin(), {DirectoryEntry{".", directory, FileType::directory, self_cookie},
                                             DirectoryEntry{"..", parent, FileType::directory, parent_cookie}});
}

/// The store may have stopped in the middle of names of equal hash: the last of them come with the next page, unless
/// they are all there is.
bool drop_last_group(std::vector<DirectoryEntry>& entries) {
  if (entries.empty()) return false;
  const auto last = entries.back().cookie;
  if (entries.front().cookie == last) return false;
  while (entries.back().cookie == last) entries.pop_back();
  return true;
}

/// From `first` on, but no more than `most`, unless they are names of one hash.
std::vector<DirectoryEntry> some_of(const std::vector<DirectoryEntry>& entries, std::size_t first, std::size_t most) {
  if (most == 0 || first == entries.size()) return {};
  std::size_t end = std::min(entries.size(), first + most);
  const auto cuts_a_group = [&](std::size_t at) {
    return at > first && at < entries.size() && entries[at - 1].cookie == entries[at].cookie;
  };
  while (cuts_a_group(end)) --end;
  if (end == first) {
    do ++end;
    while (cuts_a_group(end));
  }
  return {entries.begin() + static_cast<std::ptrdiff_t>(first), entries.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

/// What a listing calls "..". A directory that has moved, or is about to, points back to more than one.
/// A listing tells no more of it than its number: a directory where it was once, and that cannot be read, fails none.
Result<Ino> Namespace::parent_to_tell(Ino directory) {
  const auto parent = reclaim::parent_of(instance_.reader(), directory);
  if (!parent && !objects::is_damage(parent.error())) return std::unexpected(parent.error());
  return parent ? parent->value_or(directory) : directory;
}

Result<Ino> Namespace::parent_of(const Inode& directory, const KeyPage& further) {
  const bool is_only_one = directory.parent && further.entries.empty();
  return is_only_one ? directory.parent->parent : parent_to_tell(directory.ino);
}

/// nullopt: memory does not know all of it.
std::optional<ListingPage> Namespace::page_from_memory(Ino directory, std::uint64_t cookie) {
  const auto sent = now();
  const auto view = metadata_.held_directory(directory);
  if (!view || view->sealed()) return std::nullopt;
  const auto after = cookie == 0 ? std::string() : format::entry_cursor_key(cookie);
  const auto listed = leases_.held.list(directory, *view->directory_lease, after, page_entries_in_memory);
  if (!listed) return std::nullopt;
  ListingPage page{.read = true, .sent = sent, .after = cookie, .entries = {}, .last = listed->is_all};
  for (const auto& [key, record] : listed->entries) {
    auto parsed = format::parse_entry_key(key);
    if (!parsed) return std::nullopt;
    page.entries.push_back({std::move(parsed->name), record.ino, record.type, parsed->hash});
  }
  const bool is_cut = !page.last && !drop_last_group(page.entries);
  return is_cut ? std::nullopt : std::optional(std::move(page));
}

/// Who moves a directory points it to its new parent without its lease.
Result<std::optional<ListingPage>> Namespace::list_held(Ino directory, std::uint64_t cookie) {
  const bool from_start = cookie <= parent_cookie;
  auto page = page_from_memory(directory, from_start ? 0 : cookie);
  if (!page || !from_start) return page;
  const auto unshared = metadata_.unshared(directory);
  LCCFS_TRY(const Ino parent,
            unshared && unshared->parent ? Result<Ino>(unshared->parent->parent) : parent_to_tell(directory));
  put_dots(*page, directory, parent);
  return page;
}

Result<ListingPage> Namespace::read_page(Ino directory, std::uint64_t cookie, bool is_being_opened) {
  LCCFS_TRY(auto page, list_held(directory, cookie));
  while (!page) {
    LCCFS_TRY(page, read_whole_page(directory, cookie, is_being_opened));
  }
  return std::move(*page);
}

/// nullopt: a read may not show what was stored meanwhile.
Result<std::optional<ListingPage>> Namespace::read_whole_page(Ino directory, std::uint64_t cookie,
                                                              bool is_being_opened) {
  const bool from_start = cookie <= parent_cookie;
  ListingPage page{.read = true, .sent = now(), .after = from_start ? 0 : cookie, .entries = {}, .last = false};
  std::string after = from_start ? std::string() : format::entry_cursor_key(cookie);
  InodeParts parts{.extra_ranges = {entries_after(after)}};
  if (from_start) parts.extra_ranges.push_back({"p/", "", 1});
  LCCFS_TRY(auto read, metadata_.read_names(directory, parts));
  auto& [view, kept_as] = read;
  if (is_being_opened) LCCFS_CHECK(metadata_.check_not_removed(view));
  KeyPage keys = std::move(view.extra_ranges.front());
  const auto add_to_page = [&](const auto& ticket, std::uint64_t version) -> Result<bool> {
    if (ticket) metadata_.keep_entries(*ticket, after, keys, version);
    const auto answered = ticket ? metadata_.as_answered(*ticket, after, keys, version) : std::nullopt;
    if (ticket && !leases_.held.still_knows(*ticket)) return false;
    LCCFS_CHECK(append_entries(page, metadata_, directory, answered ? *answered : keys));
    return true;
  };
  LCCFS_TRY(bool is_whole, add_to_page(kept_as, view.version));
  while (is_whole && keys.more && !keys.entries.empty() && !drop_last_group(page.entries)) {
    after = keys.entries.back().first;
    LCCFS_TRY(auto rest, metadata_.read_names(directory, {.extra_ranges = {entries_after(after)}}));
    keys = std::move(rest.view.extra_ranges.front());
    LCCFS_TRY(is_whole, add_to_page(rest.kept_as, rest.view.version));
  }
  if (!is_whole) return std::nullopt;
  page.last = !keys.more || keys.entries.empty();
  if (!from_start) return page;
  LCCFS_TRY(const Ino parent, parent_of(view, view.extra_ranges.back()));
  put_dots(page, directory, parent);
  return page;
}

/// It goes with what has gone from the directory above: its names are known, then, when they are removed.
void Namespace::take_if_next_to_go(Ino directory) {
  const auto known = metadata_.in_memory(directory);
  if (!known || known->directory_lease || !known->live() || known->sealed() || !known->parent) return;
  if (emptying_.takes_next_directory(known->parent->parent, directory)) leases_.begin_to_empty(directory);
}

/// Open before it is read: a collector that has marked it dead asks after that mark.
Result<HandleId> Namespace::open_directory(Ino ino) {
  const auto [id, handle] = directories_.open(ino);
  take_if_next_to_go(ino);
  auto page = read_page(ino, 0, true);
  if (!page) {
    directories_.release(id);
    return std::unexpected(std::move(page).error());
  }
  const Lock lock(handle->mutex);
  handle->page = std::move(*page);
  return id;
}

void Namespace::release_directory(HandleId handle) { directories_.release(handle); }

/// Forgotten first: a make that begins after the look reads the directory, and one before it is seen. But not what the
/// log has changes of, which may be of no name: they are stored under the lease that memory knows.
bool Namespace::needs_directory(Ino ino) {
  if (leases_.log.has(ino)) return true;
  metadata_.inodes.drop(ino);
  if (!leases_.held.end_unless_logged(ino)) return true;
  for (const auto& pointer : directories_.in_doubt(ino)) look_again_at(pointer);
  return directories_.is_open(ino) || directories_.is_parent_of_new(ino);
}

Result<ListingPage> Namespace::list_some(HandleId id, std::uint64_t cookie, const HowMany& how_many) {
  const auto handle = directories_.get(id);
  if (!handle) return failure(ErrorCode::bad_handle, "not an open directory");
  const Lock lock(handle->mutex);
  if (cookie == 0) emptying_.was_listed(handle->ino);
  // A listing that starts at the front again shows what is there now.
  const bool starts_again = cookie == 0 && std::exchange(handle->listed, true);
  if (starts_again || !handle->page.covers(cookie)) {
    LCCFS_TRY(handle->page, read_page(handle->ino, cookie, false));
  }
  const auto& entries = handle->page.entries;
  const auto begin = std::ranges::upper_bound(entries, cookie, {}, &DirectoryEntry::cookie);
  const auto first = static_cast<std::size_t>(begin - entries.begin());
  return ListingPage{.read = true,
                     .sent = handle->page.sent,
                     .after = cookie,
                     .entries = some_of(entries, first, how_many(std::span(begin, entries.end()))),
                     .last = handle->page.last};
}

Result<std::vector<DirectoryEntry>> Namespace::read_directory(HandleId id, std::uint64_t cookie,
                                                              std::size_t max_entries) {
  LCCFS_TRY(auto page, list_some(id, cookie, [max_entries](std::span<const DirectoryEntry>) { return max_entries; }));
  return std::move(page.entries);
}

Result<std::vector<ListedEntry>> Namespace::read_directory_plus(HandleId id, std::uint64_t cookie,
                                                                const FileSystem::HasRoom& has_room) {
  LCCFS_TRY(auto page, list_some(id, cookie, [&has_room](std::span<const DirectoryEntry> entries) {
              return static_cast<std::size_t>(std::ranges::find_if_not(entries, has_room) - entries.begin());
            }));
  std::vector<Ino> inos;
  for (const auto& entry : page.entries) {
    if (entry.cookie > parent_cookie && entry_ttl(page.sent) > std::chrono::nanoseconds(0)) inos.push_back(entry.ino);
  }
  auto inodes = metadata_.read_many(inos);
  bring_up_to_date(inodes);
  std::vector<ListedEntry> listed;
  for (auto& entry : page.entries) {
    const auto inode = entry.cookie > parent_cookie ? inodes.find(entry.ino) : inodes.end();
    auto& last = listed.emplace_back(std::move(entry), std::nullopt);
    if (inode != inodes.end() && inode->second.live()) last.reply = entry_reply_for(inode->second, page.sent);
  }
  return listed;
}

}  // namespace lccfs
