// SPDX-License-Identifier: LGPL-2.1-or-later
// mkfs and info.
#include "lccfs/volume.h"

#include "format/features.h"
#include "format/object_names.h"
#include "format/records.h"
#include "instance/instance.h"
#include "reclaim/collector.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/hooks.h"

namespace lccfs {
namespace {

using test::FakeClock;
using test::need;
using test::NthMutation;

struct EmptyPool {
  FakeClock clock;
  std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make({.pools = {"fast"}});
  std::shared_ptr<ScriptedClient> client = cluster->new_client();

  std::vector<std::string> names() { return need(cluster->new_client()->list("")).names; }
};

TEST_CASE("a new volume is as it was asked for, and can be used") {
  EmptyPool pool;
  const std::string uuid = need(make_volume(*pool.client, pool.clock, {1U << 20, "images", 90, "fast"}));
  const VolumeInfo info = need(describe_volume(*pool.client));
  CHECK((info.uuid == uuid && uuid.size() == 36));
  CHECK(info.label == "images");
  CHECK(info.data_pool == "fast");
  CHECK(info.format_version == format::format_version);
  CHECK(info.object_size_bytes == 1U << 20);
  CHECK(info.grace_seconds == 90);
  CHECK(info.birth_seconds == pool.clock.wall_time().seconds);
  CHECK(info.numbers_used == 0);
  CHECK(info.capacity.objects == 3);
  CHECK(info.instances.empty());
  CHECK(Instance::start(pool.cluster->new_client(), pool.clock, {}).has_value());
}

TEST_CASE("a new volume has all features that this version knows") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  const VolumeInfo info = need(describe_volume(*pool.client));
  CHECK(info.compat == format::known_bits(&format::SuperRecord::compat));
  CHECK(info.ro_compat == format::known_bits(&format::SuperRecord::ro_compat));
  CHECK(info.incompat == format::known_bits(&format::SuperRecord::incompat));
  CHECK((info.incompat & format::feature::space_units) != 0);
}

TEST_CASE("info lists the instances, over as many pages as it takes") {
  FakeClock clock;
  auto cluster = ScriptedCluster::make({.page_limit = 2});
  need(make_volume(*cluster->new_client(), clock, {}));
  std::vector<std::unique_ptr<Instance>> instances;
  for (int i = 0; i < 5; ++i) {
    instances.push_back(need(Instance::start(cluster->new_client(), clock, {.mount_id = "/mnt"})));
  }
  const VolumeInfo info = need(describe_volume(*cluster->new_client()));
  REQUIRE(info.instances.size() == 5);
  CHECK(info.instances.front().mount_id == "/mnt");
  CHECK(info.instances.front().state == "live");
  CHECK(info.numbers_used == 5 * 257);
}

TEST_CASE("where there is no volume, info says so") {
  EmptyPool pool;
  const auto info = describe_volume(*pool.client);
  REQUIRE(!info);
  CHECK(info.error().code == ErrorCode::not_found);
}

TEST_CASE("two volumes have different uuids") {
  EmptyPool one, other;
  need(make_volume(*one.client, one.clock, {}));
  need(make_volume(*other.client, other.clock, {}));
  CHECK(need(describe_volume(*one.client)).uuid != need(describe_volume(*other.client)).uuid);
}

TEST_CASE("options out of their range are refused before anything is written") {
  EmptyPool pool;
  const auto options = GENERATE(MakeVolumeOptions{.object_size_bytes = 3U << 20, .label = "", .data_pool = ""},
                                MakeVolumeOptions{.object_size_bytes = 32U << 10, .label = "", .data_pool = ""},
                                MakeVolumeOptions{.object_size_bytes = 64U << 20, .label = "", .data_pool = ""},
                                MakeVolumeOptions{.label = std::string(256, 'x'), .data_pool = ""});
  const auto made = make_volume(*pool.client, pool.clock, options);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::invalid);
  CHECK(pool.names().empty());
}

TEST_CASE("a data pool that is not there is refused before anything is written") {
  EmptyPool pool;
  const auto made = make_volume(*pool.client, pool.clock, {.label = "", .data_pool = "slow"});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::not_found);
  CHECK(pool.names().empty());
}

TEST_CASE("a pool that holds a volume, parts of one, or another program's objects is refused and stays as it is") {
  const std::string object = GENERATE("Super", "rbd_directory", "Inode.2", "Inode.01", "Session.5", "Data.1.0");
  EmptyPool pool;
  need(pool.client->apply({object, "put", {}, {mutation::CreateExclusive{}}}));
  pool.client->reset_record();
  const auto made = make_volume(*pool.client, pool.clock, {});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::exists);
  INFO(made.error().context);
  CHECK(made.error().context.find('\n') == std::string::npos);
  CHECK(pool.client->counts().applies == 0);
}

TEST_CASE("for a load, a volume is made where data objects are, and nothing but a load takes it") {
  MakeVolumeOptions for_load;
  for_load.to_be_loaded = true;
  EmptyPool pool;
  need(pool.client->apply({"Data.7.0", "put", {}, {mutation::CreateExclusive{}}}));
  CHECK_FALSE(make_volume(*pool.client, pool.clock, {}));
  need(make_volume(*pool.client, pool.clock, for_load));
  const auto info = describe_volume(*pool.client);
  REQUIRE(!info);
  CHECK(info.error().code == ErrorCode::unsupported);
  CHECK(info.error().context.contains("run lccfs load"));
  const auto started = Instance::start(pool.cluster->new_client(), pool.clock, {});
  CHECK((!started && started.error().code == ErrorCode::unsupported));
  CHECK_FALSE(upgrade_volume(*pool.client, UpgradeMode::set));
  EmptyPool other;
  need(other.client->apply({"Inode.7", "put", {}, {mutation::CreateExclusive{}}}));
  CHECK_FALSE(make_volume(*other.client, other.clock, for_load));
}

TEST_CASE("who finds a volume's objects first says only what is true of Super") {
  EmptyPool pool;
  const bool super = GENERATE(true, false);
  need(pool.client->apply({"Inode.9", "put", {}, {mutation::CreateExclusive{}}}));
  if (super) need(pool.client->apply({"Super", "put", {}, {mutation::SetXattr{"super", "damaged"}}}));
  const auto made = make_volume(*pool.client, pool.clock, {});
  REQUIRE(!made);
  CHECK((made.error().context.find("volume here already") != std::string::npos) == super);
  CHECK((made.error().context.find("no Super") != std::string::npos) != super);
}

/// All who read Super and say something of it.
std::vector<Error> errors_of_all(EmptyPool& pool) {
  std::vector<Error> errors;
  const auto note = [&errors](const auto& result) {
    REQUIRE(!result);
    errors.push_back(result.error());
  };
  note(Instance::start(pool.cluster->new_client(), pool.clock, {}));
  note(describe_volume(*pool.client));
  note(reclaim::dry_run(*pool.client, pool.clock, {}));
  note(reclaim::measure_backlog(*pool.client));
  return errors;
}

TEST_CASE("a volume with a feature that is not known is refused in one line, with what to do") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  pool.cluster->with_objects([](scripted::Objects& objects) {
    auto& raw = objects.metadata().at("Super").xattrs["super"];
    auto super = need(format::decode<format::SuperRecord>(raw));
    super.incompat |= std::uint64_t{1} << 40;
    raw = encode(super);
  });
  auto errors = errors_of_all(pool);
  const auto upgraded = upgrade_volume(*pool.client, UpgradeMode::set);
  REQUIRE(!upgraded);
  errors.push_back(upgraded.error());
  for (const auto& error : errors) {
    INFO(error.context);
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(error.context.find("(incompat 0x10000000000): use a newer one") != std::string::npos);
    CHECK(error.context.find('\n') == std::string::npos);
  }
  CHECK(pool.client->trace().back() == "query Super");
}

TEST_CASE("a damaged Super is named, with what to do, and what to do if that is not enough") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  const bool missing = GENERATE(false, true);
  pool.cluster->with_objects([missing](scripted::Objects& objects) {
    auto& xattrs = objects.metadata().at("Super").xattrs;
    xattrs["super"][20] ^= 1;
    if (missing) xattrs.erase("super");
  });
  for (const auto& error : errors_of_all(pool)) {
    INFO(error.context);
    CHECK(error.code == ErrorCode::corrupt);
    CHECK(error.context.starts_with("Super: "));
    CHECK(error.context.find("run lccfs-fsck") != std::string::npos);
    CHECK(error.context.find("put a copy back") != std::string::npos);
  }
}

TEST_CASE("a count of fences that would begin anew, and a damaged record of a client, are refused by name") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  const bool in_record = GENERATE(false, true);
  pool.cluster->with_objects([in_record](scripted::Objects& objects) {
    auto& super = objects.metadata().at("Super");
    if (in_record) super.keys["s/7"] = "noise";
    if (!in_record) super.xattrs["fences"] = encode(format::NumberRecord{~std::uint64_t{0}});
  });
  const auto started = Instance::start(pool.cluster->new_client(), pool.clock, {});
  CHECK(started.has_value() == in_record);
  for (const auto& error :
       {started ? (*started)->poll_liveness({}).error() : started.error(),
        reclaim::dry_run(*pool.client, pool.clock, {}).error(), reclaim::measure_backlog(*pool.client).error()}) {
    INFO(error.context);
    CHECK(error.code == ErrorCode::corrupt);
    CHECK(error.context.starts_with(in_record ? "Super: s/7: " : "Super: fences: "));
    CHECK(error.context.find("run lccfs-fsck") != std::string::npos);
  }
}

TEST_CASE("an Alloc that would hand out what is no number of an inode is refused by name, and stays as it is") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  const auto next = GENERATE(std::uint64_t{0}, std::uint64_t{1}, format::numbers_end, ~std::uint64_t{0});
  pool.cluster->with_objects([&](scripted::Objects& objects) {
    objects.metadata().at("Alloc").xattrs["next"] = encode(format::NumberRecord{next});
  });
  auto client = pool.cluster->new_client();
  const auto started = Instance::start(client, pool.clock, {});
  const auto described = describe_volume(*client);
  REQUIRE(!started);
  REQUIRE(!described);
  for (const auto& error : {started.error(), described.error()}) {
    CHECK(error.code == ErrorCode::corrupt);
    CHECK(error.context.starts_with("Alloc: next: "));
    CHECK(error.context.find("run lccfs-fsck") != std::string::npos);
  }
  CHECK(client->counts().applies == 0);
}

TEST_CASE("a volume whose Alloc is missing is told as damaged, not as none") {
  EmptyPool pool;
  need(make_volume(*pool.client, pool.clock, {}));
  pool.cluster->with_objects([](scripted::Objects& objects) { objects.metadata().erase("Alloc"); });
  auto client = pool.cluster->new_client();
  const auto started = Instance::start(client, pool.clock, {});
  const auto described = describe_volume(*client);
  REQUIRE(!started);
  REQUIRE(!described);
  for (const auto& error : {started.error(), described.error()}) {
    CHECK(error.code == ErrorCode::corrupt);
    CHECK(error.context == "Alloc: it is missing: the volume is damaged: run lccfs-fsck");
  }
}

TEST_CASE("an Alloc that has handed out numbers, and an inode 1 that is no empty directory, are not built upon") {
  const bool alloc = GENERATE(true, false);
  EmptyPool pool;
  if (alloc) {
    const Bytes next = encode(format::NumberRecord{4000});
    need(pool.client->apply({"Alloc", "put", {}, {mutation::SetXattr{format::xattr::next, next}}}));
  } else {
    need(pool.client->apply({"Inode.1", "put", {}, {mutation::SetXattr{"attr", "something"}}}));
  }
  const auto made = make_volume(*pool.client, pool.clock, {});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::exists);
  CHECK(!describe_volume(*pool.client));
}

TEST_CASE("mkfs that is cut anywhere is run again, or has made the volume") {
  const auto kind = GENERATE(Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash,
                             Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  const bool applied = kind == Fault::Kind::applied_and_crash || kind == Fault::Kind::lost_answer_applied;
  for (unsigned cut = 0; cut < 3; ++cut) {
    INFO(describe(kind) << " at step " << cut);
    EmptyPool pool;
    const NthMutation hook(cut, {kind});
    pool.client->set_hook(hook);
    CHECK(!make_volume(*pool.client, pool.clock, {}));
    REQUIRE(hook.reached());
    auto next = pool.cluster->new_client();
    const bool there = applied && cut == 2;
    CHECK(describe_volume(*next).has_value() == there);
    CHECK(make_volume(*next, pool.clock, {}).has_value() == !there);
    CHECK(describe_volume(*next).has_value());
    CHECK(Instance::start(next, pool.clock, {}).has_value());
  }
}

TEST_CASE("mkfs whose steps are run twice makes the volume") {
  for (unsigned step = 0; step < 3; ++step) {
    EmptyPool pool;
    pool.client->set_hook(NthMutation(step, {Fault::Kind::applied_twice}));
    CHECK(make_volume(*pool.client, pool.clock, {}).has_value());
    CHECK(describe_volume(*pool.client).has_value());
  }
}

TEST_CASE("of two mkfs at once one makes the volume, and the other is told") {
  const std::string step = GENERATE("make alloc", "make root", "make super");
  EmptyPool pool;
  auto rival = pool.cluster->new_client();
  pool.client->set_hook(
      test::before(step, [&] { need(make_volume(*rival, pool.clock, {.label = "rival's", .data_pool = ""})); }));
  const auto made = make_volume(*pool.client, pool.clock, {});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::exists);
  CHECK(need(describe_volume(*rival)).label == "rival's");
}

}  // namespace
}  // namespace lccfs
