// SPDX-License-Identifier: LGPL-2.1-or-later
// Guards: each with pass and fail, on objects that are there and that are not; and all or nothing.
#include <map>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

constexpr const char* object = "Inode.1";

/// The object that the guards below are about. Returns its version.
std::uint64_t make_guarded(ObjectStore& store) {
  return value_of(store.apply(txn(object, {},
                                  {mutation::CreateExclusive{}, mutation::SetPayload{"payload"},
                                   mutation::SetXattr{"attr", "old"}, mutation::SetXattr{"binary", Bytes("\0\xff", 2)},
                                   mutation::SetKey{"key", "old"}, mutation::SetKey{"number", "0200"}})))
      .version;
}

std::map<std::string, Guard> passing(std::uint64_t version) {
  return {{"object exists", guard::ObjectExists{}},
          {"version is", guard::VersionIs{version}},
          {"xattr equals", guard::XattrEquals{"attr", "old"}},
          {"xattr equals, bytes", guard::XattrEquals{"binary", Bytes("\0\xff", 2)}},
          {"xattr absent", guard::XattrAbsent{"none"}},
          {"key absent", guard::KeyAbsent{"none"}},
          {"key present", guard::KeyPresent{"key"}},
          {"key equals", guard::KeyEquals{"key", "old"}},
          {"key less", guard::KeyLess{"number", "0201"}},
          {"key less, longer", guard::KeyLess{"number", "02000"}},
          {"key less, absent", guard::KeyLess{"none", "0201"}}};
}

std::map<std::string, Guard> failing(std::uint64_t version) {
  return {{"version was less", guard::VersionIs{version - 1}},
          {"version is not there yet", guard::VersionIs{version + 1}},
          {"xattr differs", guard::XattrEquals{"attr", "other"}},
          {"xattr is longer", guard::XattrEquals{"attr", "ol"}},
          {"xattr differs in its last byte", guard::XattrEquals{"binary", Bytes("\0\xfe", 2)}},
          {"xattr is not there", guard::XattrEquals{"none", "old"}},
          {"xattr is there", guard::XattrAbsent{"attr"}},
          {"key is there", guard::KeyAbsent{"key"}},
          {"key is not there", guard::KeyPresent{"none"}},
          {"key differs", guard::KeyEquals{"key", "other"}},
          {"key to compare is not there", guard::KeyEquals{"none", "old"}},
          {"key is equal, not less", guard::KeyLess{"number", "0200"}},
          {"key is greater", guard::KeyLess{"number", "01999"}}};
}

std::vector<Guard> values(const std::map<std::string, Guard>& guards) {
  std::vector<Guard> all;
  for (const auto& [name, guard] : guards) all.push_back(guard);
  return all;
}

/// One of every kind that an existing object takes.
std::vector<Mutation> many_mutations() {
  return {mutation::SetPayload{"new"},     mutation::SetXattr{"attr", "new"}, mutation::SetXattr{"more", "new"},
          mutation::RemoveXattr{"binary"}, mutation::SetKey{"key", "new"},    mutation::SetKey{"more", "new"},
          mutation::RemoveKey{"number"}};
}

void is_same(const MetaSnapshot& now, const MetaSnapshot& before) {
  CHECK(now.version == before.version);
  CHECK(now.payload == before.payload);
  CHECK(now.xattrs == before.xattrs);
  CHECK(now.ranges[0].entries == before.ranges[0].entries);
}

}  // namespace

STORE_CASE("Each guard that holds lets a transaction through") {
  const auto store = volume.new_client();
  std::uint64_t version = make_guarded(*store);
  for (const std::string& name : [&] {
         std::vector<std::string> names;
         for (const auto& [key, guard] : passing(version)) names.push_back(key);
         return names;
       }()) {
    INFO(name);
    const Guard guard = passing(version).at(name);
    version = value_of(store->apply(txn(object, {guard}, {mutation::SetXattr{"last", name}}))).version;
    CHECK(value_of(look(*store, object)).xattrs["last"] == name);
  }
}

STORE_CASE("All guards together, which hold, let a transaction through") {
  const auto store = volume.new_client();
  const std::uint64_t version = make_guarded(*store);
  value_of(store->apply(txn(object, values(passing(version)), many_mutations())));
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK(now.payload == "new");
  CHECK(now.xattrs == std::map<std::string, Bytes>{{"attr", "new"}, {"more", "new"}});
  CHECK(now.ranges[0].entries == std::vector<std::pair<std::string, Bytes>>{{"key", "new"}, {"more", "new"}});
}

STORE_CASE("A guard that fails, alone, keeps everything out") {
  const auto store = volume.new_client();
  const std::uint64_t version = make_guarded(*store);
  const MetaSnapshot before = value_of(look(*store, object));
  for (const auto& [name, guard] : failing(version)) {
    INFO(name);
    CHECK(outcome(store->apply(txn(object, {guard}, many_mutations()))) == outcome(ErrorCode::guard_failed));
    is_same(value_of(look(*store, object)), before);
  }
}

STORE_CASE("A late guard fails: nothing at all was applied") {
  const auto store = volume.new_client();
  const std::uint64_t version = make_guarded(*store);
  const MetaSnapshot before = value_of(look(*store, object));
  for (const auto& [name, guard] : failing(version)) {
    INFO(name);
    std::vector<Guard> guards = values(passing(version));
    guards.push_back(guard);
    CHECK(outcome(store->apply(txn(object, guards, many_mutations()))) == outcome(ErrorCode::guard_failed));
    is_same(value_of(look(*store, object)), before);
    CHECK(outcome(store->apply(txn(object, guards, {mutation::Remove{}}))) == outcome(ErrorCode::guard_failed));
    is_same(value_of(look(*store, object)), before);
  }
}

STORE_CASE("An early guard fails: those after it do not mend it") {
  const auto store = volume.new_client();
  const std::uint64_t version = make_guarded(*store);
  const MetaSnapshot before = value_of(look(*store, object));
  for (const auto& [name, guard] : failing(version)) {
    INFO(name);
    std::vector<Guard> guards = values(passing(version));
    guards.insert(guards.begin(), guard);
    CHECK(outcome(store->apply(txn(object, guards, many_mutations()))) == outcome(ErrorCode::guard_failed));
    is_same(value_of(look(*store, object)), before);
  }
}

STORE_CASE("Two guards on one key both count") {
  const auto store = volume.new_client();
  make_guarded(*store);
  const guard::KeyPresent present{"number"};
  const guard::KeyLess less{"number", "0201"}, not_less{"number", "0200"};
  CHECK(outcome(store->apply(txn(object, {present, less}, {mutation::SetKey{"key", "1"}}))) == "success");
  CHECK(outcome(store->apply(txn(object, {present, not_less}, {mutation::SetKey{"key", "2"}}))) ==
        outcome(ErrorCode::guard_failed));
  CHECK(outcome(store->apply(txn(object, {not_less, present}, {mutation::SetKey{"key", "3"}}))) ==
        outcome(ErrorCode::guard_failed));
}

STORE_CASE("Less compares numbers of a fixed width as numbers") {
  const auto store = volume.new_client();
  make_guarded(*store);
  for (const auto& [stored, operand, is_less] : std::vector<std::tuple<Bytes, Bytes, bool>>{{"0009", "0010", true},
                                                                                            {"0010", "0009", false},
                                                                                            {"0999", "1000", true},
                                                                                            {"a", "b", true},
                                                                                            {"ab", "a", false}}) {
    INFO(stored << " < " << operand);
    value_of(store->apply(txn(object, {}, {mutation::SetKey{"number", stored}})));
    const auto answer = store->apply(txn(object, {guard::KeyLess{"number", operand}}, {mutation::SetKey{"k", "v"}}));
    CHECK(outcome(answer) == (is_less ? "success" : outcome(ErrorCode::guard_failed)));
  }
}

STORE_CASE("On a missing object every guard fails with not found, and makes nothing") {
  const auto store = volume.new_client();
  std::map<std::string, Guard> guards = passing(7);
  for (const auto& [name, guard] : failing(7)) guards.emplace(name, guard);
  for (const auto& [name, guard] : guards) {
    INFO(name);
    CHECK(outcome(store->apply(txn(object, {guard}, many_mutations()))) == outcome(ErrorCode::not_found));
    CHECK_FALSE(exists(*store, object));
  }
}

STORE_CASE("Of many clients that insert one key if it is absent, one succeeds") {
  const auto one = volume.new_client(), two = volume.new_client();
  create(*one, object);
  unsigned successes = 0;
  for (const auto& store : {one, two, one, two}) {
    const auto answer = store->apply(txn(object, {guard::KeyAbsent{"name"}}, {mutation::SetKey{"name", "ino"}}));
    if (answer)
      ++successes;
    else
      CHECK(outcome(answer) == outcome(ErrorCode::guard_failed));
  }
  CHECK(successes == 1);
}

}  // namespace lccfs::conformance
