// SPDX-License-Identifier: LGPL-2.1-or-later
// What keys permit, and whose addresses are believed.
#include <cerrno>
#include <string>

#include "conformance/rados_client.h"
#include "conformance/victim.h"
#include "store/rados/identity.h"
#include "store/rados/rados_store.h"

namespace lccfs::conformance {
namespace {

std::unique_ptr<ObjectStore> client_that_may_not_fence() {
  return value_of(open_rados_store(address_of("peaceful", "allow r", "allow rw"), {}));
}

/// Mightier than a volume needs, in the volume of these clients.
std::shared_ptr<ObjectStore> admin_of(const Volume& volume) {
  VolumeAddress address = address_of_admin();
  address.pool_namespace = address_of(volume).pool_namespace;
  return value_of(open_rados_store(address, {}));
}

bool is_barred(const std::string& address) {
  return ask_monitors(R"({"prefix": "osd blocklist ls"})").find(address) != std::string::npos;
}

void is_refused(const Result<>& answer, const std::string& with_command) {
  CHECK(outcome(answer) == outcome(ErrorCode::permission_denied));
  CHECK_THAT(answer.error().context, Catch::Contains(with_command) && !Catch::Contains("\n"));
}

const std::string nobodys_address = "192.0.2.7:0/4711";  // for documentation

}  // namespace

STORE_CASE("Who may not fence is told what its key needs, who may is not") {
  succeeds(volume.new_client()->check_may_fence());
  const auto asked = client_that_may_not_fence()->check_may_fence();
  CHECK(outcome(asked) == outcome(ErrorCode::permission_denied));
  CHECK_THAT(asked.error().context, Catch::Contains("with blocklistop=add addr regex") && !Catch::Contains("\n"));
  CHECK(!is_barred("999.999"));
}

STORE_CASE("A fence that is refused names the command for somebody who may") {
  const auto refused = client_that_may_not_fence()->fence("4711 192.0.2.7:0/4711 v1:[2001:db8::7]:0/4712");
  is_refused(refused,
             "run: ceph osd blocklist add '192.0.2.7:0/4711' 315360000 && "
             "ceph osd blocklist add 'v1:[2001:db8::7]:0/4712' 315360000");
}

STORE_CASE("An address that is not one client's goes into no command") {
  const auto store = volume.new_client();
  for (const std::string wrong :
       {"192.0.2.7", "192.0.2.7:0/0", "192.0.2.7:0/999", "192.0.2.7:0/04711", "192.0.2.7:0x/4711",
        "192.0.2.7:0/4294967296", "192.0.2.7:0/4711x", "192.0.2.0/24", "192.0.2.7:0:0/4711", "x:0/4711", ":0/4711",
        "[192.0.2.7]:0/4711", "2001:db8::7:0/4711", "192.0.2.7:0/4711'",
        R"(192.0.2.7:0/4711","prefix":"osd\u0020blocklist\u0020clear","x":")"}) {
    INFO(wrong);
    CHECK(outcome(store->fence("4711 " + wrong)) == outcome(ErrorCode::corrupt));
    CHECK(outcome(store->fence("4711 " + nobodys_address + " " + wrong)) == outcome(ErrorCode::corrupt));
  }
  CHECK(!is_barred("192.0.2"));
}

STORE_CASE("The monitors let the documents' key bar one client, no host and no range") {
  const VolumeAddress tenant = address_of_tenant();
  const auto bar = [&](const std::string& address, const std::string& more = "") {
    return command_as(tenant,
                      R"({"prefix": "osd blocklist", "blocklistop": "add", "addr": ")" + address + "\"" + more + "}");
  };
  for (const std::string wrong : {"192.0.2.7", "192.0.2.7:0/0", "192.0.2.7:0x/4711", "192.0.2.7:0:0/4711",
                                  "192.0.2.7 /4711", "192.0.2.7:/4711", "192.0.2.0/24", "192.0.2.7:0/4294967296"}) {
    for (const char* more : {"", R"(, "range": "range")"}) {
      INFO(wrong << more);
      CHECK(bar(wrong, more) == -EACCES);
    }
  }
  CHECK(!is_barred("192.0.2"));
  CHECK(bar(nobodys_address) == 0);
  CHECK(bar("[2001:db8::7]:0/4711") == 0);
  CHECK(is_barred(nobodys_address));
  for (const std::string& barred : {nobodys_address, std::string("[2001:db8::7]:0/4711")}) {
    ask_monitors(R"({"prefix": "osd blocklist", "blocklistop": "rm", "addr": ")" + barred + "\"}");
  }
}

STORE_CASE("A key that reaches no further than the volume bars whom the record names") {
  succeeds(volume.new_client()->fence("4711 " + nobodys_address));
  CHECK(is_barred(nobodys_address));
  ask_monitors(R"({"prefix": "osd blocklist", "blocklistop": "rm", "addr": ")" + nobodys_address + "\"}");
}

STORE_CASE("A mightier key bars nobody whom it has not seen, unless somebody has barred him already") {
  const auto admin = admin_of(volume);
  succeeds(admin->check_may_fence());
  is_refused(admin->fence("4711 " + nobodys_address),
             "run: ceph osd blocklist add '" + nobodys_address + "' 315360000");
  CHECK(!is_barred(nobodys_address));
  ask_monitors(R"({"prefix": "osd blocklist", "blocklistop": "add", "addr": ")" + nobodys_address + "\"}");
  succeeds(admin->fence("4711 " + nobodys_address));
  ask_monitors(R"({"prefix": "osd blocklist", "blocklistop": "rm", "addr": ")" + nobodys_address + "\"}");
}

STORE_CASE("A mightier key bars whom it has seen watch, at the address of its watch alone") {
  const auto victim = volume.start_victim();
  const auto admin = admin_of(volume);
  const auto seen = value_of(rados::parse_identity(victim->identity()));
  const Bytes forged = std::to_string(seen.instance_id) + " " + nobodys_address;
  SECTION("by looking for it") {
    CHECK(value_of(admin->presence(victim_session, victim->identity())) == Presence::watching);
  }
  SECTION("by looking around") {
    admin->look_at_watchers(victim_session);
    // After it, as all that one client asks of one object.
    while (!admin->query({.object = victim_session})) continue;
  }
  is_refused(admin->fence(forged), nobodys_address);
  CHECK(!is_barred(nobodys_address));
  succeeds(admin->fence(victim->identity()));
  CHECK(is_barred(std::string(rados::without_protocol(seen.addresses.front()))));
  value_of(admin->query({.object = victim_session}));
}

}  // namespace lccfs::conformance
