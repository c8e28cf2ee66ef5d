// SPDX-License-Identifier: LGPL-2.1-or-later
// Metadata objects: creation, mutations, versions, payload, xattrs.
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

constexpr const char* object = "Inode.1";
using Entries = std::vector<std::pair<std::string, Bytes>>;

}  // namespace

STORE_CASE("A create is exclusive, and changes nothing of what is there") {
  const auto store = volume.new_client();
  create(*store, object, {mutation::SetXattr{"attr", "first"}});
  const std::uint64_t version = value_of(look(*store, object)).version;
  const auto again = store->apply(
      txn(object, {}, {mutation::CreateExclusive{}, mutation::SetXattr{"attr", "second"}, mutation::SetKey{"k", "v"}}));
  CHECK(outcome(again) == outcome(ErrorCode::exists));
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK(now.version == version);
  CHECK(now.xattrs.at("attr") == "first");
  CHECK(now.ranges[0].entries.empty());
}

STORE_CASE("A new object without anything is there, and empty") {
  const auto store = volume.new_client();
  create(*store, object);
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK(now.payload.empty());
  CHECK(now.xattrs.empty());
  CHECK(now.ranges[0].entries.empty());
  CHECK_FALSE(now.ranges[0].more);
}

STORE_CASE("A missing object is not found") {
  const auto store = volume.new_client();
  CHECK(outcome(look(*store, object)) == outcome(ErrorCode::not_found));
  CHECK(outcome(store->query(MetaRead{object, false, false, {}, {"key"}})) == outcome(ErrorCode::not_found));
  CHECK(outcome(store->apply(txn(object, {}, {mutation::Remove{}}))) == outcome(ErrorCode::not_found));
}

STORE_CASE("Remove takes the object with all it holds") {
  const auto store = volume.new_client();
  create(*store, object, {mutation::SetPayload{"p"}, mutation::SetXattr{"attr", "x"}, mutation::SetKey{"k", "v"}});
  CHECK(value_of(store->apply(txn(object, {}, {mutation::Remove{}}))).version == 0);
  CHECK_FALSE(exists(*store, object));
  create(*store, object);
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK(now.payload.empty());
  CHECK(now.xattrs.empty());
  CHECK(now.ranges[0].entries.empty());
}

STORE_CASE("Every change raises the version, also remove and create of the same name") {
  const auto store = volume.new_client();
  std::uint64_t version = 0;
  const auto rises = [&](std::vector<Mutation> mutations) {
    const std::uint64_t now = value_of(store->apply(txn(object, {}, std::move(mutations)))).version;
    CHECK(now > version);
    CHECK(value_of(look(*store, object)).version == now);
    version = now;
  };
  for (int round = 0; round < 3; ++round) {
    rises({mutation::CreateExclusive{}});
    rises({mutation::SetPayload{"payload"}});
    rises({mutation::SetXattr{"attr", "x"}});
    rises({mutation::SetKey{"k", "v"}});
    rises({mutation::SetKey{"k", "v"}});
    rises({mutation::RemoveKey{"k"}});
    rises({mutation::RemoveXattr{"attr"}});
    value_of(store->apply(txn(object, {}, {mutation::Remove{}})));
  }
}

STORE_CASE("A version that was read guards a change, once") {
  const auto one = volume.new_client(), two = volume.new_client();
  create(*one, object);
  const guard::VersionIs same{value_of(look(*one, object)).version};
  CHECK(outcome(two->apply(txn(object, {same}, {mutation::SetKey{"k", "two"}}))) == "success");
  CHECK(outcome(one->apply(txn(object, {same}, {mutation::SetKey{"k", "one"}}))) == outcome(ErrorCode::guard_failed));
  CHECK(value_of(look(*one, object)).ranges[0].entries == Entries{{"k", "two"}});
}

STORE_CASE("Mutations apply in the order given") {
  const auto store = volume.new_client();
  create(*store, object,
         {mutation::SetKey{"a", "1"}, mutation::SetKey{"b", "1"}, mutation::SetKey{"a", "2"}, mutation::RemoveKey{"b"},
          mutation::SetKey{"c", "1"}, mutation::RemoveKey{"c"}, mutation::RemoveKey{"d"}, mutation::SetKey{"d", "1"},
          mutation::SetXattr{"x", "1"}, mutation::SetXattr{"x", "2"}, mutation::SetXattr{"y", "1"},
          mutation::RemoveXattr{"y"}, mutation::SetPayload{"first"}, mutation::SetPayload{"last"}});
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK(now.ranges[0].entries == Entries{{"a", "2"}, {"d", "1"}});
  CHECK(now.xattrs == std::map<std::string, Bytes>{{"x", "2"}});
  CHECK(now.payload == "last");
}

STORE_CASE("Removing a key or an xattr that is absent is fine") {
  const auto store = volume.new_client();
  create(*store, object, {mutation::SetXattr{"attr", "x"}});
  CHECK(outcome(store->apply(txn(object, {}, {mutation::RemoveKey{"none"}, mutation::RemoveXattr{"none"}}))) ==
        "success");
  create(*store, "Inode.2");
  CHECK(outcome(store->apply(txn("Inode.2", {}, {mutation::RemoveXattr{"none"}, mutation::RemoveKey{"none"}}))) ==
        "success");
}

STORE_CASE("A mutation of a missing object makes it, unless a guard wants it there") {
  const auto store = volume.new_client();
  const std::vector<Mutation> set{mutation::SetKey{"k", "v"}};
  CHECK(outcome(store->apply(txn(object, {guard::ObjectExists{}}, set))) == outcome(ErrorCode::not_found));
  CHECK_FALSE(exists(*store, object));
  CHECK(outcome(store->apply(txn(object, {}, set))) == "success");
  CHECK(exists(*store, object));
}

STORE_CASE("A payload is replaced as a whole, and may hold any bytes or none") {
  const auto store = volume.new_client();
  create(*store, object);
  const Bytes binary("\0\xff payload \n", 12);
  for (const Bytes& payload : {Bytes(4095, 'x'), binary, Bytes("short"), Bytes()}) {
    value_of(store->apply(txn(object, {guard::ObjectExists{}}, {mutation::SetPayload{payload}})));
    CHECK(value_of(look(*store, object)).payload == payload);
  }
}

STORE_CASE("Xattrs and keys hold any bytes, and values of 64 KiB") {
  const auto store = volume.new_client();
  Bytes all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const Bytes large(65536, '\x80');
  create(*store, object,
         {mutation::SetXattr{"all", all}, mutation::SetXattr{"large", large}, mutation::SetKey{"all", all},
          mutation::SetKey{"large", large}});
  const MetaSnapshot now = value_of(look(*store, object));
  CHECK((now.xattrs.at("all") == all && now.xattrs.at("large") == large));
  CHECK((now.ranges[0].entries == Entries{{"all", all}, {"large", large}}));
}

STORE_CASE("A query answers only what was asked for") {
  const auto store = volume.new_client();
  create(*store, object, {mutation::SetPayload{"p"}, mutation::SetXattr{"attr", "x"}, mutation::SetKey{"k", "v"}});
  const MetaSnapshot nothing = value_of(store->query(MetaRead{object, false, false, {}, {}}));
  CHECK(nothing.version > 0);
  CHECK(nothing.payload.empty());
  CHECK(nothing.xattrs.empty());
  CHECK(nothing.ranges.empty());
  CHECK(nothing.keys.empty());
  CHECK(value_of(store->query(MetaRead{object, true, false, {}, {}})).payload == "p");
  CHECK(value_of(store->query(MetaRead{object, false, true, {}, {}})).xattrs.at("attr") == "x");
}

STORE_CASE("Objects are apart from each other, and volumes too") {
  const auto other_volume = fresh_volume();
  const auto store = volume.new_client(), other = other_volume->new_client();
  create(*store, "Inode.1", {mutation::SetKey{"k", "1"}});
  create(*store, "Inode.10", {mutation::SetKey{"k", "10"}});
  CHECK_FALSE(exists(*other, "Inode.1"));
  value_of(store->apply(txn("Inode.1", {}, {mutation::Remove{}})));
  CHECK(value_of(look(*store, "Inode.10")).ranges[0].entries == Entries{{"k", "10"}});
}

}  // namespace lccfs::conformance
