// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/text.h"
#include "cli/commands.h"
#include "metrics/hanging_operations.h"

namespace lccfs::cli {

Clients::Clients(options::CommandLine& program) {
  auto& line = program.add_command({.name = "clients",
                                    .usage = "VOLUME [--json]",
                                    .summary = "Lists who uses a volume. Changes nothing.",
                                    .footer = R"(Examples:
  lccfs clients -c /etc/ceph/ceph.conf -p vms
  lccfs clients --local /srv/volume --json

"not seen now" is one look: it is no proof that the client is gone.)"});
  options::add_address(line, address_);
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
}

Result<> Clients::run() const {
  LCCFS_TRY(const auto store, open_store(address_, {.step_timeout = step_timeout}));
  LCCFS_TRY(const auto clients, describe_clients(*store));
  if (json_) {
    std::cout << clients_as_json(clients);
  } else {
    for (const auto& client : clients) std::cout << client_as_text(client) << "\n";
  }
  return {};
}

Evict::Evict(options::CommandLine& program) {
  auto& line = program.add_command({.name = "evict",
                                    .usage = "VOLUME --client NUMBER [--json]",
                                    .summary = "Bars one client from a volume for good.",
                                    .footer = R"(Examples:
  lccfs evict -c /etc/ceph/ceph.conf -p vms --client 4711
  lccfs evict --local /srv/volume --client 4711

When it returns, nothing that the client still sends takes effect. What the client has not synced is lost.
Its mount answers EIO until it is unmounted and mounted again; on a local volume its program is ended.
A client that has died needs no evicting: the next client that needs what it held fences it.)"});
  options::add_address(line, address_);
  line.group("Whom");
  line.option("--client", "NUMBER", options::number(client_, 1, UINT64_MAX), "as lccfs clients shows it");
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
  line.check([this]() -> Result<> {
    if (client_ != 0) return {};
    return failure(ErrorCode::invalid, "--client is missing: the number of the client, as lccfs clients shows it");
  });
}

Result<InstanceInfo> evict(std::shared_ptr<ObjectStore> store, Clock& clock, std::uint64_t client) {
  metrics::HangingOperations hanging(clock);
  return evict_client(hanging.look_at(std::move(store)), clock, client);
}

Result<> Evict::run() const {
  LCCFS_TRY(auto store, open_store(address_, {.step_timeout = step_timeout}));
  LCCFS_TRY(const auto client, evict(std::move(store), system_clock(), client_));
  std::cout << (json_ ? evicted_as_json(client) : evicted_as_text(client));
  return {};
}

}  // namespace lccfs::cli
