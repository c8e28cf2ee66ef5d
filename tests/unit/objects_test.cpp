// SPDX-License-Identifier: LGPL-2.1-or-later
// How objects are read: whole, and at one version.
#include "format/object_names.h"
#include "objects/inode.h"
#include "objects/super.h"
#include "support/catch.h"
#include "support/namespace_calls.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

const std::string object = "Inode.77";

MetaTxn with_keys(const std::string& prefix, unsigned first, unsigned count) {
  MetaTxn txn{.object = object, .step = "test", .guards = {}, .mutations = {}};
  for (unsigned i = first; i < first + count; ++i) {
    txn.mutations.emplace_back(mutation::SetKey{prefix + std::to_string(100'000 + i), "v"});
  }
  return txn;
}

MetaRead with_prefix(const std::string& prefix, std::uint32_t limit) {
  return {.object = object, .ranges = {{prefix, "", limit}}};
}

std::shared_ptr<ScriptedClient> client_with(unsigned keys) {
  auto client = ScriptedCluster::make({})->new_client();
  need(client->apply({.object = object, .step = "test", .guards = {}, .mutations = {mutation::CreateExclusive{}}}));
  need(client->apply(with_keys("a/", 0, keys)));
  need(client->apply(with_keys("b/", 0, 3)));
  client->reset_record();
  return client;
}

}  // namespace

TEST_CASE("a whole range is read to its end, another one as far as it was asked for") {
  const auto client = client_with(25);
  auto read = with_prefix("a/", 10);
  read.ranges.push_back({"b/", "", 1});
  const auto whole = need(objects::read_object(objects::reader_of(*client), read, 1));
  CHECK(whole.name == object);
  REQUIRE(whole.ranges.size() == 2);
  CHECK(whole.ranges[0].entries.size() == 25);
  CHECK(whole.ranges[0].entries.back().first == "a/100024");
  CHECK(!whole.ranges[0].more);
  CHECK(whole.ranges[1].entries.size() == 1);
  CHECK(whole.ranges[1].more);
  CHECK(client->counts() == StepCounts{.queries = 3});
}

TEST_CASE("an object that changes between two pages is read anew, and is of one version") {
  const auto client = client_with(25);
  bool changed = false;
  client->set_hook([&](const StepInfo& info) {
    if (changed || client->counts().queries != 2 || info.object != object) return Fault{};
    changed = true;  // the first page has been answered, the second is on its way
    client->set_hook({});
    need(client->apply(with_keys("a/", 25, 1)));
    return Fault{};
  });
  const auto whole = need(objects::read_object(objects::reader_of(*client), with_prefix("a/", 10), 1));
  CHECK(changed);
  CHECK(whole.ranges[0].entries.size() == 26);
  CHECK(whole.version == need(client->query({.object = object})).version);
}

TEST_CASE("keys are walked page by page, until the work fails") {
  const auto client = client_with(2500);
  const auto query = objects::reader_of(*client);
  std::size_t seen = 0;
  need(objects::for_each_key(query, object, "a/", [&](const std::string&, const Bytes&) -> Result<> {
    ++seen;
    return {};
  }));
  CHECK(seen == 2500);
  CHECK(client->counts() == StepCounts{.queries = 3});
  const auto stopped = objects::for_each_key(query, object, "a/", [&](const std::string&, const Bytes&) -> Result<> {
    return failure(ErrorCode::busy, "enough");
  });
  CHECK(error_of(stopped) == ErrorCode::busy);
  CHECK(error_of(objects::for_each_key(query, "Inode.78", "a/", {})) == ErrorCode::not_found);
}

TEST_CASE("a damaged part is an error for who needs it, and not there for who judges") {
  const auto client = client_with(1);
  need(client->apply({.object = object,
                      .step = "test",
                      .guards = {},
                      .mutations = {mutation::SetXattr{format::xattr::size, "x"},
                                    mutation::SetXattr{format::xattr::nsub, encode(format::NumberRecord{7})}}}));
  MetaRead read{.object = object, .xattrs = true};
  const auto found = need(objects::read_object(objects::reader_of(*client), read));
  CHECK(!found.find<format::NumberRecord>(format::xattr::size));
  CHECK(found.find<format::NumberRecord>(format::xattr::nsub)->value == 7);
  const auto refused = found.needed<format::NumberRecord>(format::xattr::size);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().context.starts_with("Inode.77: xattr size: "));
  CHECK(found.needed<format::AttrRecord>(format::xattr::attr).error().context == "Inode.77: xattr attr is missing");
}

TEST_CASE("where there is no volume, the error says how to make one") {
  const auto client = ScriptedCluster::make({})->new_client();
  const auto super = objects::read_super(objects::reader_of(*client));
  REQUIRE(!super);
  CHECK(super.error().code == ErrorCode::not_found);
  CHECK(super.error().context.ends_with("make one with lccfs mkfs"));
}
