// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/keys.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "store/rados/capabilities.h"
#include "store/rados/connection.h"
#include "store/rados/errors.h"

namespace lccfs::rados {
namespace {

constexpr StoreOptions somebody_waits{.step_timeout = std::chrono::seconds(30)};

/// As the monitors read it: a word, or anything between quotes.
Result<std::string> word_of(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; };
  if (std::ranges::all_of(name, plain)) return name;
  if (name.find_first_of("\"'\\") == std::string::npos) return "\"" + name + "\"";
  return failure(ErrorCode::invalid, "no capability can name '" + name + "': it has quotes or a backslash in it");
}

Result<std::string> osd_capability_of(const std::string& pool, const std::string& pool_namespace, Access access) {
  LCCFS_TRY(const auto pool_word, word_of(pool));
  LCCFS_TRY(const auto namespace_word, word_of(pool_namespace));
  return std::string(access == Access::read_only ? "allow r" : "allow rw") + " pool=" + pool_word +
         (pool_namespace.empty() ? "" : " namespace=" + namespace_word);
}

}  // namespace

Result<Capabilities> needed_capabilities(const VolumeAddress& address, const std::string& data_pool, Access access) {
  LCCFS_TRY(const auto connection, Connection::open(address, somebody_waits));
  Capabilities needed;
  needed.mon = access == Access::read_only ? "allow r" : mon_capability;
  LCCFS_TRY(needed.osd, osd_capability_of(connection->metadata().get_pool_name(), address.pool_namespace, access));
  if (data_pool.empty()) return needed;
  LCCFS_CHECK(connection->use_data_pool(data_pool));
  LCCFS_TRY(const auto data, osd_capability_of(connection->data().get_pool_name(), address.pool_namespace, access));
  needed.osd += ", " + data;
  return needed;
}

Result<std::string> make_key(const VolumeAddress& address, const std::string& name, const Capabilities& capabilities) {
  LCCFS_TRY(const auto connection, Connection::open(address, somebody_waits));
  const nlohmann::json command = {{"prefix", "auth get-or-create"},
                                  {"entity", "client." + name},
                                  {"caps", {"mon", capabilities.mon, "osd", capabilities.osd}}};
  librados::bufferlist keyring;
  std::string message;
  const int status = connection->cluster().mon_command(command.dump(), {}, &keyring, &message);
  if (status == -EACCES || status == -EPERM)
    return failure(ErrorCode::permission_denied, "client." + address.client_id + " may make no keys; run the command " +
                                                     "that this prints without --make where somebody may");
  if (status == -EINVAL)
    return failure(ErrorCode::exists, "client." + name + " is there with other capabilities, and is left as it is; " +
                                          "ceph auth caps client." + name + " sets them");
  if (status < 0) return std::unexpected(to_error(status, "ceph auth get-or-create client." + name, Effect::reads));
  return keyring.to_str();
}

}  // namespace lccfs::rados
