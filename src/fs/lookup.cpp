// SPDX-License-Identifier: LGPL-2.1-or-later
//
// lookup: reads only; of a directory that is held here (docs/NAMES.md) the entry is known without a read. An answer that
// rests on two reads is given after the first, done again, is unchanged (rule 4).
//
//  - | Inode.P | entry of the name               | absent -> no such name
//  - | Inode.X | the inode; of one that was read | live or sealed -> it
//    |         | before its version, and the     |
//    |         | rest if that has changed        |
//  - | Inode.P | X gone or dead: the entry again | changed -> start over; the same -> no such name
//  - | Inode.X | another client writes X: it is  | it, as it is now; where that client says nothing within a
//    |         | asked, and X read again         | second, as it is stored
//
// In a directory that was removed there are no names. What would change some there answers `stale`: the kernel then
// looks the whole path up anew, and finds what stands there now. (A lookup must not answer `stale`: mkdir(2) would pass
// it on to the program.)
//
// "." and "..": an inode by its number, for callers with a file handle: 1 read, and 2 to see that it has a name; else
// stale. Where names are written behind, 1 more: what the holder of its directory has answered of it is stored first.
//
// Where memory knows which inode had the name, it is read together with the entry. That is as good as read after it if
// the entry is still the same one, token and all: then the name was this inode's all the time since memory learnt of
// it.
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/expected_errors.h"
#include "fs/namespace.h"
#include "reclaim/traces.h"

namespace lccfs {

namespace {
/// Attributes for longer than that, and the kernel keeps no names.
constexpr std::chrono::seconds longest_trust{5};
constexpr std::size_t most_passed_over = 16;
constexpr std::string_view after_all_names = "o";  // their keys begin with "n/"
}  // namespace

/// Other clients may have changes of it and of its names that are not stored: those that hold the directories to which it
/// points back. Whether one was asked.
Result<bool> Namespace::have_it_shared(const Inode& view) {
  if (!instance_.super().has(format::feature::names_behind) || metadata_.unshared(view.ino)) return false;
  std::set<Ino> directories;
  for (const auto& pointer : view.pointers) directories.insert(pointer.parent);
  bool was_asked = false;
  for (const Ino ino : directories) {
    LCCFS_TRY(const auto directory, or_none(read_inode(instance_, ino)));
    if (!directory || !leases_.has_answered_more(*directory)) continue;
    LCCFS_CHECK(leases_.make_way(*directory));
    was_asked = true;
  }
  return was_asked;
}

/// Changes of its names that are logged are in directories to which it points back: only these are waited for. Nobody is
/// kept from reading by a full store, where what is not stored takes no name of it.
Result<bool> Namespace::has_a_name(Ino ino) {
  if (leases_.log.is_empty()) return reclaim::has_a_name(instance_.reader(), ino);
  LCCFS_TRY(const auto traces, read_inode(instance_, ino, {.traces = true}));
  for (const auto& pointer : traces.pointers) {
    const auto stored = leases_.log.store(pointer.parent);
    if (stored) continue;
    const auto is_named = leases_.log.leaves_named(pointer.parent, ino);
    if (!is_out_of_space(stored.error()) || is_named == false) return std::unexpected(stored.error());
    if (is_named) return true;
  }
  return reclaim::has_a_name(instance_.reader(), ino);
}

/// What a file handle leads to (open_by_handle_at(2), NFS). An inode that lost its last name may still say that it has
/// links: its names are counted.
Result<EntryReply> Namespace::lookup_by_number(Ino ino) {
  const auto gone = [ino] { return failure(ErrorCode::stale, format::inode_object(ino) + " has no name"); };
  const auto sent = now();
  LCCFS_TRY(auto view, metadata_.read_existing(ino, {.traces = true}));
  LCCFS_TRY(const bool was_shared, have_it_shared(view));
  if (was_shared) {
    LCCFS_TRY(view, metadata_.read_existing(ino));
  }
  LCCFS_CHECK(metadata_.check_not_removed(view));
  if (ino != root_ino && !files_.is_open(ino) && !directories_.is_open(ino)) {
    LCCFS_TRY(const bool named, has_a_name(ino));
    if (!named) return gone();
  }
  return entry_reply_for(as_of_now(view), sent);
}

/// The inode of a file that another client writes: its size as that client has it.
Inode Namespace::as_of_now(Inode read) {
  if (!read.lease || *read.lease == instance_.id()) return read;
  const Ino ino = read.ino;
  std::map<Ino, Inode> one{{ino, std::move(read)}};
  bring_up_to_date(one);
  return std::move(one.at(ino));
}

void Namespace::bring_up_to_date(std::map<Ino, Inode>& inodes) {
  files_.bring_up_to_date(inodes, [this](const std::vector<Ino>& wanted) { return metadata_.read_many(wanted); });
}

/// `ahead`: a read of its inode that is under way, if it may be used.
Result<std::optional<txn::Entry>> Namespace::entry_for_lookup(const txn::Name& name,
                                                              std::optional<Metadata::ReadAhead>& ahead) {
  if (const auto held = metadata_.find_held({&name})) return held->found.front();
  const auto last_seen = metadata_.names.last_seen(name);
  if (last_seen) ahead.emplace(metadata_.read_ahead(last_seen->record.ino));
  auto entries = metadata_.find({&name}, Metadata::Trust::in_nothing);
  if (!entries && entries.error().code == ErrorCode::stale) return std::nullopt;
  if (!entries) return std::unexpected(std::move(entries).error());
  leases_.was_looked_up(*entries->directory);
  auto& entry = entries->found.front();
  if (!entry || !last_seen || last_seen->raw != entry->raw) ahead.reset();
  return std::move(entry);
}

/// It was read within a second, and is likely to be removed: with attributes for no time, so that the kernel asks if it
/// needs them (check_as_told, where it does not). But it looks at the owner of what it removes from a sticky directory.
std::optional<EntryReply> Namespace::reply_to_next_to_go(Ino ino, const Inode& directory,
                                                         std::chrono::nanoseconds sent) {
  const auto seen = metadata_.in_memory(ino);
  const bool is_usable = seen && seen->live() && !seen->lease && !files_.is_in_use(ino);
  if (!is_usable || (directory.attr.mode & S_ISVTX) != 0) return std::nullopt;
  auto known = files_.known_reply_for(*seen);
  if (!known) return std::nullopt;
  known->attributes_ttl = std::chrono::nanoseconds(0);
  emptying_.was_told(directory.ino, ino, seen->attr);
  return entry_reply(*known, sent);
}

/// Nobody waits for them. Directories, and what memory knows, need no read, and are passed over.
void Namespace::read_next_to_go(const txn::Name& name, Token tenure) {
  const auto many = emptying_.worth_reading_after(name.directory, name.key);
  if (!many) return;
  const std::size_t most = *many + 1 + most_passed_over;
  const auto names = leases_.held.names_after(name.directory, tenure, name.key, most);
  std::string next = names.size() == most ? names.back().first : std::string(after_all_names);
  std::size_t read = 0;
  for (const auto& [key, entry] : names) {
    if (entry.type != FileType::regular || metadata_.unshared(entry.ino)) continue;
    if (read++ == *many) {
      next = key;
      break;
    }
    reads_ahead_.enter();
    metadata_.read_at_once(
        entry.ino, [this](const std::optional<Inode>&) { reads_ahead_.leave(); }, stop_reading_.get_token());
  }
  emptying_.is_read_up_to(name.directory, next);
}

void Namespace::known_entry(Ino parent, const std::string& text, FileSystem::KnownDone done) {
  if (text == "." || text == ".." || !check_name(text)) return done(std::nullopt);
  const auto name = metadata_.name_in(parent, text);
  const auto sent = now();
  const auto held = metadata_.find_held({&name});
  if (!held) return done(std::nullopt);
  const auto& entry = held->found.front();
  if (!entry) return done(std::unexpected(no_entry(name)));
  const Ino ino = entry->record.ino;
  if (const auto known = attributes_from_memory(ino)) return done(entry_reply(*known, sent));
  if (entry->record.type != FileType::regular) return done(std::nullopt);
  const bool is_next = emptying_.takes_next_file(parent);
  const auto as_seen = is_next ? reply_to_next_to_go(ino, *held->directory, sent) : std::nullopt;
  if (as_seen) return done(*as_seen);
  metadata_.read_at_once(ino, [this, ino, sent, done = std::move(done)](const std::optional<Inode>& file) mutable {
    const bool is_written_elsewhere = file && file->lease && *file->lease != instance_.id();
    const auto known = file && file->live() && !is_written_elsewhere ? files_.known_reply_for(*file) : std::nullopt;
    if (known) emptying_.forget(ino);
    done(known ? std::optional<Result<EntryReply>>(entry_reply(*known, sent)) : std::nullopt);
  });
  if (is_next) read_next_to_go(name, *held->directory->directory_lease);
}

/// Attributes end the kernel's trust after a while: on each way down it then comes back here, whatever names it keeps.
std::optional<Token> Namespace::tenure_to_keep_in(Ino parent, const std::string& text) {
  const bool may_keep = !options_.entry_ttl && options_.attributes_ttl <= longest_trust && leases_.gives_names();
  const bool is_name = text != "." && text != "..";
  return may_keep && is_name ? leases_.held.tenure_of(parent) : std::nullopt;
}

/// From now on, and until the kernel has forgotten it.
void Namespace::is_kept_by_name(Ino directory) {
  const Lock lock(kept_mutex_);
  kept_by_name_.insert(directory);
}

bool Namespace::begin_to_keep(Ino parent, const std::string& text, Ino directory, bool is_known) {
  const auto tenure = tenure_to_keep_in(parent, text);
  if (!tenure) return false;
  const auto name = metadata_.name_in(parent, text);
  if (is_known) leases_.held.is_asked_for(name);
  if (is_known || !attributes_from_memory(directory)) return false;
  is_kept_by_name(directory);
  return leases_.held.give(name, directory, *tenure);
}

/// Its attributes may be older than what is told without a read: the kernel is not to trust them.
std::optional<Attributes> Namespace::begin_to_keep_listed(Ino parent, const std::string& text, Ino directory) {
  const auto tenure = tenure_to_keep_in(parent, text);
  if (!tenure || leases_.held.removed_from(directory)) return std::nullopt;
  const auto view = metadata_.held_directory(directory);
  const auto known = view && !view->sealed() ? std::optional(reply_for(*view)) : unshared_attributes(directory);
  if (!known) return std::nullopt;
  is_kept_by_name(directory);
  const bool is_given = leases_.held.give_listed(metadata_.name_in(parent, text), directory, *tenure);
  return is_given ? std::optional(known->attributes) : std::nullopt;
}

bool Namespace::may_be_kept_by_name(Ino directory) {
  const Lock lock(kept_mutex_);
  return kept_by_name_.contains(directory);
}

Result<EntryReply> Namespace::lookup(Ino parent, const std::string& text) {
  if (text == ".") return lookup_by_number(parent);
  if (text == "..") {
    LCCFS_TRY(const auto above, reclaim::parent_of(instance_.reader(), parent));
    return lookup_by_number(above.value_or(parent));
  }
  LCCFS_CHECK(check_name(text));
  const auto name = metadata_.name_in(parent, text);
  for (Attempts attempts(instance_);;) {
    LCCFS_CHECK(attempts.next());
    const auto sent = now();
    std::optional<Metadata::ReadAhead> ahead;
    LCCFS_TRY(const auto entry, entry_for_lookup(name, ahead));
    if (!entry) return std::unexpected(no_entry(name));
    if (const auto known = attributes_from_memory(entry->record.ino)) return entry_reply(*known, sent);
    if (!ahead) ahead.emplace(metadata_.read_ahead(entry->record.ino));
    LCCFS_TRY(auto inode, or_none(metadata_.finish(*ahead)));
    if (inode && inode->live()) {
      emptying_.forget(inode->ino);
      return entry_reply_for(as_of_now(std::move(*inode)), sent);
    }
    LCCFS_TRY(const bool dangling, metadata_.unchanged({{{name, entry}}}));
    if (dangling) return std::unexpected(no_entry(name));
    metadata_.name_in_doubt(name);
  }
}

}  // namespace lccfs
