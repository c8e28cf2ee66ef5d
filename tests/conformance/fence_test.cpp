// SPDX-License-Identifier: LGPL-2.1-or-later
// Fencing: what a reader sees after a fence stays as it is, whatever the victim had in flight.
#include <string>
#include <vector>

#include "conformance/victim.h"

namespace lccfs::conformance {
namespace {

/// What the victim's objects hold.
std::vector<Bytes> look_at_all(ObjectStore& store) {
  std::vector<Bytes> values;
  for (const char* object : victim_metadata)
    values.push_back(value_of(store.query(MetaRead{object, false, false, {}, {victim_key}})).keys.at(victim_key));
  for (const char* object : victim_data) values.push_back(value_of(read(store, object, 0, 100)));
  return values;
}

}  // namespace

STORE_CASE("After a fence nothing that the victim had in flight changes what the fencer has read") {
  const auto fencer = volume.new_client();
  const auto victim = volume.start_victim();
  CHECK(value_of(fencer->presence(victim_session, victim->identity())) == Presence::watching);
  succeeds(fencer->fence(victim->identity()));
  const auto seen = look_at_all(*fencer);
  CHECK(look_at_all(*fencer) == seen);
  victim->wait_until_over();
  CHECK(look_at_all(*fencer) == seen);
  CHECK(look_at_all(*volume.new_client()) == seen);
  CHECK(value_of(fencer->presence(victim_session, victim->identity())) != Presence::watching);
}

STORE_CASE("After sync_fences the same holds for a fence that another client has made") {
  const auto fencer = volume.new_client(), third = volume.new_client();
  const auto victim = volume.start_victim();
  // Not a read of what the victim writes: on an erasure-coded pool its stream of writes would starve it.
  CHECK(value_of(third->presence(victim_session, victim->identity())) == Presence::watching);
  succeeds(fencer->fence(victim->identity()));
  succeeds(third->sync_fences());
  const auto seen = look_at_all(*third);
  CHECK(look_at_all(*third) == seen);
  victim->wait_until_over();
  CHECK(look_at_all(*third) == seen);
  CHECK(look_at_all(*fencer) == seen);
}

STORE_CASE("A fence bars only the one client") {
  const auto fencer = volume.new_client(), bystander = volume.new_client();
  const auto victim = volume.start_victim();
  create(*bystander, "Inode.1");
  succeeds(fencer->fence(victim->identity()));
  look_at_all(*fencer);
  victim->wait_until_over();
  for (const auto& store : {fencer, bystander, volume.new_client()}) {
    CHECK(outcome(store->apply(txn("Inode.1", {guard::ObjectExists{}}, {mutation::SetKey{"k", "v"}}))) == "success");
    succeeds(write(*store, "Data.1.0", 0, "x"));
  }
}

STORE_CASE("Fencing who is fenced already, or gone, succeeds") {
  const auto fencer = volume.new_client();
  const auto victim = volume.start_victim();
  succeeds(fencer->fence(victim->identity()));
  look_at_all(*fencer);
  victim->wait_until_over();
  succeeds(fencer->fence(victim->identity()));
  const auto other_volume = fresh_volume();
  const auto other_fencer = other_volume->new_client();
  const auto gone = other_volume->start_victim();
  const Bytes identity = gone->identity();
  gone->end();
  const auto seen = look_at_all(*other_fencer);
  succeeds(other_fencer->fence(identity));
  CHECK(look_at_all(*other_fencer) == seen);
}

STORE_CASE("An identity that is none is refused") {
  const auto store = volume.new_client();
  CHECK_FALSE(store->fence("").has_value());
  CHECK_FALSE(store->fence("no identity at all").has_value());
}

STORE_CASE("A fenced client's steps answer that it is fenced, for ever, and do nothing") {
  if (!volume.fences_single_clients()) return;
  const auto victim = volume.new_client(), fencer = volume.new_client();
  create(*victim, "Inode.1", {mutation::SetKey{"k", "before"}});
  succeeds(write(*victim, "Data.1.0", 0, "before"));
  succeeds(write(*victim, "Data.1.1", 0, "other"));
  succeeds(fencer->fence(victim->identity()));
  value_of(look(*fencer, "Inode.1"));
  value_of(read(*fencer, "Data.1.0", 0, 10));
  const auto fenced = outcome(ErrorCode::fenced);
  for (int again = 0; again < 2; ++again) {
    CHECK(outcome(victim->apply(txn("Inode.1", {}, {mutation::SetKey{"k", "after"}}))) == fenced);
    CHECK(outcome(look(*victim, "Inode.1")) == fenced);
    CHECK(outcome(write(*victim, "Data.1.0", 0, "after")) == fenced);
    CHECK(outcome(read(*victim, "Data.1.0", 0, 10)) == fenced);
    CHECK(outcome(truncate(*victim, "Data.1.0", 0)) == fenced);
    CHECK(outcome(remove_data(*victim, "Data.1.0")) == fenced);
    CHECK(outcome(zero(*victim, "Data.1.0", 0, 3)) == fenced);
    CHECK(outcome(copy(*victim, "Data.1.1", "Data.1.0")) == fenced);
    CHECK(outcome(extents(*victim, "Data.1.0", 0, 10)) == fenced);
  }
  CHECK(value_of(look(*fencer, "Inode.1")).ranges[0].entries[0].second == "before");
  CHECK(value_of(read(*fencer, "Data.1.0", 0, 10)) == "before");
}

}  // namespace lccfs::conformance
