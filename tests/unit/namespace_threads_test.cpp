// SPDX-License-Identifier: LGPL-2.1-or-later
// Many threads of two clients at once, each on names of its own and on names that all fight for.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "support/catch.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

TEST_CASE("threads of two clients make, move and remove names at once, and every count is right in the end") {
  TestVolume volume;
  Mount mounts[] = {volume.mount(), volume.mount()};
  std::atomic<int> failures{0};
  const auto work = [&](int number) {
    auto& fs = *mounts[number % 2].file_system;
    const auto own = "own" + std::to_string(number);
    const auto expect = [&](bool fine) { failures += fine ? 0 : 1; };
    for (int i = 0; i < 40; ++i) {
      const auto made = fs.make_node({}, root_ino, own, {FileType::directory, 0755, 0, {}});
      expect(made.has_value());
      if (!made) continue;
      const Ino d = made->attributes.ino;
      const auto file = fs.create({}, d, "f", 0644, O_RDWR | O_EXCL);
      expect(file.has_value());
      if (file) fs.release(file->open.handle);
      expect(error_of(fs.rmdir(root_ino, own)) == ErrorCode::not_empty);
      expect(fs.rename(d, "f", d, "g", RenameMode::replace).has_value());
      expect(fs.unlink(d, "g").has_value());
      expect(fs.rename(root_ino, own, root_ino, own + "x", RenameMode::no_replace).has_value());
      expect(fs.rmdir(root_ino, own + "x").has_value());
      // All fight for these; what each answer is, is open.
      std::ignore = fs.make_node({}, root_ino, "shared", {FileType::directory, 0755, 0, {}});
      if (const auto shared = ino_of(fs, root_ino, "shared")) {
        std::ignore = fs.make_node({}, *shared, own, {FileType::regular, 0644, 0, {}});
        std::ignore = fs.unlink(*shared, own);
      }
      std::ignore = fs.rename(root_ino, "shared", root_ino, "shared2", RenameMode::replace);
      std::ignore = fs.rmdir(root_ino, "shared2");
      std::ignore = fs.get_attributes(root_ino);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 6; ++number) threads.emplace_back(work, number);
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  for (const std::string name : {"shared", "shared2"}) {
    const auto left = ino_of(*mounts[0].file_system, root_ino, name);
    if (!left) continue;
    for (const auto& inside : names_in(*mounts[0].file_system, *left)) need(mounts[0]->unlink(*left, inside));
    need(mounts[0]->rmdir(root_ino, name));
  }
  CHECK(names_in(*mounts[1].file_system, root_ino).empty());
  CHECK(problems(volume.cluster()).empty());
  for (auto& mount : mounts) {
    volume.clock().advance(std::chrono::seconds(2));
    CHECK(need(mount->get_attributes(root_ino)).attributes.nlink == 2);
    CHECK(mount->unmount());
  }
}
