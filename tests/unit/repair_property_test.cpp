// SPDX-License-Identifier: LGPL-2.1-or-later
// Random volumes with random damage: repaired, they are clean but for what is said to be left, can be mounted, and
// every file that the damage did not touch is as it was.
#include <random>
#include <set>

#include "repair_volume.h"

namespace lccfs {
namespace {

using namespace test;
using scripted::Objects;

constexpr unsigned seeds = 250;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  Bytes bytes(std::size_t size) {
    Bytes some(size, '\0');
    for (char& c : some) c = static_cast<char>(engine_());
    return some;
  }

 private:
  std::mt19937_64 engine_;
};

/// A tree made by a client that ended; its queue still leads to what it unlinked. Another may have crashed in it.
class RandomVolume {
 public:
  RandomVolume(TestVolume& volume, Random& random) : random_(random) {
    auto mount = volume.mount();
    fs_ = mount.file_system.get();
    for (unsigned i = 0; i < 25; ++i) act("n" + std::to_string(i));
    need(fs_->unmount());
    volume.cluster().with_objects([this](Objects& objects) {
      const auto next = objects.metadata().at("Alloc").xattrs.at("next");
      last_of_the_ended_ = Ino{need(format::decode<format::NumberRecord>(next)).value - 1};
    });
    if (random.one_in(3)) crash_in(volume);
  }
  Ino last_of_the_ended() const { return last_of_the_ended_; }

 private:
  void crash_in(TestVolume& volume) {
    auto mount = volume.mount();
    fs_ = mount.file_system.get();
    const NthMutation fault(static_cast<unsigned>(random_.below(20)),
                            {Fault::Kind::not_applied_and_crash, ErrorCode::io});
    mount.client->set_hook(fault);
    try {
      for (unsigned i = 0; !fault.reached(); ++i) act("m" + std::to_string(i));
    } catch (const std::runtime_error&) {  // it is dead
    }
    mount.file_system.reset();
    volume.clock().advance(std::chrono::seconds(61));
  }

  void act(const std::string& name) {
    const Ino parent = random_.of(directories_);
    switch (random_.below(8)) {
      case 0:
      case 1:
        directories_.push_back(make_dir(*fs_, parent, name));
        break;
      case 2:
        need(fs_->make_node({}, parent, name, {FileType::symlink, 0, 0, "to " + name}));
        break;
      case 3:
        if (!names_.empty()) remove(random_.below(names_.size()));
        break;
      case 4:
        if (!names_.empty()) rename(names_[random_.below(names_.size())], name);
        break;
      default:
        make_file_with_bytes(parent, name);
    }
  }
  void make_file_with_bytes(Ino parent, const std::string& name) {
    const auto made = need(fs_->create({7, 8}, parent, name, 0640, O_RDWR));
    names_.emplace_back(parent, name);
    const auto pieces = random_.below(3);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      need(write_at(*fs_, made.open.handle, random_.below(4 * object_bytes), random_.bytes(random_.below(500) + 1)));
    }
    close_file(*fs_, made.open.handle);
    if (random_.one_in(4)) {
      need(fs_->set_xattr(made.entry.attributes.ino, "user." + name, random_.bytes(20), XattrMode::create));
    }
  }
  void remove(std::size_t place) {
    need(fs_->unlink(names_[place].first, names_[place].second));
    names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(place));
  }
  void rename(std::pair<Ino, std::string>& name, const std::string& to) {
    need(fs_->rename(name.first, name.second, name.first, to, RenameMode::replace));
    name.second = to;
  }

  Random& random_;
  FileSystem* fs_ = nullptr;
  Ino last_of_the_ended_;
  std::vector<Ino> directories_{root_ino};
  std::vector<std::pair<Ino, std::string>> names_;
};

/// What a user has of a file, by its number.
struct File {
  std::string path;
  Attributes attributes;
  std::string content;
  std::vector<std::pair<std::string, Bytes>> xattrs;
};

Result<File> look_at(FileSystem& fs, Ino ino) {
  File file;
  LCCFS_TRY(const auto reply, fs.get_attributes(ino));
  file.attributes = reply.attributes;
  if (file.attributes.type == FileType::symlink) {
    LCCFS_TRY(file.content, fs.read_link(ino));
    return file;
  }
  LCCFS_TRY(file.content, content_of_file(fs, ino));
  LCCFS_TRY(const auto names, fs.list_xattrs(ino));
  for (const auto& name : names) {
    LCCFS_TRY(const auto value, fs.get_xattr(ino, name));
    file.xattrs.emplace_back(name, value);
  }
  return file;
}

bool is_empty_file(const File& file) {
  return file.attributes.type == FileType::regular && file.attributes.size_bytes == 0;
}

bool same(const File& a, const File& b) {
  const auto& x = a.attributes;
  const auto& y = b.attributes;
  return a.content == b.content && a.xattrs == b.xattrs && x.type == y.type && x.mode == y.mode && x.nlink == y.nlink &&
         x.uid == y.uid && x.gid == y.gid && x.size_bytes == y.size_bytes && x.blocks_512 == y.blocks_512 &&
         x.atime == y.atime && x.mtime == y.mtime && x.ctime == y.ctime;
}

struct Tree {
  std::map<Ino, File> files;                       // what is no directory
  std::map<Ino, std::set<Ino>> directories_above;  // of each of them
};

void walk(FileSystem& fs, Ino directory, const std::string& path, const std::set<Ino>& above, Tree& tree) {
  for (const auto& entry : listing(fs, directory)) {
    if (entry.name == "." || entry.name == "..") continue;
    if (entry.type == FileType::directory) {
      auto further = above;
      further.insert(entry.ino);
      walk(fs, entry.ino, path + "/" + entry.name, further, tree);
      continue;
    }
    auto file = need(look_at(fs, entry.ino));
    file.path = path + "/" + entry.name;
    tree.files.emplace(entry.ino, std::move(file));
    tree.directories_above.emplace(entry.ino, above);
  }
}

Tree tree_in(TestVolume& volume) {
  auto mount = volume.mount();
  Tree tree;
  walk(*mount.file_system, root_ino, "", {root_ino}, tree);
  need(mount->unmount());
  return tree;
}

/// Damages one object, and names it.
std::string damage(Objects& objects, Random& random) {
  if (random.one_in(5) && !objects.data().empty()) {
    auto object = objects.data().begin();
    std::advance(object, random.below(objects.data().size()));
    std::string name = object->first;
    if (random.one_in(2)) {
      objects.remove(name);
    } else {
      objects.write(name, random.below(2 * object_bytes), std::string("x"));
    }
    return name;
  }
  auto place = objects.metadata().begin();
  std::advance(place, random.below(objects.metadata().size()));
  std::string name = place->first;
  auto& object = place->second;
  auto& values = !object.keys.empty() && random.one_in(2) ? object.keys : object.xattrs;
  const auto kind = random.below(10);
  if (kind == 0 && name != "Super") {
    objects.metadata().erase(name);
  } else if (kind == 1) {
    const auto number = std::to_string(random.below(60) + 1);
    const std::vector<std::string> keys{"i/" + number + "/new",
                                        "p/" + number + "/2.9",
                                        "d/" + number + "/2.9",
                                        "x/2.9",
                                        "n/0000000000000007/new",
                                        "l/2",
                                        "k/1",
                                        "o/1",
                                        "q/1"};
    object.keys[random.of(keys)] = random.one_in(2) ? Bytes(format::marker_value) : random.bytes(31);
  } else if (values.empty()) {
    object.xattrs["new"] = "x";
  } else {
    auto value = values.begin();
    std::advance(value, random.below(values.size()));
    if (kind < 4) {
      values.erase(value);
    } else {
      const unsigned flips = random.one_in(4) ? 3 : 1;
      for (unsigned i = 0; i < flips; ++i) {
        char& byte = value->second[random.below(value->second.size())];
        byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
      }
    }
  }
  return name;
}

/// The inode that an object is, or belongs to.
std::optional<Ino> ino_of_object(const std::string& name) {
  const auto parsed = format::parse_object_name(name);
  if (!parsed) return std::nullopt;
  if (const auto* inode = std::get_if<format::InodeName>(&*parsed)) return inode->ino;
  if (const auto* data = std::get_if<format::DataName>(&*parsed)) return data->ino;
  return std::nullopt;
}

void check_seed(std::uint64_t seed) {
  Random random(seed);
  TestVolume volume(small_objects());
  const RandomVolume made(volume, random);
  const Tree before = tree_in(volume);
  std::set<Ino> touched;
  std::string all_damage;
  volume.cluster().with_objects([&](Objects& objects) {
    const auto count = 1 + random.below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto name = damage(objects, random);
      all_damage += " " + name;
      if (const auto ino = ino_of_object(name)) touched.insert(*ino);
    }
  });
  const auto found = findings_of(volume.cluster());
  const std::size_t at_once = random.one_in(4) ? 6 : 1000;
  const auto told = need(try_repair(volume.new_client(), volume.clock(), repair::Orphans::keep, at_once));
  if (told.report.left >= at_once) return;  // they leave no room for others
  INFO("seed " << seed << ": damaged" << all_damage << "\nfound:\n"
               << text_of(found) << "repaired:\n"
               << text_of(told.repaired) << "left:\n"
               << text_of(told.left));
  std::vector<std::string> left = told.left;
  for (auto& line : left) line = line.substr(0, line.find(": ", line.find(": ") + 2));
  std::ranges::sort(left);
  REQUIRE(findings_of(volume.cluster()) == left);
  const bool whole = std::ranges::none_of(left, [](const std::string& line) {
    return line.ends_with(": Super") || line.ends_with(": Alloc") || line.ends_with(": Inode.1");
  });
  if (!whole) return;
  auto mount = volume.mount();
  for (const auto& [ino, file] : before.files) {
    if (touched.contains(ino)) continue;
    const bool path_touched =
        std::ranges::any_of(before.directories_above.at(ino), [&](Ino above) { return touched.contains(above); });
    const auto now = look_at(*mount.file_system, ino);
    INFO(file.path << " is Inode." << ino.value);
    // All there was of it was its name; or its maker crashed, and the queue leads to whatever lost its name.
    if (path_touched && !now && (is_empty_file(file) || ino > made.last_of_the_ended())) continue;
    REQUIRE(now.has_value());
    REQUIRE(same(file, *now));
    if (!path_touched) REQUIRE(Paths(*mount.file_system).find(file.path).value_or(Ino{}) == ino);
  }
  need(mount->unmount());
}

TEST_CASE("random damage is repaired, or said to be left, and harms no file that it did not touch") {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) check_seed(seed);
}

}  // namespace
}  // namespace lccfs
