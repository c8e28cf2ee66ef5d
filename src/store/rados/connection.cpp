// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/connection.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "store/rados/errors.h"

namespace lccfs::rados {
namespace {

std::string conf_name(const VolumeAddress& address) {
  return address.conf_file.empty() ? "the default ceph.conf" : address.conf_file;
}

/// Why the file cannot be read, or 0. librados says of any such file that it is not there.
int why_unreadable(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  char byte = 0;
  const int why = ::read(descriptor, &byte, 1) < 0 ? errno : 0;
  ::close(descriptor);
  return why;
}

Result<> read_conf_file(librados::Rados& cluster, const VolumeAddress& address) {
  const std::string& file = address.conf_file;
  int status = cluster.conf_read_file(file.empty() ? nullptr : file.c_str());
  if (const int why = status == -ENOENT && !file.empty() ? why_unreadable(file) : 0; why != 0) status = -why;
  if (status == -ENOENT)
    return failure(ErrorCode::not_found, conf_name(address) + ": no such configuration file; name one with -c");
  if (status < 0)
    return failure(ErrorCode::invalid, conf_name(address) + ": cannot be read as a ceph.conf: " + reason(status));
  return {};
}

std::optional<std::int64_t> to_number(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const VolumeAddress& address, const StoreOptions& options) {
  auto connection = std::make_unique<Connection>();
  connection->namespace_ = address.pool_namespace;
  LCCFS_CHECK(connection->configure(address, options));
  LCCFS_CHECK(connection->connect(address, options));
  LCCFS_CHECK(connection->open_pool(address.pool, connection->metadata_));
  connection->data_.dup(connection->metadata_);
  return connection;
}

Connection::~Connection() {
  data_.close();
  metadata_.close();
  cluster_.shutdown();
}

Result<> Connection::configure(const VolumeAddress& address, const StoreOptions& options) {
  if (const int status = cluster_.init(address.client_id.c_str()); status < 0)
    return failure(ErrorCode::io, "cannot start librados: " + reason(status));
  LCCFS_CHECK(read_conf_file(cluster_, address));
  // One messenger thread and one completion thread are faster and cheaper than more. What librados would print by
  // itself, our errors say in one line. 0: no limit; beyond one librados makes its caller wait, even if that is the
  // only thread that could bring an answer on (data_steps.cpp has limits that do not).
  std::vector<std::pair<const char*, std::string>> settings = {
      {"ms_async_op_threads", "1"},
      {"librados_thread_count", "1"},
      {"objecter_inflight_ops", "0"},
      {"objecter_inflight_op_bytes", "0"},
      {"log_to_stderr", "false"},
      {"err_to_stderr", "false"},
      {"client_mount_timeout", std::to_string(options.connect_timeout.count())},
  };
  // Without one a step waits, whatever ceph.conf says: one that librados gives up may still run, and an outage is no
  // error of the disk.
  const auto seconds = std::to_string(options.step_timeout.value_or(std::chrono::seconds(0)).count());
  settings.emplace_back("rados_osd_op_timeout", seconds);
  settings.emplace_back("rados_mon_op_timeout", seconds);
  for (const auto& [key, value] : settings) {
    if (const int status = cluster_.conf_set(key, value.c_str()); status < 0)
      return failure(ErrorCode::io, std::string("librados does not take ") + key + " = " + value);
  }
  return {};
}

bool Connection::names_monitors() {
  std::string hosts;
  return cluster_.conf_get("mon_host", hosts) == 0 && !hosts.empty();
}

Result<> Connection::connect(const VolumeAddress& address, const StoreOptions& options) {
  const int status = cluster_.connect();
  const std::string client = "client." + address.client_id;
  switch (-status) {
    case 0:
      return {};
    case ETIMEDOUT: {
      std::string monitors;
      cluster_.conf_get("mon_host", monitors);
      return failure(ErrorCode::timed_out, "no monitor of the cluster answered within " +
                                               std::to_string(options.connect_timeout.count()) +
                                               " s (mon host = " + monitors + " in " + conf_name(address) + ")");
    }
    case ENOENT:
      return failure(ErrorCode::permission_denied,
                     "no key for " + client + ": check the keyring that " + conf_name(address) + " names, and --id" +
                         (names_monitors() ? "" : "; or no monitor: there is no line mon_host = ADDRESS"));
    case EPERM:
    case EACCES:
      return failure(
          ErrorCode::permission_denied,
          "the key of " + client + " cannot be read, or the cluster refuses it: check its keyring, and --id");
    default:  // Ceph itself tells std::cerr what it does not understand, by no setting of ours
      return failure(ErrorCode::io, "cannot connect to the cluster of " + conf_name(address) + " as " + client + ": " +
                                        reason(status) + "; check mon_host there, and the client's keyring");
  }
}

Result<> Connection::open_pool(const std::string& name_or_number, librados::IoCtx& pool) {
  int status = cluster_.ioctx_create(name_or_number.c_str(), pool);
  if (const auto number = to_number(name_or_number); status == -ENOENT && number)
    status = cluster_.ioctx_create2(*number, pool);
  if (status == -ENOENT)
    return failure(ErrorCode::not_found,
                   "there is no pool " + name_or_number + "; create it with: ceph osd pool create " + name_or_number);
  if (status < 0) return std::unexpected(to_error(status, "pool " + name_or_number, Effect::reads));
  pool.set_namespace(namespace_);
  // Without this, a step on a full pool waits for ever, also one that would free space.
  pool.set_pool_full_try();
  return {};
}

Result<> Connection::use_data_pool(const std::string& name) {
  librados::IoCtx pool;
  LCCFS_CHECK(open_pool(name, pool));
  bool takes_whole_stripes_only = false;
  if (pool.pool_requires_alignment2(&takes_whole_stripes_only) == 0 && takes_whole_stripes_only) {
    return failure(ErrorCode::invalid, "the erasure-coded pool " + name + " takes no overwrites; allow them with: " +
                                           "ceph osd pool set " + name + " allow_ec_overwrites true");
  }
  data_ = std::move(pool);
  return {};
}

}  // namespace lccfs::rados
