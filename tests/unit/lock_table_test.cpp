// SPDX-License-Identifier: LGPL-2.1-or-later
// The locks of one client's owners in one file.
#include "fs/lock_table.h"
#include "support/catch.h"
#include "support/lock_calls.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

constexpr HandleId one_handle{1}, other_handle{2};

using Stored = format::LocksRecord::Lock;

Stored range(bool is_exclusive, std::uint64_t first, std::uint64_t last) { return {false, is_exclusive, first, last}; }

}  // namespace

TEST_CASE("exclusive locks of two owners exclude each other where they meet, and nowhere else") {
  LockTable table;
  table.set(exclusive(one_handle, 1, 10, 19));
  CHECK(table.conflict(exclusive(other_handle, 2, 19, 30)) != nullptr);
  CHECK(table.conflict(shared(other_handle, 2, 0, 10)) != nullptr);
  CHECK(table.conflict(exclusive(other_handle, 2, 0, 9)) == nullptr);
  CHECK(table.conflict(exclusive(other_handle, 2, 20, last_byte)) == nullptr);
  CHECK(table.conflict(exclusive(one_handle, 1)) == nullptr);
}

TEST_CASE("an owner has a lock everywhere in a range if its locks leave no gap there, of whatever type they are") {
  LockTable table;
  CHECK_FALSE(table.covers(exclusive(one_handle, 1)));
  table.set(exclusive(one_handle, 1, 0, 9));
  table.set(shared(one_handle, 1, 10, 19));
  CHECK(table.covers(shared(one_handle, 1, 5, 15)));
  CHECK(table.covers(shared(one_handle, 1, 0, 19)));
  CHECK_FALSE(table.covers(shared(one_handle, 1, 0, 20)));
  CHECK_FALSE(table.covers(shared(one_handle, 2, 5, 15)));
  table.set(with(exclusive(one_handle, 1, 7, 7), LockType::none));
  CHECK_FALSE(table.covers(shared(one_handle, 1, 5, 15)));
  table.set(exclusive(one_handle, 1));
  CHECK(table.covers(shared(one_handle, 1)));
}

TEST_CASE("shared locks stand beside each other") {
  LockTable table;
  table.set(shared(one_handle, 1));
  CHECK(table.conflict(shared(other_handle, 2)) == nullptr);
  CHECK(table.conflict(exclusive(other_handle, 2, 5, 5)) != nullptr);
}

TEST_CASE("flock and range locks do not see each other") {
  LockTable table;
  table.set(whole_file(one_handle, 1));
  CHECK(table.conflict(exclusive(other_handle, 2)) == nullptr);
  CHECK(table.conflict(whole_file(other_handle, 2)) != nullptr);
}

TEST_CASE("an owner's newer lock takes the place of its older ones, and leaves what lies beside it") {
  LockTable table;
  table.set(exclusive(one_handle, 1, 0, 99));
  table.set(shared(one_handle, 1, 40, 59));
  CHECK(table.stored() == std::vector{range(false, 40, 59), range(true, 0, 39), range(true, 60, 99)});
  table.set(with(shared(one_handle, 1, 50, 69), LockType::none));
  CHECK(table.stored() == std::vector{range(false, 40, 49), range(true, 0, 39), range(true, 70, 99)});
}

TEST_CASE("locks that continue each other become one, up to the last byte that there can be") {
  LockTable table;
  for (std::uint64_t first = 0; first < 100; first += 20) table.set(exclusive(one_handle, 1, first, first + 9));
  for (std::uint64_t first = 10; first < 100; first += 20) table.set(exclusive(one_handle, 1, first, first + 9));
  table.set(exclusive(one_handle, 1, 100, last_byte));
  CHECK(table.stored() == std::vector{range(true, 0, last_byte)});
  CHECK(table.size() == 1);
}

TEST_CASE("a process's locks go whatever handle took them, an open file description's with its handle") {
  LockTable table;
  table.set(exclusive(one_handle, 1, 0, 0));
  table.set(exclusive(other_handle, 1, 2, 2));
  table.set(exclusive(other_handle, 7, 4, 4));
  table.set(whole_file(other_handle, 1));
  table.drop_range_locks(1);
  CHECK(table.stored() == std::vector{range(true, 4, 4), Stored{true, true, 0, last_byte}});
  table.drop(other_handle);
  CHECK(table.empty());
}

TEST_CASE("locks of an owner that has ended stay, whoever gets its number, until they are dropped") {
  LockTable table;
  constexpr std::uint64_t nobody = 99;
  table.set(exclusive(one_handle, 1, 0, 9));
  table.set(exclusive(other_handle, 2, 20, 29));
  table.set(whole_file(other_handle, 2));
  table.disown(one_handle, 1, nobody);
  CHECK(table.conflict(exclusive(one_handle, 1, 0, 9)) != nullptr);
  CHECK(table.conflict(exclusive(one_handle, 2, 20, 29)) == nullptr);
  table.drop_range_locks(1);
  CHECK(table.size() == 3);
  table.drop_range_locks(nobody);
  CHECK(table.size() == 2);
  table.disown(other_handle, std::nullopt, nobody);
  CHECK(table.conflict(exclusive(one_handle, 2, 20, 29)) != nullptr);
  CHECK(table.conflict(whole_file(one_handle, 2)) != nullptr);
  table.drop(other_handle);
  CHECK(table.empty());
}

TEST_CASE("what is stored is in order and names each lock once") {
  LockTable table;
  table.set(shared(one_handle, 1, 5, 6));
  table.set(shared(one_handle, 2, 5, 6));
  table.set(shared(one_handle, 3, 0, 1));
  CHECK(table.stored() == std::vector{range(false, 0, 1), range(false, 5, 6)});
}

TEST_CASE("a stored lock of another client is in the way as one of this client's is") {
  const format::LocksRecord others{1, {range(false, 0, 9), range(true, 20, 29), Stored{true, false, 0, last_byte}}};
  CHECK(conflict(others, exclusive(one_handle, 1, 5, 5)) != nullptr);
  CHECK(conflict(others, shared(one_handle, 1, 5, 5)) == nullptr);
  CHECK(conflict(others, shared(one_handle, 1, 25, 25)) != nullptr);
  CHECK(conflict(others, exclusive(one_handle, 1, 10, 19)) == nullptr);
  CHECK(conflict(others, whole_file(one_handle, 1)) != nullptr);
  CHECK(conflict(others, with(whole_file(one_handle, 1), LockType::shared)) == nullptr);
}
