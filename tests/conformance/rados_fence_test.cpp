// SPDX-License-Identifier: LGPL-2.1-or-later
// A key that may not fence: it is told so when it asks, and when it tries.
#include <cstdlib>
#include <fstream>
#include <rados/librados.hpp>
#include <sstream>
#include <string>

#include "conformance/conformance.h"
#include "conformance/temporary_file.h"
#include "store/rados/rados_store.h"

namespace lccfs::conformance {
namespace {

std::string ask_monitors(const std::string& command) {
  librados::Rados cluster;
  REQUIRE(cluster.init("admin") == 0);
  REQUIRE(cluster.conf_read_file(std::getenv("LCCFS_TEST_CONF")) == 0);
  REQUIRE(cluster.connect() == 0);
  librados::bufferlist answer;
  std::string message;
  REQUIRE(cluster.mon_command(command, {}, &answer, &message) == 0);
  return answer.to_str();
}

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::unique_ptr<ObjectStore> client_that_may_not_fence() {
  const TemporaryFile keyring(ask_monitors(R"({"prefix": "auth get-or-create", "entity": "client.peaceful", )"
                                           R"("caps": ["mon", "allow r", "osd", "allow rw"]})"));
  const TemporaryFile conf(text_of(std::getenv("LCCFS_TEST_CONF")) +
                           "\n[client.peaceful]\nkeyring = " + keyring.path() + "\n");
  VolumeAddress address;
  address.conf_file = conf.path();
  address.client_id = "peaceful";
  address.pool = std::getenv("LCCFS_TEST_POOL");
  return value_of(open_rados_store(address, {}));
}

}  // namespace

STORE_CASE("Who may not fence is told what its key needs, who may is not") {
  succeeds(volume.new_client()->check_may_fence());
  const auto asked = client_that_may_not_fence()->check_may_fence();
  CHECK(outcome(asked) == outcome(ErrorCode::permission_denied));
  CHECK_THAT(asked.error().context, Catch::Contains("with blocklistop=add addr regex") && !Catch::Contains("\n"));
  CHECK(ask_monitors(R"({"prefix": "osd blocklist ls"})").find("which-is-no-address") == std::string::npos);
}

STORE_CASE("A fence that is refused names the command for somebody who may") {
  const auto store = client_that_may_not_fence();
  const auto refused = store->fence("4711 192.0.2.7:0/4711 192.0.2.7:0/4712';x");  // addresses for documentation
  CHECK(outcome(refused) == outcome(ErrorCode::permission_denied));
  CHECK_THAT(refused.error().context, Catch::Contains("run: ceph osd blocklist add '192.0.2.7:0/4711' 315360000 && "
                                                      "ceph osd blocklist add '192.0.2.7:0/4712'\\'';x' 315360000") &&
                                          !Catch::Contains("\n"));
}

}  // namespace lccfs::conformance
