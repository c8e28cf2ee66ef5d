// SPDX-License-Identifier: LGPL-2.1-or-later
//
// lookup: reads only. An answer that rests on two reads is given after the first, done again, is unchanged (rule 4).
//
//  - | Inode.P | entry of the name               | absent -> no such name
//  - | Inode.X | the inode                       | live or sealed -> it
//  - | Inode.P | X gone or dead: the entry again | changed -> start over; the same -> no such name
#include <algorithm>

#include "fs/namespace_private.h"

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

std::optional<InodeCache::Held> Namespace::Private::held(Ino ino) {
  return instance.fenced() ? std::nullopt : inodes.get(ino);
}

Result<InodeView> Namespace::Private::read(Ino ino, const InodeReadOptions& read_options) {
  const auto ticket = inodes.begin(ino);
  auto view = read_inode(instance, ino, read_options);
  if (view) {
    inodes.put_read(ticket, *view);
  } else {
    inodes.drop(ino);
  }
  return view;
}

Result<std::shared_ptr<const InodeView>> Namespace::Private::existing_inode(Ino ino) {
  if (auto in_memory = held(ino)) return std::move(in_memory->view);
  auto view = read(ino);
  if (view) return std::make_shared<const InodeView>(std::move(*view));
  if (view.error().code != ErrorCode::not_found) return std::unexpected(std::move(view).error());
  return failure(ErrorCode::stale, format::inode_object(ino) + " is gone");
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
    if (auto in_memory = held(directory)) seen.directory = std::move(in_memory->view);
    if (seen.entries.size() == wanted.size()) return seen;
    seen.entries.clear();
  }
  InodeReadOptions with_names;
  for (const auto* name : wanted) with_names.keys.push_back(name->key);
  const auto sent = now();
  LCCFS_TRY(auto view, read(directory, with_names));
  if (!view.is_directory()) {
    return failure(ErrorCode::not_directory, format::inode_object(directory) + " is no directory");
  }
  if (!view.live()) return failure(ErrorCode::not_found, format::inode_object(directory) + " was removed");
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

Result<EntryReply> Namespace::lookup(Ino parent, const std::string& text) {
  LCCFS_CHECK(check_name(text));
  const auto name = private_->name_in(parent, text);
  for (auto attempts = private_->attempts();;) {
    LCCFS_CHECK(attempts.next());
    const auto sent = private_->now();
    LCCFS_TRY(const auto seen, private_->see({&name}, false));
    const auto& entry = seen.entries.front();
    if (!entry) return std::unexpected(no_such(name));
    auto inode = private_->read(entry->record.ino);
    if (inode && inode->live()) return private_->entry_reply_for(*inode, sent);
    if (!inode && inode.error().code != ErrorCode::not_found) return std::unexpected(std::move(inode).error());
    LCCFS_TRY(const bool dangling, private_->unchanged({{{name, entry}}}));
    if (dangling) return std::unexpected(no_such(name));
  }
}

}  // namespace lccfs
