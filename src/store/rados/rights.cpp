// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/rights.h"

#include <cerrno>
#include <chrono>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "store/rados/capabilities.h"

namespace lccfs::rados {
namespace {

/// The monitors look at the key first, and at the address then, which is none: nothing is changed whatever they say.
enum class Nonce { of_a_client, of_a_host };
bool may_bar_nobody(Connection& connection, Nonce nonce) {
  const std::string command = R"({"prefix": "osd blocklist", "blocklistop": "add", "addr": "999.999.999.999:0/)" +
                              std::string(nonce == Nonce::of_a_host ? "0" : "1000") + "\"}";
  librados::bufferlist answer;
  std::string message;
  const int status = connection.cluster().mon_command(command, {}, &answer, &message);
  return status != -EACCES && status != -EPERM;
}

/// Of an object that is not there. A pool that does not answer is no pool of ours.
bool may_look_into(librados::IoCtx& pool) {
  constexpr auto give_up_after = std::chrono::seconds(5);
  constexpr auto look_again_after = std::chrono::milliseconds(20);
  librados::ObjectReadOperation operation;
  std::unique_ptr<librados::AioCompletion, void (*)(librados::AioCompletion*)> answer(
      librados::Rados::aio_create_completion(), [](librados::AioCompletion* completion) { completion->release(); });
  operation.assert_exists();
  if (pool.aio_operate("Elsewhere", answer.get(), &operation, nullptr) < 0) return false;
  const auto end = std::chrono::steady_clock::now() + give_up_after;
  while (!answer->is_complete() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(look_again_after);
  if (!answer->is_complete()) return false;
  const int status = answer->get_return_value();
  return status != -EACCES && status != -EPERM;
}

/// A volume in a namespace: into others of its pool. One that has its pool to itself: into another pool.
bool may_look_elsewhere(Connection& connection) {
  librados::IoCtx elsewhere;
  if (connection.has_namespace()) {
    elsewhere.dup(connection.metadata());
    elsewhere.set_namespace("elsewhere-" + connection.metadata().get_pool_name());
    return may_look_into(elsewhere);
  }
  std::list<std::pair<std::int64_t, std::string>> pools;
  if (connection.cluster().pool_list2(pools) < 0) return false;
  for (const auto& [number, name] : pools) {
    if (number == connection.metadata().get_id() || number == connection.data().get_id()) continue;
    if (connection.cluster().ioctx_create2(number, elsewhere) == 0) return may_look_into(elsewhere);
  }
  return false;
}

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
  if (may_bar_nobody(connection, Nonce::of_a_client)) return {};
  return failure(
      ErrorCode::permission_denied,
      std::string("our key may not fence clients that are gone, which every client that writes must; ceph auth caps "
                  "sets what it needs: mon '") +
          mon_capability + "' osd '" + osd_capability + "'");
}

bool reaches_beyond_volume(Connection& connection) {
  return may_bar_nobody(connection, Nonce::of_a_host) || may_look_elsewhere(connection);
}

Result<> enable_application(Connection& connection) {
  LCCFS_CHECK(enable(connection.metadata()));
  return connection.has_data_pool() ? enable(connection.data()) : Result<>{};
}

}  // namespace lccfs::rados
