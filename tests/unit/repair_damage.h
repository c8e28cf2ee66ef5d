// SPDX-License-Identifier: LGPL-2.1-or-later
// A small volume, and all the ways to damage it by hand: one or more for each kind of finding.
#pragma once

#include "repair_volume.h"

namespace lccfs::test {

using Names = std::vector<std::string>;

/// /d/file (two objects), /d/sub/deep, /link, /plain (an attribute), /fifo; /gone was unlinked.
class SmallVolume {
 public:
  SmallVolume() : volume(small_objects(), {.page_limit = 3}) {
    auto mount = volume.mount();
    auto& fs = *mount.file_system;
    d = make_dir(fs, root_ino, "d");
    sub = make_dir(fs, d, "sub");
    file = make_file(fs, d, "file");
    deep = make_file(fs, sub, "deep");
    plain = make_file(fs, root_ino, "plain");
    gone = make_file(fs, root_ino, "gone");
    link = need(fs.make_node({}, root_ino, "link", {FileType::symlink, 0, 0, "target"})).attributes.ino;
    fifo = need(fs.make_node({}, root_ino, "fifo", {FileType::fifo, 0600, 0, {}})).attributes.ino;
    write(fs, file, std::string(object_bytes, 'f') + "end");
    write(fs, deep, "deep");
    write(fs, gone, "gone");
    need(fs.set_xattr(plain, "user.colour", "blue", XattrMode::create));
    need(fs.unlink(root_ino, "gone"));
    need(fs.unmount());
    const auto super = objects_of("Super").xattrs.at("super");
    uuid = need(format::decode<format::SuperRecord>(super)).uuid;
    me = InstanceId{first_instance()};
  }

  scripted::MetaObject objects_of(const std::string& name) {
    scripted::MetaObject object;
    volume.cluster().with_objects([&](scripted::Objects& objects) { object = objects.metadata().at(name); });
    return object;
  }
  std::string key(const std::string& name) const { return format::entry_key(uuid, name); }
  Bytes entry(Ino ino, FileType type) const { return encode(format::EntryRecord{ino, type, {me, 7}}); }

  TestVolume volume;
  format::VolumeUuid uuid{};
  InstanceId me;
  Ino d, sub, file, deep, plain, gone, link, fifo;

 private:
  static void write(FileSystem& fs, Ino ino, const std::string& bytes) {
    const auto opened = need(fs.open({}, ino, O_RDWR));
    need(write_at(fs, opened.handle, 0, bytes));
    close_file(fs, opened.handle);
  }
  std::uint64_t first_instance() {
    std::uint64_t number = 0;
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      for (const auto& [name, object] : objects.metadata()) {
        if (name.starts_with("Session.")) number = std::stoull(name.substr(8));
      }
    });
    return number;
  }
};

/// One way to damage that volume.
struct Damage {
  std::string what;
  std::function<void(SmallVolume&, scripted::Objects&)> harm;
  /// Findings by kind and object ("Inode.d" and so on); all others come with it.
  std::function<std::string(const SmallVolume&)> finding;
  /// Objects that need not be as they were before the damage.
  std::function<Names(const SmallVolume&)> changed = [](const SmallVolume&) { return Names{}; };
  repair::Orphans orphans = repair::Orphans::keep;
  bool left = false;
};

std::vector<Damage> all_damage();

}  // namespace lccfs::test
