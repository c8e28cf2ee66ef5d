// SPDX-License-Identifier: LGPL-2.1-or-later
//
// lookup: reads only. An answer that rests on two reads is given after the first, done again, is unchanged (rule 4).
//
//  - | Inode.P | entry of the name               | absent -> no such name
//  - | Inode.X | the inode                       | live or sealed -> it
//  - | Inode.P | X gone or dead: the entry again | changed -> start over; the same -> no such name
//
// In a directory that was removed there are no names. What would change some there answers `stale`: the kernel then looks
// the whole path up anew, and finds what stands there now. (To a lookup it must not be said: mkdir(2) and the like pass
// that on to the program.)
//
// "." and "..": an inode by its number, for who has a file handle: 1 read, and 2 to see that it has a name; else stale.
//
// Where memory knows which inode had the name, it is read together with the entry. That is as good as read behind it if
// the entry is still the same one, token and all: then the name was this inode's all the time since memory learnt of it.
#include <algorithm>

#include "fs/namespace_private.h"
#include "reclaim/traces.h"

namespace lccfs {

namespace {

Error no_such(const txn::Name& name) {
  return {ErrorCode::not_found, format::inode_object(name.directory) + ": no entry " + name.name, Outcome::definite};
}

}  // namespace

Result<> check_name(const std::string& name) {
  if (name.size() > format::name_limit_bytes) return failure(ErrorCode::name_too_long, "name of over 255 bytes");
  const bool component = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                         name.find('\0') == std::string::npos;
  if (!component) return failure(ErrorCode::invalid, "not the name of an entry: " + name);
  return {};
}

Result<> Namespace::Private::check_writable() const {
  if (options.read_only) return failure(ErrorCode::read_only, "the volume is mounted read-only");
  return {};
}

Result<> Namespace::Private::check_change(const std::string& name) const {
  LCCFS_CHECK(check_writable());
  return check_name(name);
}

std::shared_ptr<const InodeView> Namespace::Private::held(Ino ino) {
  return instance.fenced() ? nullptr : inodes.get(ino);
}

Result<InodeView> Namespace::Private::remember(const InodeCache::Ticket& ticket, Ino ino, Result<InodeView> read) {
  if (read) {
    inodes.put_read(ticket, *read);
  } else {
    inodes.drop(ino);
  }
  return read;
}

Result<InodeView> Namespace::Private::read(Ino ino, const InodeParts& parts) {
  const auto ticket = inodes.begin(ino);
  return remember(ticket, ino, read_inode(instance, ino, parts));
}

Result<InodeView> Namespace::Private::finish(ReadAhead& ahead) {
  auto view = ahead.inode.get();
  if (view) view->sent = ahead.ticket.sent;
  return remember(ahead.ticket, ahead.ino, std::move(view));
}

Result<std::shared_ptr<const InodeView>> Namespace::Private::existing_inode(Ino ino) {
  if (auto in_memory = held(ino)) return in_memory;
  auto view = read(ino);
  if (view) return std::make_shared<const InodeView>(std::move(*view));
  if (view.error().code != ErrorCode::not_found) return std::unexpected(std::move(view).error());
  return failure(ErrorCode::stale, format::inode_object(ino) + " is gone");
}

Result<bool> Namespace::Private::was_removed(const InodeView& view) {
  using Kind = format::StateRecord::Kind;
  if (view.state.kind != Kind::sealed) return !view.live();
  const auto key = format::detached_key(view.ino, view.state.token);
  const auto parent = instance.query({.object = format::inode_object(view.state.parent), .ranges = {}, .keys = {key}});
  if (!parent && parent.error().code != ErrorCode::not_found) return std::unexpected(parent.error());
  if (parent && parent->keys.contains(key)) return true;
  // A collector removes the key once it has marked the directory.
  const auto again = read(view.ino);
  if (!again && again.error().code != ErrorCode::not_found) return std::unexpected(again.error());
  return !again || !again->live();
}

Result<std::optional<txn::Entry>> Namespace::Private::entry_in(const InodeView& directory,
                                                               const txn::Name& name) const {
  const auto found = directory.keys.find(name.key);
  if (found == directory.keys.end()) return std::nullopt;
  auto record = format::decode<format::EntryRecord>(found->second);
  if (record) return txn::Entry{found->second, *record};
  return failure(record.error().code,
                 format::inode_object(directory.ino) + ": entry " + name.name + ": " + record.error().context);
}

Result<Namespace::Private::Seen> Namespace::Private::see(std::initializer_list<const txn::Name*> wanted,
                                                         bool from_memory) {
  const Ino directory = (*wanted.begin())->directory;
  Seen seen;
  if (from_memory && !instance.fenced()) {
    for (const auto* name : wanted) {
      if (auto hint = names.get(*name)) seen.entries.push_back(std::move(*hint));
    }
    seen.directory = held(directory);
    if (seen.entries.size() == wanted.size()) return seen;
    seen.entries.clear();
  }
  InodeParts with_names;
  for (const auto* name : wanted) with_names.keys.push_back(name->key);
  const auto sent = now();
  auto found = read(directory, with_names);
  if (!found) return std::unexpected(gone_is_stale(std::move(found).error()));
  auto& view = *found;
  if (!view.is_directory()) {
    return failure(ErrorCode::not_directory, format::inode_object(directory) + " is no directory");
  }
  LCCFS_TRY(const bool removed, was_removed(view));
  if (removed) return failure(ErrorCode::stale, format::inode_object(directory) + " was removed");
  if (view.nsub_raw.empty()) {
    return failure(ErrorCode::corrupt, format::inode_object(directory) + ": xattr nsub is missing");
  }
  for (const auto* name : wanted) {
    LCCFS_TRY(auto entry, entry_in(view, *name));
    names.put(*name, entry, sent);
    seen.entries.push_back(std::move(entry));
  }
  seen.fresh = true;
  seen.directory = std::make_shared<const InodeView>(std::move(view));
  return seen;
}

Result<StepResult> Namespace::Private::run_in_directory(MetaTxn txn) {
  auto step = instance.run(std::move(txn));
  if (!step) return std::unexpected(gone_is_stale(std::move(step).error()));
  return step;
}

bool Namespace::Private::as_expected(const std::map<std::string, Bytes>& keys,
                                     std::span<const ExpectedEntry> expected) {
  return std::ranges::all_of(expected, [&keys](const ExpectedEntry& one) {
    const auto found = keys.find(one.name.key);
    return one.entry ? found != keys.end() && found->second == one.entry->raw : found == keys.end();
  });
}

Result<bool> Namespace::Private::unchanged(std::span<const ExpectedEntry> expected) {
  MetaRead read_again{.object = format::inode_object(expected.front().name.directory), .ranges = {}, .keys = {}};
  for (const auto& one : expected) read_again.keys.push_back(one.name.key);
  const auto again = instance.query(read_again);
  if (again) return as_expected(again->keys, expected);
  if (again.error().code != ErrorCode::not_found) return std::unexpected(again.error());
  return false;
}

AttributesReply Namespace::Private::reply_for(const InodeView& view) {
  if (view.attr.type == FileType::regular) return files.reply_for(view);
  return {attributes_of(view, instance.super().object_size_bytes), options.attributes_ttl};
}

EntryReply Namespace::Private::entry_reply_for(const InodeView& view, std::chrono::nanoseconds sent) {
  const auto attributes = reply_for(view);
  const auto entry_ttl = std::max(std::chrono::nanoseconds(0), sent + options.entry_ttl - now());
  return {attributes.attributes, entry_ttl, attributes.attributes_ttl};
}

/// What a file handle leads to (open_by_handle_at(2), NFS). An inode that lost its last name may still say that it has
/// links: its names are counted.
Result<EntryReply> Namespace::Private::by_number(Ino ino) {
  const auto gone = [ino] { return failure(ErrorCode::stale, format::inode_object(ino) + " has no name"); };
  const auto sent = now();
  const auto view = read(ino);
  if (!view) return std::unexpected(gone_is_stale(view.error()));
  LCCFS_TRY(const bool removed, was_removed(*view));
  if (removed) return gone();
  if (ino != root_ino && !files.is_open(ino) && !directories.is_open(ino)) {
    LCCFS_TRY(const auto traces, reclaim::read_traces(instance.reader(), ino));
    if (!traces) return gone();
    LCCFS_TRY(const auto found, reclaim::count_names(instance.reader(), *traces));
    if (found.total() == 0) return gone();
  }
  return entry_reply_for(*view, sent);
}

Result<EntryReply> Namespace::lookup(Ino parent, const std::string& text) {
  if (text == ".") return private_->by_number(parent);
  if (text == "..") {
    LCCFS_TRY(const auto directory, private_->existing_inode(parent));
    return private_->by_number(directory->parent ? directory->parent->parent : parent);
  }
  LCCFS_CHECK(check_name(text));
  const auto name = private_->name_in(parent, text);
  for (auto attempts = private_->attempts();;) {
    LCCFS_CHECK(attempts.next());
    const auto sent = private_->now();
    const auto last_seen = private_->names.last_seen(name);
    std::optional<Private::ReadAhead> ahead;
    if (last_seen) ahead.emplace(private_->read_ahead(last_seen->record.ino));
    const auto seen = private_->see({&name}, false);
    if (!seen && seen.error().code == ErrorCode::stale) return std::unexpected(no_such(name));
    if (!seen) return std::unexpected(seen.error());
    const auto& entry = seen->entries.front();
    if (!entry) return std::unexpected(no_such(name));
    const bool is_the_same = last_seen && last_seen->raw == entry->raw;
    auto inode = is_the_same ? private_->finish(*ahead) : private_->read(entry->record.ino);
    if (inode && inode->live()) return private_->entry_reply_for(*inode, sent);
    if (!inode && inode.error().code != ErrorCode::not_found) return std::unexpected(std::move(inode).error());
    LCCFS_TRY(const bool dangling, private_->unchanged({{{name, entry}}}));
    if (dangling) return std::unexpected(no_such(name));
  }
}

}  // namespace lccfs
