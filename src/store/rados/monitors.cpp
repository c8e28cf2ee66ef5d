// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/connection.h"
#include "store/rados/errors.h"
#include "store/rados/rados_store.h"

namespace lccfs {

Result<std::string> ask_rados_monitors(const VolumeAddress& address, const std::string& command) {
  LCCFS_TRY(const auto connection, rados::Connection::open(address, {.step_timeout = std::chrono::seconds(30)}));
  librados::bufferlist answer;
  std::string message;
  const int status = connection->cluster().mon_command(command, {}, &answer, &message);
  if (status < 0) return std::unexpected(rados::to_error(status, "ask the monitors", rados::Effect::reads));
  return answer.to_str();
}

}  // namespace lccfs
