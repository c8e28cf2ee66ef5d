// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Listing: reads only, one for each 1,024 entries. An entry's cookie is the hash of its name, so a listing goes on
// behind it whatever was created or removed meanwhile. Nothing ends between names of equal hashes.
#include <algorithm>

#include "fs/namespace_private.h"

namespace lccfs {

namespace {

constexpr std::uint32_t page_entries = 1024;
constexpr std::uint64_t self_cookie = 1;
constexpr std::uint64_t parent_cookie = 2;

KeyRange entries_after(const std::string& key) { return {"n/", key, page_entries}; }

Result<DirectoryEntry> decode_entry(Ino directory, const std::string& key, const Bytes& value) {
  const auto parsed = format::parse_entry_key(key);
  const auto object = format::inode_object(directory);
  if (!parsed) return failure(ErrorCode::corrupt, object + ": not the key of an entry: " + key);
  const auto record = format::decode<format::EntryRecord>(value);
  if (!record) return failure(record.error().code, object + ": entry " + key + ": " + record.error().context);
  return DirectoryEntry{parsed->name, record->ino, record->type, parsed->hash};
}

Result<> append_entries(std::vector<DirectoryEntry>& entries, Ino directory, const KeyPage& keys) {
  for (const auto& [key, value] : keys.entries) {
    LCCFS_TRY(auto entry, decode_entry(directory, key, value));
    entries.push_back(std::move(entry));
  }
  return {};
}

/// The store may have stopped in the middle of names of equal hash: the last of them come with the next page, unless
/// they are all there is.
bool drop_last_group(std::vector<DirectoryEntry>& entries) {
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

/// "." and ".." stand at the front of the first page.
Result<ListingPage> Namespace::Private::read_page(Ino directory, std::uint64_t cookie) {
  const bool from_start = cookie <= parent_cookie;
  ListingPage page{true, from_start ? 0 : cookie, {}, false};
  std::string after = from_start ? std::string() : format::entry_cursor_key(cookie);
  auto view = read(directory, {.extra_ranges = {entries_after(after)}, .keys = {}});
  if (!view) {
    if (view.error().code != ErrorCode::not_found) return std::unexpected(std::move(view).error());
    return failure(ErrorCode::stale, format::inode_object(directory) + " is gone");
  }
  if (!view->is_directory()) {
    return failure(ErrorCode::not_directory, format::inode_object(directory) + " is no directory");
  }
  KeyPage keys = std::move(view->extra_ranges.front());
  LCCFS_CHECK(append_entries(page.entries, directory, keys));
  while (keys.more && !keys.entries.empty() && !drop_last_group(page.entries)) {
    after = keys.entries.back().first;
    LCCFS_TRY(
        auto rest,
        instance.query({.object = format::inode_object(directory), .ranges = {entries_after(after)}, .keys = {}}));
    keys = std::move(rest.ranges.front());
    LCCFS_CHECK(append_entries(page.entries, directory, keys));
  }
  page.last = !keys.more || keys.entries.empty();
  if (!from_start) return page;
  const Ino parent = view->parent ? view->parent->parent : directory;
  page.entries.insert(page.entries.begin(), {DirectoryEntry{".", directory, FileType::directory, self_cookie},
                                             DirectoryEntry{"..", parent, FileType::directory, parent_cookie}});
  return page;
}

Result<HandleId> Namespace::open_directory(Ino ino) { return private_->directories.open(ino); }

void Namespace::release_directory(HandleId handle) { private_->directories.release(handle); }

bool Namespace::is_open_directory(Ino ino) const { return private_->directories.is_open(ino); }

Result<std::vector<DirectoryEntry>> Namespace::read_directory(HandleId id, std::uint64_t cookie,
                                                              std::size_t max_entries) {
  const auto handle = private_->directories.get(id);
  if (!handle) return failure(ErrorCode::bad_handle, "not an open directory");
  const std::lock_guard lock(handle->mutex);
  // Who starts at the front wants to see what is there now.
  if (cookie == 0 || !handle->page.covers(cookie)) {
    LCCFS_TRY(handle->page, private_->read_page(handle->ino, cookie));
  }
  const auto& entries = handle->page.entries;
  const auto first = std::ranges::upper_bound(entries, cookie, {}, &DirectoryEntry::cookie);
  return some_of(entries, static_cast<std::size_t>(first - entries.begin()), max_entries);
}

}  // namespace lccfs
