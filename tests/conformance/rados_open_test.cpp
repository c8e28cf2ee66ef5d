// SPDX-License-Identifier: LGPL-2.1-or-later
// What opening a volume on RADOS answers when something is wrong: one line that says what to do.
#include <cstdlib>
#include <string>

#include "conformance/conformance.h"
#include "conformance/temporary_file.h"
#include "store/rados/rados_store.h"

namespace lccfs::conformance {
namespace {

VolumeAddress test_address() {
  VolumeAddress address;
  address.conf_file = std::getenv("LCCFS_TEST_CONF");
  address.pool = std::getenv("LCCFS_TEST_POOL");
  return address;
}

/// Where the cluster answers, the time-out is there for a busy machine alone.
void fails(const VolumeAddress& address, ErrorCode code, const std::string& hint,
           std::chrono::seconds connect_timeout = std::chrono::seconds(60)) {
  StoreOptions options;
  options.connect_timeout = connect_timeout;
  const auto store = open_rados_store(address, options);
  REQUIRE_FALSE(store.has_value());
  CHECK(outcome(store) == outcome(code));
  CHECK_THAT(store.error().context, Catch::Contains(hint) && !Catch::Contains("\n"));
}

}  // namespace

STORE_CASE("A configuration file that is missing is named") {
  VolumeAddress address = test_address();
  address.conf_file = "/nowhere/ceph.conf";
  fails(address, ErrorCode::not_found, "/nowhere/ceph.conf: no such configuration file");
}

STORE_CASE("A pool that is missing comes with the command that makes it") {
  VolumeAddress address = test_address();
  address.pool = "no-such-pool";
  fails(address, ErrorCode::not_found, "create it with: ceph osd pool create no-such-pool");
  address.pool = "999999";
  fails(address, ErrorCode::not_found, "there is no pool 999999");
  const auto store = volume.new_client();
  const auto answer = store->use_data_pool("no-such-pool");
  CHECK(outcome(answer) == outcome(ErrorCode::not_found));
}

STORE_CASE("A client without a key is told so") {
  VolumeAddress address = test_address();
  address.client_id = "nobody";
  fails(address, ErrorCode::permission_denied, "client.nobody");
}

STORE_CASE("A cluster that does not answer is given up after the time-out") {
  const TemporaryFile conf("[global]\nmon host = [v2:127.0.0.1:1/0]\nauth client required = none\n");
  VolumeAddress address = test_address();
  address.conf_file = conf.path();
  fails(address, ErrorCode::timed_out, "no monitor of the cluster answered within 1 s (mon host = [v2:127.0.0.1:1/0]",
        std::chrono::seconds(1));
}

STORE_CASE("A configuration file that is none is refused") {
  const TemporaryFile conf("[global\nmon host = \\");
  VolumeAddress address = test_address();
  address.conf_file = conf.path();
  fails(address, ErrorCode::invalid, conf.path());
}

}  // namespace lccfs::conformance
