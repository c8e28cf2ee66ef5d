// SPDX-License-Identifier: LGPL-2.1-or-later
// Key ranges: prefix, after, limit, more.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

constexpr const char* object = "Inode.1";

std::string numbered(const std::string& prefix, unsigned number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%06u", number);
  return prefix + digits;
}

void insert(ObjectStore& store, const std::vector<std::string>& keys) {
  std::vector<Mutation> mutations;
  for (const std::string& key : keys) {
    mutations.emplace_back(mutation::SetKey{key, "value of " + key});
    if (mutations.size() == 500 || &key == &keys.back()) {
      value_of(store.apply(txn(object, {}, mutations)));
      mutations.clear();
    }
  }
}

KeyPage page_of(ObjectStore& store, const KeyRange& range) {
  return value_of(store.query(MetaRead{object, false, false, {range}, {}})).ranges.at(0);
}

/// Every key of the range, page by page; each page keeps the limit, and `more` tells the truth.
std::vector<std::string> walk(ObjectStore& store, KeyRange range) {
  std::vector<std::string> keys;
  for (bool more = true; more;) {
    const KeyPage page = page_of(store, range);
    REQUIRE(page.entries.size() <= range.limit);
    if (page.more) REQUIRE_FALSE(page.entries.empty());
    for (const auto& [key, value] : page.entries) {
      keys.push_back(key);
      REQUIRE(value == "value of " + key);
    }
    more = page.more;
    if (more) range.after = keys.back();
  }
  return keys;
}

}  // namespace

STORE_CASE("A range holds the keys with its prefix, in byte order, over many pages") {
  const auto store = volume.new_client();
  create(*store, object);
  std::vector<std::string> wanted, all;
  for (unsigned number = 0; number < 2500; ++number) wanted.push_back(numbered("n/", number));
  all = wanted;
  for (unsigned number = 0; number < 20; ++number) {
    all.push_back(numbered("d/", number));
    all.push_back(numbered("n0", number));
    all.push_back(numbered("x/", number));
  }
  std::reverse(all.begin(), all.end());
  insert(*store, all);
  std::sort(all.begin(), all.end());
  CHECK((walk(*store, {"n/", "", 1024}) == wanted));
  CHECK((walk(*store, {"n/", "", 5000}) == wanted));
  CHECK((walk(*store, {"n/", "", 100}) == wanted));
  CHECK((walk(*store, {"", "", 1000}) == all));
}

STORE_CASE("A page knows whether more keys of its prefix follow") {
  const auto store = volume.new_client();
  create(*store, object);
  insert(*store, {"a/1", "b/1", "b/2", "b/3", "c/1"});
  const auto keys_and_more = [&](const KeyRange& range) {
    std::string text;
    const KeyPage page = page_of(*store, range);
    for (const auto& [key, value] : page.entries) text += key + " ";
    return text + (page.more ? "more" : "end");
  };
  CHECK(keys_and_more({"b/", "", 2}) == "b/1 b/2 more");
  CHECK(keys_and_more({"b/", "", 3}) == "b/1 b/2 b/3 end");
  CHECK(keys_and_more({"b/", "b/1", 3}) == "b/2 b/3 end");
  CHECK(keys_and_more({"b/", "b/1", 1}) == "b/2 more");
  CHECK(keys_and_more({"b/", "b/15", 9}) == "b/2 b/3 end");
  CHECK(keys_and_more({"b/", "b/3", 9}) == "end");
  CHECK(keys_and_more({"b/", "a/1", 9}) == "b/1 b/2 b/3 end");
  CHECK(keys_and_more({"b/", "c/1", 9}) == "end");
  CHECK(keys_and_more({"", "b/3", 9}) == "c/1 end");
  CHECK(keys_and_more({"none/", "", 9}) == "end");
}

STORE_CASE("Keys may hold any bytes") {
  const auto store = volume.new_client();
  create(*store, object);
  std::vector<std::string> keys;
  for (int byte = 0; byte < 256; ++byte) keys.push_back(std::string("n/") + static_cast<char>(byte) + "/" + "name");
  keys.push_back(std::string("n/\0\0", 4));
  keys.push_back("n/" + std::string(255, '\xff'));
  insert(*store, keys);
  std::sort(keys.begin(), keys.end());
  CHECK((walk(*store, {"n/", "", 7}) == keys));
  const std::string high = "n/\xff";
  CHECK((walk(*store, {high, "", 7}) == std::vector<std::string>{high + "/name", "n/" + std::string(255, '\xff')}));
}

STORE_CASE("Keys asked for by name: those that are there") {
  const auto store = volume.new_client();
  create(*store, object);
  insert(*store, {"a", "b", "c"});
  const auto found = value_of(store->query(MetaRead{object, false, false, {}, {"c", "none", "a"}})).keys;
  CHECK(found == std::map<std::string, Bytes>{{"a", "value of a"}, {"c", "value of c"}});
}

STORE_CASE("One query takes ranges, keys, xattrs and payload together") {
  const auto store = volume.new_client();
  create(*store, object, {mutation::SetPayload{"p"}, mutation::SetXattr{"attr", "x"}});
  insert(*store, {"a/1", "a/2", "b/1"});
  const MetaSnapshot now =
      value_of(store->query(MetaRead{object, true, true, {{"b/", "", 9}, {"a/", "", 1}, {"c/", "", 9}}, {"a/2"}}));
  CHECK(now.payload == "p");
  CHECK(now.xattrs.at("attr") == "x");
  REQUIRE(now.ranges.size() == 3);
  CHECK(now.ranges[0].entries.at(0).first == "b/1");
  CHECK(now.ranges[1].entries.at(0).first == "a/1");
  CHECK(now.ranges[1].more);
  CHECK(now.ranges[2].entries.empty());
  CHECK(now.keys.count("a/2") == 1);
}

STORE_CASE("A transaction takes hundreds of guards and entries, all or nothing") {
  const auto store = volume.new_client();
  create(*store, object);
  MetaTxn many = txn(object, {guard::ObjectExists{}}, {});
  std::vector<std::string> keys;
  for (unsigned number = 0; number < 600; ++number) {
    keys.push_back(numbered("n/", number));
    many.guards.emplace_back(guard::KeyAbsent{keys.back()});
    many.mutations.emplace_back(mutation::SetKey{keys.back(), "value of " + keys.back()});
  }
  CHECK(outcome(store->apply(many)) == "success");
  CHECK((walk(*store, {"n/", "", 1024}) == keys));
  many.guards.clear();
  for (Mutation& mutation : many.mutations) mutation = mutation::RemoveKey{std::get<mutation::SetKey>(mutation).key};
  many.guards.emplace_back(guard::KeyAbsent{keys.back()});
  CHECK(outcome(store->apply(many)) == outcome(ErrorCode::guard_failed));
  CHECK((walk(*store, {"n/", "", 1024}) == keys));
  many.guards.clear();
  CHECK(outcome(store->apply(many)) == "success");
  CHECK(walk(*store, {"n/", "", 1024}).empty());
}

}  // namespace lccfs::conformance
