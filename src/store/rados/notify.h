// SPDX-License-Identifier: LGPL-2.1-or-later
// Notifies that end though the object does not answer: the time-out of a notify is the OSD's, and begins once the request
// is there.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lccfs/object_store.h"
#include "store/rados/connection.h"
#include "store/rados/step.h"

namespace lccfs::rados {

/// Any thread.
class Notifies {
 public:
  Notifies(Connection& connection, RequestsInFlight& in_flight);

  /// As ObjectStore has it. librados keeps a notify until the object answers; while it keeps one that was given up, no
  /// other is sent to that object.
  Result<NotifyReply> send(const std::string& object, const Bytes& payload, std::chrono::milliseconds timeout);

 private:
  class GivenUp;
  struct Call;
  class NotifyStep;

  Result<NotifyReply> reply_of(Call& call, const std::string& object) const;

  Connection& connection_;
  RequestsInFlight& in_flight_;
  const std::shared_ptr<GivenUp> given_up_;
};

}  // namespace lccfs::rados
