// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/rights.h"

#include <cerrno>
#include <set>
#include <string>

#include "store/rados/capabilities.h"

namespace lccfs::rados {
namespace {

/// The monitors look at the key first, and at the address then, which is none: nothing is changed whatever they say.
constexpr const char* fence_of_nobody =
    R"({"prefix": "osd blocklist", "blocklistop": "add", "addr": "which-is-no-address/1000"})";

Result<> enable(librados::IoCtx& pool) {
  std::set<std::string> applications;
  if (pool.application_list(&applications) == 0 && !applications.empty()) return {};
  if (pool.application_enable("lccfs", false) >= 0) return {};
  return failure(ErrorCode::permission_denied,
                 "Ceph warns of pools without an application; somebody who may should run: ceph osd pool application "
                 "enable " +
                     pool.get_pool_name() + " lccfs");
}

}  // namespace

Result<> check_may_fence(Connection& connection) {
  librados::bufferlist answer;
  std::string message;
  const int status = connection.cluster().mon_command(fence_of_nobody, {}, &answer, &message);
  if (status != -EACCES && status != -EPERM) return {};
  return failure(ErrorCode::permission_denied,
                 std::string("our key may not fence clients that are gone, which whoever writes must; ceph auth caps "
                             "sets what it needs: mon '") +
                     mon_capability + "' osd '" + osd_capability + "'");
}

Result<> enable_application(Connection& connection) {
  LCCFS_CHECK(enable(connection.metadata()));
  return connection.has_data_pool() ? enable(connection.data()) : Result<>{};
}

}  // namespace lccfs::rados
