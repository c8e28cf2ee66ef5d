// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/pairs.h"

#include "crash/world.h"

namespace lccfs::crash {

using Kind = Call::Kind;

namespace {

enum class Taken { free, file, empty_directory, full_directory };
constexpr Taken all[] = {Taken::free, Taken::file, Taken::empty_directory, Taken::full_directory};

const char* name_of(Taken taken) {
  switch (taken) {
    case Taken::free:
      return "free";
    case Taken::file:
      return "a file";
    case Taken::empty_directory:
      return "an empty directory";
    case Taken::full_directory:
      return "a full directory";
  }
  return "?";
}

void take(std::vector<Call>& setup, const std::string& path, Taken taken, std::uint32_t mode) {
  if (taken == Taken::file) setup.push_back({.kind = Kind::mkfile, .path = path, .mode = mode});
  if (taken == Taken::empty_directory || taken == Taken::full_directory) {
    setup.push_back({.kind = Kind::mkdir, .path = path, .mode = mode});
  }
  if (taken == Taken::full_directory) setup.push_back({.kind = Kind::mkfile, .path = path + "/f", .mode = mode});
}

}  // namespace

std::vector<State> states() {
  std::vector<State> made;
  for (const Taken a : all) {
    for (const Taken b : all) {
      State state{std::string("a is ") + name_of(a) + ", b is " + name_of(b),
                  {{.kind = Kind::mkdir, .path = "/d", .mode = 0700}}};
      take(state.setup, "/d/a", a, 0601);
      take(state.setup, "/d/b", b, 0602);
      made.push_back(std::move(state));
    }
  }
  made.push_back({"a is an empty directory, b has one",
                  {{.kind = Kind::mkdir, .path = "/d", .mode = 0700},
                   {.kind = Kind::mkdir, .path = "/d/a", .mode = 0701},
                   {.kind = Kind::mkdir, .path = "/d/b", .mode = 0702},
                   {.kind = Kind::mkdir, .path = "/d/b/f", .mode = 0703}}});
  made.push_back({"a and b are one file",
                  {{.kind = Kind::mkdir, .path = "/d", .mode = 0700},
                   {.kind = Kind::mkfile, .path = "/d/a", .mode = 0601},
                   {.kind = Kind::link, .path = "/d/a", .other = "/d/b"}}});
  return made;
}

std::vector<Call> operations(std::uint32_t mode) {
  return {
      {.kind = Kind::mkfile, .path = "/d/a", .mode = mode},
      {.kind = Kind::mkdir, .path = "/d/a", .mode = mode},
      {.kind = Kind::symlink, .path = "/d/b", .other = "to " + std::to_string(mode)},
      {.kind = Kind::link, .path = "/d/a", .other = "/d/c"},
      {.kind = Kind::link, .path = "/d/a", .other = "/d/b/f"},
      {.kind = Kind::unlink, .path = "/d/a"},
      {.kind = Kind::unlink, .path = "/d/b"},
      {.kind = Kind::rmdir, .path = "/d/a"},
      {.kind = Kind::rmdir, .path = "/d/b"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::rename, .path = "/d/b", .other = "/d/a"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/c"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/b/f"},
      {.kind = Kind::rename, .path = "/d/b", .other = "/d/a/f"},
      {.kind = Kind::rename, .path = "/d/b/f", .other = "/d/a"},
      {.kind = Kind::rename_no_replace, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::exchange, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::chmod, .path = "/d/a", .mode = mode},
      {.kind = Kind::set_xattr, .path = "/d/a", .other = "user.x", .letter = static_cast<char>('a' + mode % 2)},
      {.kind = Kind::set_acl, .path = "/d/a", .mode = mode},
      {.kind = Kind::mkfile, .path = "/d/a/f", .mode = mode},
      {.kind = Kind::mkdir, .path = "/d/a/f", .mode = mode},
      {.kind = Kind::unlink, .path = "/d/a/f"},
      {.kind = Kind::rmdir, .path = "/d"},
  };
}

std::vector<Call> further_operations() {
  return {
      {.kind = Kind::create, .path = "/d/a", .mode = 0610},
      {.kind = Kind::create, .path = "/d/a/g", .mode = 0610},
      {.kind = Kind::mkfifo, .path = "/d/b", .mode = 0610},
      {.kind = Kind::link, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::link, .path = "/d/a", .other = "/top"},
      {.kind = Kind::mkdir, .path = "/d/c", .mode = 0610},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/a"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/top"},
      {.kind = Kind::rename_no_replace, .path = "/d/a", .other = "/d/b/f"},
      {.kind = Kind::rename_no_replace, .path = "/d/a", .other = "/d/c"},
      {.kind = Kind::remove_xattr, .path = "/d/a", .other = "user.x"},
      {.kind = Kind::set_xattr, .path = "/d", .other = "user.x", .letter = 'x'},
      {.kind = Kind::chmod, .path = "/d", .mode = 0710},
  };
}

namespace {

constexpr std::uint64_t object = object_size_bytes;

Call write(std::uint64_t offset_bytes, std::uint64_t size_bytes, char letter) {
  return {
      .kind = Kind::write, .path = "/d/a", .offset_bytes = offset_bytes, .size_bytes = size_bytes, .letter = letter};
}
Call punch(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  return {.kind = Kind::punch, .path = "/d/a", .offset_bytes = offset_bytes, .size_bytes = size_bytes};
}
Call zero(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  return {.kind = Kind::zero, .path = "/d/a", .offset_bytes = offset_bytes, .size_bytes = size_bytes};
}
Call copy(const std::string& source, std::uint64_t from_bytes, std::uint64_t to_bytes, std::uint64_t size_bytes) {
  return {.kind = Kind::copy,
          .path = "/d/a",
          .other = source,
          .offset_bytes = to_bytes,
          .size_bytes = size_bytes,
          .from_bytes = from_bytes};
}
Call truncate(std::uint64_t size_bytes) { return {.kind = Kind::truncate, .path = "/d/a", .size_bytes = size_bytes}; }

}  // namespace

std::vector<State> data_states() {
  const std::vector<Call> empty{{.kind = Kind::mkdir, .path = "/d", .mode = 0700},
                                {.kind = Kind::mkfile, .path = "/d/a", .mode = 0601}};
  const auto with = [&empty](std::vector<Call> more) {
    more.insert(more.begin(), empty.begin(), empty.end());
    return more;
  };
  return {
      {"a is an empty file", empty},
      {"a is a file of one object", with({write(0, 5000, 'o')})},
      {"a is a file of three objects", with({write(0, 2 * object + 100, 'o')})},
      {"a is a sparse file", with({write(2 * object, 100, 'o'), truncate(4 * object)})},
      {"a was cut, and has an xattr",
       with({write(0, 2 * object, 'o'),
             truncate(object + 10),
             {.kind = Kind::set_xattr, .path = "/d/a", .other = "user.x", .letter = 'o'}})},
      {"a and b are files of three objects",
       with(
           {write(0, 2 * object + 100, 'o'),
            {.kind = Kind::mkfile, .path = "/d/b", .mode = 0602},
            {.kind = Kind::write, .path = "/d/b", .offset_bytes = 50, .size_bytes = 2 * object + 100, .letter = 'b'}})},
  };
}

std::vector<Call> data_operations() {
  return {
      write(0, 4096, 'n'),
      write(1000, 10, 'n'),
      write(object + 4096, 4096, 'n'),
      write(3 * object - 50, 50, 'n'),
      write(6 * object, 1, 'n'),
      truncate(0),
      truncate(10),
      truncate(object),
      truncate(object + 5),
      truncate(2 * object + 100),
      truncate(9 * object),
      punch(0, object),
      punch(1000, 2 * object + 3000),
      punch(3 * object, 4 * object),
      zero(100, 50),
      zero(object + 5, 3 * object),
      copy("/d/a", 0, 3 * object, 2 * object + 50),
      copy("/d/a", object + 10, 0, object),
      copy("/d/b", 0, 0, 3 * object),
      copy("/d/b", 10, 2 * object, 2 * object),
      {.kind = Kind::set_xattr, .path = "/d/a", .other = "user.x", .letter = 'n'},
      {.kind = Kind::remove_xattr, .path = "/d/a", .other = "user.x"},
      {.kind = Kind::chmod, .path = "/d/a", .mode = 0610},
      {.kind = Kind::link, .path = "/d/a", .other = "/d/c"},
      {.kind = Kind::unlink, .path = "/d/a"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/top"},
  };
}

std::vector<Call> file_calls(char letter) {
  const auto read = [](std::uint64_t offset_bytes, std::uint64_t size_bytes) {
    return Call{.kind = Kind::read, .path = "/d/a", .offset_bytes = offset_bytes, .size_bytes = size_bytes};
  };
  return {
      read(0, 100),
      read(0, 100),
      read(object, 100),
      read(2 * object, 200),
      read(4 * object - 10, 10),
      write(0, 50, letter),
      write(20, 60, letter),
      write(object, 20, letter),
      write(2 * object + 150, 10, letter),
      {.kind = Kind::append, .path = "/d/a", .size_bytes = 30, .letter = letter},
      truncate(0),
      truncate(25),
      truncate(object + 10),
      truncate(4 * object),
      punch(10, 50),
      punch(object - 30, 2 * object),
      zero(2 * object + 160, object),
      {.kind = Kind::chmod, .path = "/d/a", .mode = 0600U + static_cast<unsigned char>(letter) % 8},
      {.kind = Kind::unlink, .path = "/d/a"},
  };
}

}  // namespace lccfs::crash
