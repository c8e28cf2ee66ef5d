// SPDX-License-Identifier: LGPL-2.1-or-later
// Setting the features that a volume has not.
#include "format/features.h"
#include "lccfs/volume.h"
#include "support/catch.h"
#include "support/instances.h"

namespace lccfs {
namespace {

using format::InstanceRecord;
using test::need;
using test::once_on;

using Names = std::vector<std::string>;

Names names_of_all() {
  Names names;
  for (const auto& feature : format::all_features) names.emplace_back(feature.name);
  return names;
}

const Names all_names = names_of_all();

/// Of the format before there were features.
struct OldVolume : test::InstanceVolume {
  explicit OldVolume(const ScriptedCluster::Options& options = {}) : InstanceVolume(options) {}

  std::shared_ptr<ScriptedClient> admin = cluster->new_client();

  Result<Names> upgrade(UpgradeMode mode = UpgradeMode::set) {
    LCCFS_TRY(const auto upgraded, upgrade_volume(*admin, mode));
    local_locks.clear();
    for (const auto& client : upgraded.local_locks) local_locks.push_back(client.number);
    return upgraded.features;
  }

  /// Whom the last upgrade has named.
  std::vector<std::uint64_t> local_locks;

  /// As a program of that version has registered itself.
  void add_client(const std::string& version, InstanceRecord::State state = InstanceRecord::State::live,
                  std::uint64_t number = 900, const std::string& mount_id = "/mnt") {
    InstanceRecord record;
    record.mount_id = mount_id;
    record.host = "alpha";
    record.pid = 4711;
    record.version = version;
    record.identity = "somebody";
    record.state = state;
    need(looker->apply(txn::add_instance_record(InstanceId{number}, encode(record))));
  }

  format::SuperRecord super() {
    auto found = need(looker->query({.object = format::super_object, .xattrs = true}));
    return need(format::decode<format::SuperRecord>(found.xattrs[format::xattr::super]));
  }
  bool is_upgraded() { return format::missing_features(super()).empty(); }
};

TEST_CASE("an upgrade sets all features in one step, and changes nothing else of the volume") {
  OldVolume volume;
  auto expected = volume.super();
  CHECK(need(volume.upgrade()) == all_names);
  format::set_features(expected, format::missing_features(expected));
  CHECK(volume.super() == expected);
  CHECK(volume.admin->counts().applies == 1);
  CHECK(Instance::start(volume.cluster->new_client(), volume.clock, {}).has_value());
}

TEST_CASE("a volume with all features is left as it is") {
  OldVolume volume;
  need(volume.upgrade());
  volume.add_client("0.1.0");  // has nothing to say in it
  CHECK(need(volume.upgrade()).empty());
  CHECK(volume.admin->counts().applies == 1);
}

TEST_CASE("a dry run tells what an upgrade would do, and changes nothing") {
  OldVolume volume;
  CHECK(need(volume.upgrade(UpgradeMode::only_tell)) == all_names);
  volume.add_client("0.1.0");
  CHECK_FALSE(volume.upgrade(UpgradeMode::only_tell).has_value());
  CHECK(volume.admin->counts().applies == 0);
}

TEST_CASE("a live client of a version that does not know the features is named, and nothing is changed") {
  const std::string version = GENERATE("0.1.0", "", "a fork", "0.5.0\n");
  OldVolume volume({.page_limit = 2});
  for (std::uint64_t number = 800; number < 805; ++number)
    volume.add_client("0.5.0", InstanceRecord::State::live, number);
  volume.add_client(version);
  const auto refused = volume.upgrade();
  REQUIRE(!refused);
  const auto& text = refused.error().context;
  INFO(text);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(text.find("instance 900 (host alpha, pid 4711, version " + version.substr(0, 5)) != std::string::npos);
  CHECK(text.find("instance 80") == std::string::npos);
  for (const auto& name : all_names) CHECK(text.find(name) != std::string::npos);
  CHECK(text.find("upgrade the program there, and mount again or restart") != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(volume.admin->counts().applies == 0);
}

TEST_CASE("clients that have ended or are fenced do not hinder an upgrade, nor does one that knows the features") {
  OldVolume volume;
  volume.add_client("0.1.0", InstanceRecord::State::ended, 900);
  volume.add_client("0.1.0", InstanceRecord::State::fenced, 901);
  const auto running = volume.start();
  CHECK(need(volume.upgrade()) == all_names);
  CHECK(volume.is_upgraded());
  CHECK(running->allocate_ino().has_value());
}

/// Three mounts that live, of which one has died, and what keeps no locks.
void add_clients_of_all_kinds(OldVolume& volume) {
  using State = InstanceRecord::State;
  volume.add_client("0.5.0", State::live, 900);
  volume.add_client("0.5.0", State::live, 901, "relative");
  volume.add_client("0.5.0", State::ended, 902);
  volume.add_client("0.5.0", State::fenced, 903);
  volume.add_client("0.5.0", State::live, 904, "");  // a collector
  volume.add_client("0.5.0", State::live, 905, "lccfs-gc");
}

TEST_CASE("mounts that keep their locks to themselves after an upgrade are named") {
  OldVolume volume;
  add_clients_of_all_kinds(volume);
  const std::vector<std::uint64_t> mounts{900, 901};
  REQUIRE(volume.upgrade(UpgradeMode::only_tell));
  CHECK(volume.local_locks == mounts);
  REQUIRE(volume.upgrade());
  CHECK(volume.local_locks == mounts);
  CHECK(need(volume.upgrade()).empty());  // which of them are still there, nothing tells
  CHECK(volume.local_locks.empty());
}

TEST_CASE("an upgrade of a volume that has locks between clients names nobody") {
  OldVolume volume;
  auto with_locks = volume.super();
  with_locks.incompat |= format::feature::locks;
  volume.cluster->with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::super_object).xattrs.at(format::xattr::super) = encode(with_locks);
  });
  add_clients_of_all_kinds(volume);
  CHECK(need(volume.upgrade()).size() == all_names.size() - 1);
  CHECK(volume.local_locks.empty());
}

TEST_CASE("a mount that began before an upgrade is named, whoever has upgraded and whatever became of the answer") {
  OldVolume volume;
  volume.add_client("0.5.0", InstanceRecord::State::live, 900);
  SECTION("it came after the look at all clients") {
    volume.admin->set_hook(
        test::before("set features", [&volume] { volume.add_client("0.5.0", InstanceRecord::State::live, 901); }));
  }
  SECTION("it came, and another upgraded") {
    volume.admin->set_hook(test::before("set features", [&volume] {
      volume.add_client("0.5.0", InstanceRecord::State::live, 901);
      need(upgrade_volume(*volume.looker, UpgradeMode::set));
    }));
  }
  SECTION("without an answer") {
    volume.add_client("0.5.0", InstanceRecord::State::live, 901);
    volume.admin->set_hook(once_on("set features", {Fault::Kind::lost_answer_applied}));
  }
  CHECK(need(volume.upgrade()) == all_names);
  CHECK(volume.local_locks == std::vector<std::uint64_t>{900, 901});
}

TEST_CASE("an upgrade without an answer, which may be done later, names the mounts that would keep their locks") {
  OldVolume volume;
  volume.add_client("0.5.0", InstanceRecord::State::live, 900);
  volume.admin->set_hook(once_on("set features", {Fault::Kind::lost_answer_not_applied}));
  const auto upgraded = volume.upgrade();
  REQUIRE_FALSE(upgraded);
  CHECK(upgraded.error().context.find("keep locks to themselves until they are mounted anew: 900 (") !=
        std::string::npos);
}

TEST_CASE("a client's record that cannot be read is refused by name") {
  OldVolume volume;
  need(volume.looker->apply(txn::add_instance_record(InstanceId{900}, "noise")));
  const auto refused = volume.upgrade();
  REQUIRE(!refused);
  CHECK(refused.error().context.starts_with("Super: s/900: "));
  CHECK(volume.admin->counts().applies == 0);
}

TEST_CASE("who registers between the look at all clients and the step is seen") {
  OldVolume volume;
  const bool old = GENERATE(true, false);
  volume.admin->set_hook(test::before("set features", [&volume, old] { volume.add_client(old ? "0.1.0" : "0.5.0"); }));
  const auto upgraded = volume.upgrade();
  CHECK(upgraded.has_value() == !old);
  CHECK(volume.is_upgraded() == !old);
  CHECK(volume.admin->counts().applies == (old ? 1 : 2));
}

TEST_CASE("an upgrade that is run twice or loses its answer says truly whether it is done") {
  OldVolume volume;
  SECTION("run twice") {
    volume.admin->set_hook(once_on("set features", {Fault::Kind::applied_twice}));
    CHECK(need(volume.upgrade()) == all_names);
    CHECK(volume.is_upgraded());
  }
  SECTION("done, without an answer") {
    volume.admin->set_hook(once_on("set features", {Fault::Kind::lost_answer_applied}));
    CHECK(need(volume.upgrade()) == all_names);
    CHECK(volume.is_upgraded());
  }
  SECTION("not done, without an answer") {
    volume.admin->set_hook(once_on("set features", {Fault::Kind::lost_answer_not_applied}));
    const auto upgraded = volume.upgrade();
    REQUIRE(!upgraded);
    CHECK(upgraded.error().outcome == Outcome::unknown);
    CHECK(volume.admin->counts().applies == 1);
  }
  SECTION("refused by the store") {
    volume.admin->set_hook(once_on("set features", {Fault::Kind::fail, ErrorCode::no_space}));
    const auto upgraded = volume.upgrade();
    REQUIRE(!upgraded);
    CHECK(upgraded.error().code == ErrorCode::no_space);
  }
}

TEST_CASE("where there is no volume, there is nothing to upgrade") {
  const auto upgraded = upgrade_volume(*ScriptedCluster::make()->new_client(), UpgradeMode::set);
  REQUIRE(!upgraded);
  CHECK(upgraded.error().code == ErrorCode::not_found);
}

}  // namespace
}  // namespace lccfs
