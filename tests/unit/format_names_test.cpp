// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <limits>
#include <random>

#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"

namespace lccfs::format {
namespace {

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
constexpr VolumeUuid uuid{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr Token token{InstanceId{7}, 42};

TEST_CASE("objects have the names of the format") {
  CHECK(inode_object(Ino{1}) == "Inode.1");
  CHECK(inode_object(Ino{largest}) == "Inode.18446744073709551615");
  CHECK(data_object(Ino{17}, ObjectIndex{0}) == "Data.17.0");
  CHECK(session_object(InstanceId{3}) == "Session.3");
}

TEST_CASE("names of objects are read back") {
  CHECK(std::holds_alternative<SuperName>(parse_object_name("Super").value()));
  CHECK(std::holds_alternative<AllocName>(parse_object_name("Alloc").value()));
  CHECK(std::get<SessionName>(parse_object_name("Session.3").value()).instance == InstanceId{3});
  CHECK(std::get<InodeName>(parse_object_name("Inode.18446744073709551615").value()).ino == Ino{largest});
  const auto data = std::get<DataName>(parse_object_name("Data.17.5").value());
  CHECK(data.ino == Ino{17});
  CHECK(data.index == ObjectIndex{5});
}

TEST_CASE("a name that the format does not make is no name of an object") {
  const std::string name =
      GENERATE("", "super", "Super ", "Super.1", "Alloc.", "Inode", "Inode.", "Inode.0", "Inode.01", "Inode.-1",
               "Inode.+1", "Inode. 1", "Inode.1 ", "Inode.1.2", "Inode.0x1", "Inode.18446744073709551616", "Session.0",
               "Session.00", "Data.1", "Data.1.", "Data.0.1", "Data.1.01", "Data.1.2.3", "rbd_directory");
  CAPTURE(name);
  CHECK(!parse_object_name(name));
}

TEST_CASE("keys have the bytes of the format") {
  CHECK(entry_key(uuid, "a") == "n/15d1f474d388a465/a");
  CHECK(reverse_key(Ino{9}, "a b") == "i/9/a b");
  CHECK(detached_key(Ino{9}, token) == "d/9/7.42");
  CHECK(decision_key(token) == "x/7.42");
  CHECK(back_pointer_key(Ino{9}, token) == "p/9/7.42");
  CHECK(step_number_key(InstanceId{7}) == "l/7");
  CHECK(step_number_value(42) == "00000000000000000042");
  CHECK(step_number_value(largest) == "18446744073709551615");
  CHECK(user_attribute_key("user.x") == "u/user.x");
  CHECK(map_key(31) == "m/000000000000001f");
  CHECK(instance_key(InstanceId{7}) == "s/7");
  CHECK(queue_key(42) == "q/00000000000000000042");
}

TEST_CASE("keys are read back") {
  const std::string name = GENERATE("a", " ", "\xff\xfe", "n.1", "0", ".hidden");
  const auto entry = parse_entry_key(entry_key(uuid, name)).value();
  CHECK(entry.name == name);
  CHECK(entry.hash == name_hash(uuid, name));
  const auto reverse = parse_reverse_key(reverse_key(Ino{9}, name)).value();
  CHECK(reverse.ino == Ino{9});
  CHECK(reverse.name == name);
  const auto detached = parse_detached_key(detached_key(Ino{9}, token)).value();
  CHECK(detached.ino == Ino{9});
  CHECK(detached.token == token);
  const auto pointer = parse_back_pointer_key(back_pointer_key(Ino{9}, token)).value();
  CHECK(pointer.parent == Ino{9});
  CHECK(pointer.token == token);
  CHECK(parse_decision_key(decision_key(token)) == token);
  CHECK(parse_step_number_key(step_number_key(InstanceId{7})) == InstanceId{7});
  CHECK(parse_instance_key(instance_key(InstanceId{7})) == InstanceId{7});
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{42}, largest}) {
    CHECK(parse_queue_key(queue_key(number)) == number);
    CHECK(parse_step_number(step_number_value(number)) == number);
  }
}

TEST_CASE("a key of the map is one that the largest file of the smallest objects has") {
  const std::uint64_t blocks = std::uint64_t{1} << 37;
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{42}, blocks - 1}) {
    CHECK(parse_map_key(map_key(number)) == number);
  }
  for (const std::uint64_t number : {blocks, std::uint64_t{1} << 54, largest}) CHECK(!parse_map_key(map_key(number)));
}

TEST_CASE("a key that the format does not make is refused by every parser") {
  const std::string long_name(256, 'x');
  for (const std::string& key : {std::string(""),
                                 std::string("n"),
                                 std::string("n/"),
                                 std::string("n/15d54c9a60dbd30e"),
                                 std::string("n/15d54c9a60dbd30e/"),
                                 std::string("n/15d54c9a60dbd30e/a/b"),
                                 std::string("n/15D54C9A60DBD30E/a"),
                                 std::string("n/0000000000000002/a"),
                                 std::string("n/8000000000000000/a"),
                                 std::string("n/15d54c9a60dbd30/a"),
                                 std::string("n/15d54c9a60dbd30e/a\0b", 22),
                                 "n/15d54c9a60dbd30e/" + long_name,
                                 std::string("i/0/a"),
                                 std::string("i/01/a"),
                                 std::string("i/1/"),
                                 "i/1/" + long_name,
                                 std::string("d/1/7"),
                                 std::string("d/1/7.042"),
                                 std::string("d/0/7.42"),
                                 std::string("p/1/7."),
                                 std::string("p/0/7.42"),
                                 std::string("x/7.42 "),
                                 std::string("x/.42"),
                                 std::string("l/"),
                                 std::string("l/0"),
                                 std::string("s/0"),
                                 std::string("s/-1"),
                                 std::string("q/42"),
                                 std::string("q/18446744073709551616"),
                                 std::string("q/000000000000000000042"),
                                 std::string("k/0"),
                                 std::string("k/07"),
                                 std::string("o/0"),
                                 std::string("o/07"),
                                 std::string("m/1f"),
                                 std::string("m/000000000000001F"),
                                 std::string("m/-00000000000001f")}) {
    CAPTURE(key);
    CHECK(!parse_entry_key(key));
    CHECK(!parse_reverse_key(key));
    CHECK(!parse_detached_key(key));
    CHECK(!parse_back_pointer_key(key));
    CHECK(!parse_decision_key(key));
    CHECK(!parse_step_number_key(key));
    CHECK(!parse_instance_key(key));
    CHECK(!parse_queue_key(key));
    CHECK(!parse_map_key(key));
    CHECK(!parse_locks_key(key));
    CHECK(!parse_opener_key(key));
    CHECK(!parse_step_number(key));
  }
}

TEST_CASE("random bytes are read as names and keys without fault, and what is taken is what the format makes") {
  std::mt19937_64 random(21);
  const std::string alphabet = "SuperInodeDataSession.0123456789/nidxplmksqo\xff ";
  const auto text = [&](std::string start) {
    const auto size = random() % 24;
    for (std::size_t i = 0; i < size; ++i) start += alphabet[random() % alphabet.size()];
    return start;
  };
  for (unsigned i = 0; i < 100'000; ++i) {
    const auto name = text(i % 2 == 0 ? "Data." : "");
    if (const auto parsed = parse_object_name(name)) {
      if (const auto* data = std::get_if<DataName>(&*parsed)) REQUIRE(data_object(data->ino, data->index) == name);
      if (const auto* inode = std::get_if<InodeName>(&*parsed)) REQUIRE(inode_object(inode->ino) == name);
    }
    const auto key = text(std::string(1, "nidpxlsqm"[i % 9]) + "/");
    if (const auto p = parse_reverse_key(key)) REQUIRE(reverse_key(p->ino, p->name) == key);
    if (const auto p = parse_detached_key(key)) REQUIRE(detached_key(p->ino, p->token) == key);
    if (const auto p = parse_back_pointer_key(key)) REQUIRE(back_pointer_key(p->parent, p->token) == key);
    if (const auto p = parse_decision_key(key)) REQUIRE(decision_key(*p) == key);
    if (const auto p = parse_queue_key(key)) REQUIRE(queue_key(*p) == key);
    if (const auto p = parse_map_key(key)) REQUIRE(map_key(*p) == key);
    if (const auto p = parse_entry_key(key)) REQUIRE(p->name.size() == key.size() - 19);
  }
}

TEST_CASE("a name's hash has 63 bits, and is never one of the cookies below 3") {
  std::mt19937_64 random(22);
  for (unsigned i = 0; i < 100'000; ++i) {
    VolumeUuid key;
    for (auto& byte : key) byte = static_cast<std::uint8_t>(random());
    const auto hash = name_hash(key, "name" + std::to_string(i));
    REQUIRE(hash >= 3);
    REQUIRE(hash < std::uint64_t{1} << 63);
  }
}

TEST_CASE("the hash depends on the volume's uuid") {
  VolumeUuid other = uuid;
  other[15] ^= 1;
  CHECK(name_hash(uuid, "a") != name_hash(other, "a"));
}

TEST_CASE("entries sort by hash, and the cursor of a hash is after all of its names and before the next hash") {
  std::vector<std::string> keys;
  for (unsigned i = 0; i < 1000; ++i)
    keys.push_back(entry_key(uuid, std::string(1 + i % 250, '\xff') + std::to_string(i)));
  std::ranges::sort(keys);
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    const auto at = std::stoull(keys[i].substr(2, 16), nullptr, 16);
    const auto next = std::stoull(keys[i + 1].substr(2, 16), nullptr, 16);
    REQUIRE(at <= next);
    REQUIRE(keys[i] < entry_cursor_key(at));
    if (at < next) REQUIRE(entry_cursor_key(at) < keys[i + 1]);
  }
}

TEST_CASE("step numbers, queue keys and map keys sort as their numbers do") {
  std::mt19937_64 random(23);
  for (unsigned i = 0; i < 1000; ++i) {
    const auto a = random() >> (random() % 64);
    const auto b = random() >> (random() % 64);
    REQUIRE((step_number_value(a) < step_number_value(b)) == (a < b));
    REQUIRE((queue_key(a) < queue_key(b)) == (a < b));
    REQUIRE((map_key(a) < map_key(b)) == (a < b));
  }
}

}  // namespace
}  // namespace lccfs::format
