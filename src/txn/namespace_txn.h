// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions that make and remove inodes and names, and those of seals and decisions (docs/PROTOCOL.md section
// 6). Pure functions. Unless said otherwise they are for Instance::run, which adds the guards of rules 1 and 5.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

/// A name in a directory, with its key among the entries.
struct Name {
  Name(const format::VolumeUuid& uuid, Ino parent, std::string text)
      : directory(parent), name(std::move(text)), key(format::entry_key(uuid, name)) {}
  Ino directory;
  std::string name;
  std::string key;
};

/// An entry as it was read; guards compare `raw`, the whole value.
struct Entry {
  Bytes raw;
  format::EntryRecord record;
};

/// How a step changes a directory's count of subdirectories, guarded as it was read.
struct SubdirectoryCount {
  Bytes raw;
  std::uint64_t changed = 0;
};

struct NewInode {
  Ino ino;
  format::AttrRecord attr;
  format::BackPointerRecord parent;
  TimeSpec time;                    ///< atime, mtime and ctime
  std::optional<InstanceId> lease;  ///< regular files
  std::string symlink_target;
  std::map<std::uint64_t, format::MapBlock> map_blocks = {};  ///< regular files: of the allocation map
  std::map<std::string, Bytes> attributes = {};               ///< extended ones; `attr` has their flags
  std::optional<Token> directory_lease = std::nullopt;        ///< directories: the tenure
  bool names_behind = false;                                  ///< under it, names may be written behind
};
/// For Instance::run_repeatable: a caller that gets `exists` for a new number compares the birth token.
MetaTxn create_inode(const NewInode& inode);
/// What a step that creates an inode, and was not sent yet, makes of it; and the same with changes.
format::AttrRecord attr_of(const MetaTxn& create);
/// Empty: it sets no such xattr.
const Bytes& xattr_of(const MetaTxn& create, std::string_view name);
struct AttributeChange {
  std::optional<format::AttrRecord> attr = std::nullopt;
  std::optional<TimeSpec> atime = std::nullopt, mtime = std::nullopt;
  TimeSpec ctime;
};
void change_new_inode(MetaTxn& create, const AttributeChange& change);
/// The same with what a later step on that inode changes.
void include(MetaTxn& create, const MetaTxn& step);
/// Removes an inode that never had a name, as it was made. May be done twice: not_found is done.
MetaTxn remove_new_inode(Ino ino, std::uint64_t version);

/// Step 2 of create: the directory is open, the name is free.
MetaTxn insert_entry(const Name& name, const format::EntryRecord& entry, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub);

/// Steps 1 and 3 of link: `attr` with the new count, under a guard on the old value; the directory of the new name, by
/// the operation's token.
struct LinkCount {
  Ino ino;
  const Bytes& old_attr;
  const format::AttrRecord& attr;
  format::BackPointerRecord parent;
  TimeSpec now;
  bool is_unwritten = false;  // add_link guards that no instance holds the lease
};
MetaTxn add_link(const LinkCount& count);
MetaTxn take_back_link(const LinkCount& count);

/// The commit of unlink (nsub empty) and of rmdir, whose inode is sealed by the same token.
MetaTxn remove_entry(const Name& name, const Entry& entry, Token token, TimeSpec now,
                     const std::optional<SubdirectoryCount>& nsub);

/// Takes away a name whose inode is gone or dead.
MetaTxn clear_dangling_entry(const Name& name, const Entry& entry, const std::optional<SubdirectoryCount>& nsub);

struct Rename {
  const Name& from;
  const Entry& moved;
  const Name& to;
  const std::optional<Entry>& replaced;
  Token token;
  TimeSpec now;
  std::optional<SubdirectoryCount> nsub;  ///< of the directory of `to`, if it changes
};
/// One step, both names in one directory. A directory that is replaced is sealed by the same token, and nsub changes.
MetaTxn rename_entries(const Rename& rename);
/// Both names stay, and change their inodes.
MetaTxn exchange_entries(const Name& first, const Entry& first_entry, const Name& second, const Entry& second_entry,
                         Token token, TimeSpec now);

// -- a rename across directories (src/fs/move.cpp)

/// Before the inode gets a name in that directory: it exists, and the back-pointer may be dropped as often as it likes.
MetaTxn point_to_directory(Ino ino, const format::BackPointerRecord& pointer, TimeSpec now);
/// For Instance::run_repeatable: nothing has come of it.
MetaTxn drop_back_pointer(Ino ino, const format::BackPointerRecord& pointer);
/// The entry as it stands with that mark.
Entry marked(const Entry& entry, const format::EntryRecord::Mark& mark);
MetaTxn mark_entry(const Name& name, const Entry& entry, const Entry& marked);
/// The mark is taken off: what it announced can never commit.
MetaTxn clear_mark(const Name& name, const Entry& marked);
/// The commit, in the new directory: unless another instance has cancelled it. A directory that is replaced is sealed by
/// the same token; nsub changes if a directory moves to a free name.
MetaTxn move_entry_in(const Rename& rename);
/// After the commit, in the old directory. `nsub`: of that one, if a directory has moved.
MetaTxn move_entry_out(const Name& name, const Entry& marked, TimeSpec now,
                       const std::optional<SubdirectoryCount>& nsub);
/// A settler's word: what the mark announces, and has not committed, never will.
MetaTxn cancel_move(const format::EntryRecord::Mark& mark);

// -- the lease of a directory (docs/NAMES.md)

/// What several steps on a live directory leave together, the later ones counting; without their guards.
/// Inodes that lose their names in them, and were `never_stored`, leave nothing.
MetaTxn store_names(Ino directory, std::span<const MetaTxn* const> changes, const std::set<Ino>& never_stored,
                    const std::optional<SubdirectoryCount>& nsub);
/// A key that is set by these changes, whose count of subdirectories is not 0 in all, and by no other step.
mutation::SetKey proof_of(std::span<const MetaTxn* const> changes, const std::set<Ino>& never_stored);
/// For Instance::run_repeatable: of one that has lost its name under that tenure, without a seal.
MetaTxn mark_removed_dead(Ino directory, Token tenure);
/// The holder may answer changes of names before they are stored: others ask it before they read some.
MetaTxn write_names_behind(Ino directory, Token tenure);

/// A step on what the lease covers, while nobody holds it (nullopt), or it is held under that tenure.
MetaTxn under_lease(MetaTxn step, const std::optional<Token>& mine);
/// Of a live directory that nobody holds; with `names_behind`, names may be written behind from then on.
MetaTxn take_directory_lease(Ino directory, Token tenure, bool names_behind);
/// For Instance::run_repeatable: of one's own, or of an instance that is expired. No tenure is ever the same again.
MetaTxn release_directory_lease(Ino directory, Token tenure);

/// Seals a directory that was seen empty at that version.
MetaTxn seal(Ino directory, std::uint64_t version, const format::StateRecord& sealed);
MetaTxn unseal(Ino directory, const format::StateRecord& sealed);
MetaTxn mark_dead(Ino directory, const format::StateRecord& sealed);
/// A settler's word: the step that sealed `ino` and has not committed in `parent` never will.
MetaTxn cancel_seal(Ino parent, Ino ino, Token token);
/// For Instance::run_repeatable; by the owner of the token, once its step is decided.
MetaTxn remove_decision(Ino parent, Token token);

}  // namespace lccfs::txn
