// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair_damage.h"

#include "support/newer_record.h"

namespace lccfs::test {

using repair::Orphans;
using scripted::MetaObject;
using scripted::Objects;

namespace {

const Bytes marker{format::marker_value};
const Bytes noise = "noise of some length";

std::string inode(Ino ino) { return format::inode_object(ino); }
MetaObject& object(Objects& objects, Ino ino) { return objects.metadata().at(inode(ino)); }

/// Takes the name away as if it had never been there, the inode stays.
void drop_name(SmallVolume& v, Objects& objects, Ino parent, const std::string& name, Ino ino) {
  object(objects, parent).keys.erase(v.key(name));
  object(objects, parent).keys.erase(format::reverse_key(ino, name));
}
void put_name(SmallVolume& v, Objects& objects, Ino parent, const std::string& name, Ino ino, FileType type) {
  object(objects, parent).keys[v.key(name)] = v.entry(ino, type);
  object(objects, parent).keys[format::reverse_key(ino, name)] = marker;
}
void set_nsub(Objects& objects, Ino ino, std::uint64_t value) {
  object(objects, ino).xattrs["nsub"] = encode(format::NumberRecord{value});
}
void set_nlink(Objects& objects, Ino ino, std::uint32_t value) {
  auto attr = need(format::decode<format::AttrRecord>(object(objects, ino).xattrs.at("attr")));
  attr.nlink = value;
  object(objects, ino).xattrs["attr"] = encode(attr);
}
/// Of a directory below /d, as a rmdir leaves it that has not got any further.
Bytes sealed(const SmallVolume& v, const std::string& name) {
  return encode(format::StateRecord{format::StateRecord::Kind::sealed, {v.me, 900}, v.d, name});
}
Bytes dead() {
  format::StateRecord state;
  state.kind = format::StateRecord::Kind::dead;
  return encode(state);
}

/// An xattr of an inode made noise; `changed`: it is not as before then.
Damage noise_in(const std::string& xattr, Ino SmallVolume::*ino, bool changed, bool left = false) {
  return {"noise in " + xattr,
          [=](SmallVolume& v, Objects& o) { object(o, v.*ino).xattrs[xattr] = noise; },
          [=](const SmallVolume& v) { return "corrupt: " + inode(v.*ino); },
          [=](const SmallVolume& v) { return changed ? Names{inode(v.*ino)} : Names{}; },
          Orphans::keep,
          left};
}
Damage missing(const std::string& xattr, Ino SmallVolume::*ino, bool changed, bool left = false) {
  return {"without " + xattr,
          [=](SmallVolume& v, Objects& o) { object(o, v.*ino).xattrs.erase(xattr); },
          [=](const SmallVolume& v) { return "missing part: " + inode(v.*ino); },
          [=](const SmallVolume& v) { return changed ? Names{inode(v.*ino)} : Names{}; },
          Orphans::keep,
          left};
}

std::vector<Damage> damaged_xattrs() {
  std::vector<Damage> all;
  for (const char* time : {"atime", "mtime", "ctime"}) {
    all.push_back(noise_in(time, &SmallVolume::file, true));
    all.push_back(missing(time, &SmallVolume::file, true));
  }
  all.push_back(noise_in("state", &SmallVolume::file, false));
  all.push_back(missing("state", &SmallVolume::d, false));
  all.push_back(noise_in("parent", &SmallVolume::deep, false));
  all.push_back(noise_in("parent", &SmallVolume::sub, false));
  all.push_back(noise_in("size", &SmallVolume::link, false));
  all.push_back(missing("size", &SmallVolume::link, false));
  all.push_back(noise_in("nsub", &SmallVolume::d, false));
  all.push_back(missing("nsub", &SmallVolume::d, false));
  all.push_back(noise_in("lease", &SmallVolume::file, false));
  all.push_back(noise_in("lease", &SmallVolume::d, false));
  all.push_back(noise_in("behind", &SmallVolume::d, false));
  all.push_back(noise_in("fence", &SmallVolume::file, true));
  all.push_back(noise_in("attr", &SmallVolume::file, true, true));
  all.push_back(missing("attr", &SmallVolume::file, true, true));
  all.push_back(noise_in("size", &SmallVolume::file, true, true));
  all.push_back(missing("size", &SmallVolume::file, true, true));
  all.push_back({"a newer record",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).xattrs["mtime"] = record_of_newer_version(); },
                 [](const SmallVolume& v) { return "newer version: " + inode(v.file); },
                 [](const SmallVolume& v) { return Names{inode(v.file)}; }, Orphans::keep, true});
  all.push_back({"an xattr of nobody's", [](SmallVolume& v, Objects& o) { object(o, v.file).xattrs["colour"] = "red"; },
                 [](const SmallVolume& v) { return "unknown part: " + inode(v.file); }});
  all.push_back({"a key of nobody's", [](SmallVolume& v, Objects& o) { object(o, v.file).keys["z/1"] = "red"; },
                 [](const SmallVolume& v) { return "unknown part: " + inode(v.file); }});
  all.push_back({"locks that nobody can read",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).keys["k/7"] = "red"; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); }});
  all.push_back({"a lock state that nobody can read",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).xattrs["locks"] = "red"; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); }});
  all.push_back({"an opener's key with another value",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).keys["o/7"] = "red"; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); }});
  all.push_back({"a symlink that an opener has open",
                 [](SmallVolume& v, Objects& o) { object(o, v.link).keys["o/7"] = "\1"; },
                 [](const SmallVolume& v) { return "unknown part: " + inode(v.link); }});
  all.push_back({"a token of the lease that nobody can read",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).xattrs["taken"] = "red"; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); },
                 [](const SmallVolume& v) { return Names{inode(v.file)}; }});
  all.push_back({"an xattr of other types", [](SmallVolume& v, Objects& o) { set_nsub(o, v.file, 0); },
                 [](const SmallVolume& v) { return "unknown part: " + inode(v.file); }});
  all.push_back({"a long key of nobody's",
                 [](SmallVolume& v, Objects& o) { object(o, v.file).keys["z/1"] = Bytes(64U << 10, 'r'); },
                 [](const SmallVolume& v) { return "unknown part: " + inode(v.file); }});
  all.push_back({"a long payload", [](SmallVolume& v, Objects& o) { object(o, v.file).payload = Bytes(5000, 'r'); },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); }});
  all.push_back({"a payload", [](SmallVolume& v, Objects& o) { object(o, v.file).payload = "red"; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.file); }});
  all.push_back({"a symlink's size is wrong",
                 [](SmallVolume& v, Objects& o) { object(o, v.link).xattrs["size"] = encode(format::NumberRecord{3}); },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.link); }});
  all.push_back({"an attribute that attr denies",
                 [](SmallVolume& v, Objects& o) { object(o, v.link).keys["u/security.capability"] = "\1x"; },
                 [](const SmallVolume& v) { return "denied attribute: " + inode(v.link); },
                 [](const SmallVolume& v) { return Names{inode(v.link)}; }});
  return all;
}

/// `changed`: what is derived is not all that was there.
Damage noise_in_key(const std::string& what, Ino SmallVolume::*ino,
                    const std::function<std::string(const SmallVolume&)>& key, bool changed) {
  return {"noise in " + what, [=](SmallVolume& v, Objects& o) { object(o, v.*ino).keys[key(v)] = noise; },
          [=](const SmallVolume& v) { return "corrupt: " + inode(v.*ino); },
          [=](const SmallVolume& v) { return changed ? Names{inode(v.*ino)} : Names{}; }};
}

/// The name alone: the hash before it stays.
void rename_entry(SmallVolume& v, Objects& o, const std::string& name, const std::string& changed) {
  auto entry = object(o, v.d).keys.extract(v.key(name));
  entry.key().replace(entry.key().size() - name.size(), name.size(), changed);
  object(o, v.d).keys.insert(std::move(entry));
}

std::vector<Damage> damaged_keys() {
  const auto key_of = [](const std::string& name) { return [=](const SmallVolume& v) { return v.key(name); }; };
  std::vector<Damage> all;
  all.push_back(noise_in_key("an entry", &SmallVolume::d, key_of("file"), false));
  all.push_back(noise_in_key("an entry of a directory", &SmallVolume::d, key_of("sub"), false));
  all.push_back(noise_in_key("an entry of nothing", &SmallVolume::d, key_of("new"), false));
  all.push_back(noise_in_key(
      "a reverse key", &SmallVolume::d, [](const SmallVolume& v) { return format::reverse_key(v.file, "file"); },
      false));
  all.push_back(noise_in_key(
      "a reverse key of nothing", &SmallVolume::d,
      [](const SmallVolume& v) { return format::reverse_key(v.file, "other"); }, false));
  all.push_back(noise_in_key(
      "a map block", &SmallVolume::file, [](const SmallVolume&) { return format::map_key(0); }, true));
  all.push_back(noise_in_key(
      "a map block of nothing", &SmallVolume::file, [](const SmallVolume&) { return format::map_key(9); }, false));
  for (const std::uint64_t block : {std::uint64_t{1} << 37, std::uint64_t{1} << 54}) {
    for (const Bytes& value : {noise, encode(format::MapBlock{})}) {
      all.push_back({"a map block that no file reaches",
                     [=](SmallVolume& v, Objects& o) { object(o, v.file).keys[format::map_key(block)] = value; },
                     [](const SmallVolume& v) { return "unknown part: " + inode(v.file); }});
    }
  }
  all.push_back(noise_in_key(
      "a step number", &SmallVolume::file, [](const SmallVolume&) { return "l/9"; }, false));
  all.push_back(noise_in_key(
      "a back-pointer", &SmallVolume::file,
      [](const SmallVolume& v) {
        return format::back_pointer_key(v.d, {v.me, 3});
      },
      true));
  all.push_back({"an entry under a wrong hash",
                 [](SmallVolume& v, Objects& o) {
                   auto entry = object(o, v.d).keys.extract(v.key("file"));
                   entry.key() = "n/0000000000000003/file";
                   object(o, v.d).keys.insert(std::move(entry));
                 },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.d); }});
  for (const auto& [name, changed] : {std::pair{"sub", "aub"}, {"sub", "zub"}, {"file", "fila"}}) {
    all.push_back({std::string("an entry for ") + name + " as " + changed,
                   [=](SmallVolume& v, Objects& o) { rename_entry(v, o, name, changed); },
                   [](const SmallVolume& v) { return "corrupt: " + inode(v.d); }});
  }
  all.push_back({"an attribute's first byte",
                 [](SmallVolume& v, Objects& o) { object(o, v.plain).keys.at("u/user.colour")[0] = 'x'; },
                 [](const SmallVolume& v) { return "corrupt: " + inode(v.plain); }});
  all.push_back({"a decision is noise", [](SmallVolume&, Objects& o) { object(o, root_ino).keys["x/9.9"] = noise; },
                 [](const SmallVolume&) { return "corrupt: Inode.1"; },
                 [](const SmallVolume&) { return Names{"Inode.1"}; }});
  return all;
}

void harm_claimed_entry(SmallVolume& v, Objects& o) {
  object(o, v.d).keys[v.key("file")] = noise;
  object(o, v.d).keys[format::reverse_key(v.sub, "file")] = marker;
}

/// /d/file has a further name in /d that nobody can read.
void add_unreadable_name(SmallVolume& v, Objects& o, const Bytes& value) {
  object(o, v.d).keys[v.key("again")] = value;
  object(o, v.d).keys[format::reverse_key(v.file, "again")] = marker;
  set_nlink(o, v.file, 2);
}
/// So has /plain; one of the two.
void add_name_of_one_of_two(SmallVolume& v, Objects& o) {
  add_unreadable_name(v, o, noise);
  object(o, v.d).keys[format::reverse_key(v.plain, "again")] = marker;
  object(o, v.plain).keys[format::back_pointer_key(v.d, {v.me, 3})] = marker;
  set_nlink(o, v.plain, 2);
}

/// A file or directory in /d.
Damage only_name_is_newer(const std::string& name) {
  return {"a name that a newer version has written, the only one of " + name,
          [=](SmallVolume& v, Objects& o) { object(o, v.d).keys[v.key(name)] = entry_of_newer_version(); },
          [](const SmallVolume& v) { return "newer version: " + inode(v.d); },
          [](const SmallVolume& v) { return Names{inode(v.d)}; },
          Orphans::keep,
          true};
}

Damage nameless_of_a_newer_version(const std::string& xattr, Ino SmallVolume::*ino, Ino parent, const std::string& name,
                                   Orphans orphans) {
  return {"a nameless inode, whose " + xattr + " a newer version has written",
          [=](SmallVolume& v, Objects& o) {
            drop_name(v, o, parent, name, v.*ino);
            object(o, v.*ino).xattrs[xattr] = record_of_newer_version();
          },
          [=](const SmallVolume& v) { return "orphan: " + inode(v.*ino); },
          [=](const SmallVolume& v) {
            return Names{inode(parent), inode(v.*ino)};
          },
          orphans,
          true};
}

void point_back_beside_a_newer(SmallVolume& v, Objects& o, Ino ino, const std::vector<Ino>& parents) {
  object(o, ino).xattrs["parent"] = record_of_newer_version();
  for (const Ino parent : parents) object(o, ino).keys[format::back_pointer_key(parent, {v.me, 3})] = marker;
}

Damage reverse_key_of_no_name(const std::string& name) {
  return {"a reverse key named " + name,
          [=](SmallVolume& v, Objects& o) {
            drop_name(v, o, v.d, "file", v.file);
            object(o, v.d).keys[format::reverse_key(v.file, name)] = marker;
          },
          [](const SmallVolume& v) { return "unknown part: " + inode(v.d); },
          [](const SmallVolume& v) {
            return Names{"Inode.1", inode(v.d), inode(v.file)};
          }};
}

std::vector<Damage> damaged_names() {
  return {
      reverse_key_of_no_name("."),
      reverse_key_of_no_name(".."),
      {"a name that a newer version has written, one of two",
       [](SmallVolume& v, Objects& o) { add_unreadable_name(v, o, entry_of_newer_version()); },
       [](const SmallVolume& v) { return "newer version: " + inode(v.d); },
       [](const SmallVolume& v) {
         return Names{inode(v.d), inode(v.file)};
       },
       Orphans::keep, true},
      only_name_is_newer("file"),
      only_name_is_newer("sub"),
      nameless_of_a_newer_version("state", &SmallVolume::plain, root_ino, "plain", Orphans::keep),
      nameless_of_a_newer_version("parent", &SmallVolume::link, root_ino, "link", Orphans::keep),
      nameless_of_a_newer_version("parent", &SmallVolume::link, root_ino, "link", Orphans::remove),
      {"a directory with two names, whose back-pointer a newer version has written",
       [](SmallVolume& v, Objects& o) {
         put_name(v, o, root_ino, "again", v.sub, FileType::directory);
         set_nsub(o, root_ino, 2);
         point_back_beside_a_newer(v, o, v.sub, {root_ino, v.d});
       },
       [](const SmallVolume& v) { return "newer version: " + inode(v.sub); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.sub)};
       },
       Orphans::keep, true},
      {"a loop of directories, and a newer version has written a back-pointer",
       [](SmallVolume& v, Objects& o) {
         drop_name(v, o, root_ino, "d", v.d);
         set_nsub(o, root_ino, 0);
         put_name(v, o, v.sub, "up", v.d, FileType::directory);
         set_nsub(o, v.sub, 1);
         point_back_beside_a_newer(v, o, v.d, {v.sub});
       },
       [](const SmallVolume& v) { return "unreachable: " + inode(v.d); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.sub)};
       },
       Orphans::keep, true},
      {"an entry of noise that two inodes claim, and each misses a name", add_name_of_one_of_two,
       [](const SmallVolume& v) { return "wrong links: " + inode(v.plain); },

       [](const SmallVolume& v) {
         return Names{inode(v.d), inode(v.file), inode(v.plain)};
       },
       Orphans::keep, true},
      {"a dangling entry",
       [](SmallVolume& v, Objects& o) { put_name(v, o, v.d, "lost", Ino{1000}, FileType::regular); },
       [](const SmallVolume& v) { return "dangling entry: " + inode(v.d); }},
      {"an entry of a dead inode", [](SmallVolume& v, Objects& o) { object(o, v.fifo).xattrs["state"] = dead(); },
       [](const SmallVolume&) { return "dangling entry: Inode.1"; },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.fifo)};
       }},
      {"an entry of another type",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys[v.key("file")] = v.entry(v.file, FileType::fifo); },
       [](const SmallVolume& v) { return "wrong type: " + inode(v.d); },
       [](const SmallVolume& v) { return Names{inode(v.d)}; }},
      {"a directory's entry of another type",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys[v.key("sub")] = v.entry(v.sub, FileType::fifo); },
       [](const SmallVolume& v) { return "wrong type: " + inode(v.d); },
       [](const SmallVolume& v) { return Names{inode(v.d)}; }},
      {"no reverse key",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys.erase(format::reverse_key(v.file, "file")); },
       [](const SmallVolume& v) { return "reverse key: " + inode(v.d); }},
      {"no entry for a file", [](SmallVolume& v, Objects& o) { object(o, v.d).keys.erase(v.key("file")); },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); }},
      {"no entry for a directory", [](SmallVolume& v, Objects& o) { object(o, v.d).keys.erase(v.key("sub")); },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); }},
      {"no entry for a file, and noise in its back-pointer",
       [](SmallVolume& v, Objects& o) {
         object(o, v.d).keys.erase(v.key("file"));
         object(o, v.file).xattrs["parent"] = noise;
       },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); },
       [](const SmallVolume&) { return Names{}; }, Orphans::remove},
      {"no entry for a directory, and noise in its back-pointer",
       [](SmallVolume& v, Objects& o) {
         object(o, v.d).keys.erase(v.key("sub"));
         object(o, v.sub).xattrs["parent"] = noise;
       },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); }},
      {"a reverse key of an inode with a name",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys[format::reverse_key(v.file, "other")] = marker; },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); }},
      {"a reverse key of no inode",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys[format::reverse_key(Ino{1000}, "other")] = marker; },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); }},
      {"a reverse key whose name means another",
       [](SmallVolume& v, Objects& o) { object(o, v.d).keys[v.key("file")] = v.entry(v.plain, FileType::regular); },
       [](const SmallVolume& v) { return "stray reverse key: " + inode(v.d); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.file), inode(v.plain)};
       }},
      {"an entry of noise, whose name an inode with all its names claims, too", harm_claimed_entry,
       [](const SmallVolume& v) { return "corrupt: " + inode(v.d); }},
      {"an entry of noise, whose name another claims, and a user who wants no orphans", harm_claimed_entry,
       [](const SmallVolume& v) { return "corrupt: " + inode(v.d); }, [](const SmallVolume&) { return Names{}; },
       Orphans::remove},
      {"a wrong count of subdirectories", [](SmallVolume& v, Objects& o) { set_nsub(o, v.d, 7); },
       [](const SmallVolume& v) { return "number of subdirectories: " + inode(v.d); }},
      {"a directory with two names",
       [](SmallVolume& v, Objects& o) {
         put_name(v, o, root_ino, "again", v.sub, FileType::directory);
         set_nsub(o, root_ino, 2);
       },
       [](const SmallVolume&) { return "directory with several names: Inode.1"; },
       [](const SmallVolume& v) { return Names{inode(v.sub)}; }},
      {"the root with a name",
       [](SmallVolume& v, Objects& o) {
         put_name(v, o, v.d, "up", root_ino, FileType::directory);
         set_nsub(o, v.d, 2);
       },
       [](const SmallVolume& v) { return "directory with several names: " + inode(v.d); }},
      {"a back-pointer to elsewhere",
       [](SmallVolume& v, Objects& o) {
         object(o, v.file).xattrs["parent"] = encode(format::BackPointerRecord{v.sub, {v.me, 3}});
       },
       [](const SmallVolume& v) { return "no back-pointer: " + inode(v.file); },
       [](const SmallVolume& v) { return Names{inode(v.file)}; }},
      {"a wrong number of links", [](SmallVolume& v, Objects& o) { set_nlink(o, v.file, 3); },
       [](const SmallVolume& v) { return "wrong links: " + inode(v.file); }},
  };
}

std::vector<Damage> lost_inodes() {
  const auto root_and = [](Ino SmallVolume::*ino) {
    return [=](const SmallVolume& v) { return Names{"Inode.1", inode(v.*ino)}; };
  };
  const auto lost_link = [](SmallVolume& v, Objects& o) { drop_name(v, o, root_ino, "link", v.link); };
  return {
      {"a nameless symlink", lost_link, [](const SmallVolume& v) { return "orphan: " + inode(v.link); },
       root_and(&SmallVolume::link)},
      {"a nameless symlink that nobody wants", lost_link,
       [](const SmallVolume& v) { return "orphan: " + inode(v.link); }, root_and(&SmallVolume::link), Orphans::remove},
      {"a nameless empty file", [](SmallVolume& v, Objects& o) { drop_name(v, o, root_ino, "plain", v.plain); },
       [](const SmallVolume& v) { return "orphan: " + inode(v.plain); }, root_and(&SmallVolume::plain)},
      {"a nameless file with content", [](SmallVolume& v, Objects& o) { drop_name(v, o, v.d, "file", v.file); },
       [](const SmallVolume& v) { return "orphan: " + inode(v.file); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.file)};
       }},
      {"a nameless file with content that nobody wants",
       [](SmallVolume& v, Objects& o) { drop_name(v, o, v.d, "file", v.file); },
       [](const SmallVolume& v) { return "orphan: " + inode(v.file); },
       [](const SmallVolume& v) {
         return Names{inode(v.d), inode(v.file), format::data_object(v.file, {0}), format::data_object(v.file, {1})};
       },
       Orphans::remove},
      {"a lost directory with content",
       [](SmallVolume& v, Objects& o) {
         drop_name(v, o, root_ino, "d", v.d);
         set_nsub(o, root_ino, 0);
       },
       [](const SmallVolume& v) { return "unreachable: " + inode(v.d); }, root_and(&SmallVolume::d)},
      {"a loop of directories",
       [](SmallVolume& v, Objects& o) {
         drop_name(v, o, root_ino, "d", v.d);
         set_nsub(o, root_ino, 0);
         put_name(v, o, v.sub, "up", v.d, FileType::directory);
         set_nsub(o, v.sub, 1);
         object(o, v.d).xattrs["parent"] = encode(format::BackPointerRecord{v.sub, {v.me, 3}});
       },
       [](const SmallVolume& v) { return "unreachable: " + inode(v.d); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.sub)};
       }},
      {"a missing inode with a name and no data", [](SmallVolume& v, Objects& o) { o.metadata().erase(inode(v.fifo)); },
       [](const SmallVolume&) { return "dangling entry: Inode.1"; }, root_and(&SmallVolume::fifo)},
      {"a missing inode with a name and data", [](SmallVolume& v, Objects& o) { o.metadata().erase(inode(v.file)); },
       [](const SmallVolume& v) { return "data without inode: " + format::data_object(v.file, {0}); },
       [](const SmallVolume& v) { return Names{inode(v.file)}; }},
      {"data without anything else", [](SmallVolume&, Objects& o) { o.write("Data.1000.2", 0, std::string("tail")); },
       [](const SmallVolume&) { return "data without inode: Data.1000.2"; },
       [](const SmallVolume&) {
         return Names{"Data.1000.2", "Inode.1"};
       }},
      {"data of a directory",
       [](SmallVolume& v, Objects& o) { o.write(format::data_object(v.d, {1}), 0, std::string("tail")); },
       [](const SmallVolume& v) { return "data without inode: " + format::data_object(v.d, {1}); },
       [](const SmallVolume&) { return Names{"Inode.1"}; }},
      {"unmapped data", [](SmallVolume& v, Objects& o) { object(o, v.file).keys.erase(format::map_key(0)); },
       [](const SmallVolume& v) { return "unmapped data: " + format::data_object(v.file, {0}); },
       [](const SmallVolume& v) { return Names{inode(v.file)}; }},
      {"unmapped data past the size",
       [](SmallVolume& v, Objects& o) { o.write(format::data_object(v.file, {5}), 0, std::string("tail")); },
       [](const SmallVolume& v) { return "unmapped data: " + format::data_object(v.file, {5}); },
       [](const SmallVolume&) { return Names{"Inode.1"}; }},
      {"bytes past the size",
       [](SmallVolume& v, Objects& o) { o.write(format::data_object(v.file, {1}), 3, std::string("tail")); },
       [](const SmallVolume& v) { return "data past the size: " + format::data_object(v.file, {1}); },
       [](const SmallVolume&) { return Names{"Inode.1"}; }},
  };
}

std::vector<Damage> damaged_volume_objects() {
  const auto root = [](const SmallVolume&) { return Names{"Inode.1"}; };
  return {
      {"no Alloc", [](SmallVolume&, Objects& o) { o.metadata().erase("Alloc"); },
       [](const SmallVolume&) { return "missing object: Alloc"; }},
      {"noise in Alloc", [](SmallVolume&, Objects& o) { o.metadata().at("Alloc").xattrs["next"] = noise; },
       [](const SmallVolume&) { return "corrupt: Alloc"; }},
      {"an empty Alloc", [](SmallVolume&, Objects& o) { o.metadata().at("Alloc").xattrs.clear(); },
       [](const SmallVolume&) { return "missing part: Alloc"; }},
      {"Alloc that hands out 0",
       [](SmallVolume&, Objects& o) { o.metadata().at("Alloc").xattrs["next"] = encode(format::NumberRecord{0}); },
       [](const SmallVolume&) { return "corrupt: Alloc"; }},
      {"Alloc that hands out the last numbers there are",
       [](SmallVolume&, Objects& o) {
         o.metadata().at("Alloc").xattrs["next"] = encode(format::NumberRecord{~std::uint64_t{0} - 5});
       },
       [](const SmallVolume&) { return "corrupt: Alloc"; }},
      {"Alloc behind",
       [](SmallVolume&, Objects& o) { o.metadata().at("Alloc").xattrs["next"] = encode(format::NumberRecord{4}); },
       [](const SmallVolume&) { return "number not handed out: Alloc"; }},
      {"no Super",
       [](SmallVolume&, Objects& o) { o.metadata().erase("Super"); },
       [](const SmallVolume&) { return "missing object: Super"; },
       {},
       Orphans::keep,
       true},
      {"noise in Super",
       [](SmallVolume&, Objects& o) { o.metadata().at("Super").xattrs["super"] = noise; },
       [](const SmallVolume&) { return "corrupt: Super"; },
       {},
       Orphans::keep,
       true},
      {"noise in the fence counter",
       [](SmallVolume&, Objects& o) { o.metadata().at("Super").xattrs["fences"] = noise; },
       [](const SmallVolume&) { return "corrupt: Super"; }},
      {"a new Super, in which there is but a copy of the volume's own record",
       [](SmallVolume&, Objects& o) {
         auto& super = o.metadata().at("Super");
         super.xattrs.erase("fences");
         super.keys.clear();
       },
       [](const SmallVolume&) { return "missing part: Super"; }, root},
      {"a fence counter that would begin again at 0",
       [](SmallVolume&, Objects& o) {
         o.metadata().at("Super").xattrs["fences"] = encode(format::NumberRecord{~std::uint64_t{0}});
       },
       [](const SmallVolume&) { return "corrupt: Super"; }},
      {"more fences than there can be, on an inode",
       [](SmallVolume& v, Objects& o) {
         object(o, v.file).xattrs["fence"] = encode(format::NumberRecord{~std::uint64_t{0}});
       },
       [](const SmallVolume& v) { return "corrupt: " + inode(v.file); },
       [](const SmallVolume& v) { return Names{inode(v.file)}; }},
      {"fences behind",
       [](SmallVolume& v, Objects& o) { object(o, v.file).xattrs["fence"] = encode(format::NumberRecord{5}); },
       [](const SmallVolume&) { return "fence counter behind: Super"; },
       [](const SmallVolume& v) { return Names{inode(v.file)}; }},
      {"something else in Super",
       [](SmallVolume&, Objects& o) {
         auto& super = o.metadata().at("Super");
         super.keys["q/1"] = "x";
         super.xattrs["q"] = "x";
         super.payload = "x";
       },
       [](const SmallVolume&) { return "unknown part: Super"; }},
      {"no root", [](SmallVolume&, Objects& o) { o.metadata().erase("Inode.1"); },
       [](const SmallVolume&) { return "missing object: Inode.1"; },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.link), inode(v.fifo), inode(v.plain)};
       }},
      {"no root, and a user who wants no orphans", [](SmallVolume&, Objects& o) { o.metadata().erase("Inode.1"); },
       [](const SmallVolume&) { return "missing object: Inode.1"; },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.d), inode(v.link), inode(v.fifo), inode(v.plain)};
       },
       Orphans::remove},
      {"a dead root", [](SmallVolume&, Objects& o) { object(o, root_ino).xattrs["state"] = dead(); },
       [](const SmallVolume&) { return "corrupt: Inode.1"; }},
      {"a sealed root", [](SmallVolume& v, Objects& o) { object(o, root_ino).xattrs["state"] = sealed(v, "root"); },
       [](const SmallVolume&) { return "corrupt: Inode.1"; }},
      {"a sealed root to which nothing leads",
       [](SmallVolume& v, Objects& o) {
         object(o, root_ino).xattrs["state"] = sealed(v, "root");
         o.metadata().at(format::session_object(v.me)).keys.clear();
       },
       [](const SmallVolume&) { return "corrupt: Inode.1"; }, root},
      {"noise in an instance's record",
       [](SmallVolume& v, Objects& o) { o.metadata().at("Super").keys[format::instance_key(v.me)] = noise; },
       [](const SmallVolume&) { return "corrupt: Super"; }, root},
      {"no record of an instance",
       [](SmallVolume& v, Objects& o) { o.metadata().at("Super").keys.erase(format::instance_key(v.me)); },
       [](const SmallVolume& v) { return "stray session: " + format::session_object(v.me); }, root},
      {"noise in the queue",
       [](SmallVolume& v, Objects& o) {
         for (auto& [key, value] : o.metadata().at(format::session_object(v.me)).keys) value = noise;
       },
       [](const SmallVolume& v) { return "corrupt: " + format::session_object(v.me); },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.gone)};
       }},
      {"a range of more numbers than any client takes, in the queue",
       [](SmallVolume& v, Objects& o) {
         o.metadata().at(format::session_object(v.me)).keys[format::queue_key(900)] =
             encode(format::QueueItem{format::QueueItem::Kind::range, Ino{5}, Ino{std::uint64_t{1} << 60}, {}});
       },
       [](const SmallVolume& v) { return "corrupt: " + format::session_object(v.me); }},
      {"an empty queue", [](SmallVolume& v, Objects& o) { o.metadata().at(format::session_object(v.me)).keys.clear(); },
       [](const SmallVolume&) { return "lost trace: Inode.1"; },
       [](const SmallVolume& v) {
         return Names{"Inode.1", inode(v.gone)};
       }},
      {"a seal that nobody settles",
       [](SmallVolume& v, Objects& o) { object(o, v.sub).xattrs["state"] = sealed(v, "sub"); },
       [](const SmallVolume& v) { return "lost trace: " + inode(v.sub); },
       [](const SmallVolume& v) {
         return Names{inode(v.d), inode(v.sub)};
       }},
      {"an object of another program",
       [](SmallVolume&, Objects& o) { o.write("rbd_data.1/\1", 3, std::string("theirs")); },
       [](const SmallVolume&) { return "unknown object: rbd_data.1/\1"; }, root},
      {"an object of another program with a name that no file can have",
       [](SmallVolume&, Objects& o) { o.write("..", 3, std::string("theirs")); },
       [](const SmallVolume&) { return "unknown object: .."; }, root},
      {"an object of another program whose name looks escaped",
       [](SmallVolume&, Objects& o) { o.write("a\\x41\xff", 3, std::string("theirs")); },
       [](const SmallVolume&) { return "unknown object: a\\x41\xff"; }, root},
      {"an object of another program that is named like a session",
       [](SmallVolume&, Objects& o) { o.write("Session.foo", 3, std::string("theirs")); },
       [](const SmallVolume&) { return "unknown object: Session.foo"; }, root},
      {"an object without bytes of another program in the data pool",
       [](SmallVolume&, Objects& o) { o.write("rbd_header", 0, std::string()); },
       [](const SmallVolume&) { return "unknown object: rbd_header"; },
       {},
       Orphans::keep,
       true},
      {"an empty object of another program", [](SmallVolume&, Objects& o) { o.metadata()["rbd_directory"]; },
       [](const SmallVolume&) { return "unknown object: rbd_directory"; }},
      {"an object with keys of another program",
       [](SmallVolume&, Objects& o) { o.metadata()["rbd_directory"].keys["k"] = "v"; },
       [](const SmallVolume&) { return "unknown object: rbd_directory"; },
       [](const SmallVolume&) { return Names{"rbd_directory"}; }, Orphans::keep, true},
      {"an object with keys of another program that nobody wants",
       [](SmallVolume&, Objects& o) { o.metadata()["rbd_directory"].keys["k"] = "v"; },
       [](const SmallVolume&) { return "unknown object: rbd_directory"; },
       {},
       Orphans::remove},
  };
}

}  // namespace

std::vector<Damage> all_damage() {
  std::vector<Damage> all;
  for (auto* some : {&damaged_xattrs, &damaged_keys, &damaged_names, &lost_inodes, &damaged_volume_objects}) {
    for (auto& damage : (*some)()) all.push_back(std::move(damage));
  }
  return all;
}

}  // namespace lccfs::test
