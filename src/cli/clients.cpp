// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/text.h"
#include "cli/commands.h"
#include "metrics/hanging_operations.h"

namespace lccfs::cli {
namespace {

Result<int> run_clients(const OnVolume& given) {
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout}));
  LCCFS_TRY(const auto clients, describe_clients(*store));
  if (given.json) {
    std::cout << clients_as_json(clients);
  } else {
    for (const auto& client : clients) std::cout << client_as_text(client) << "\n";
  }
  return {};
}

struct Evict : OnVolume {
  std::uint64_t client = 0;
};

Result<int> run_evict(const Evict& given) {
  const auto open = [&given](const StoreOptions& options) -> Result<std::shared_ptr<ObjectStore>> {
    return open_store(given.address, options);
  };
  LCCFS_TRY(const auto client, evict(open, system_clock(), given.client));
  std::cout << (given.json ? evicted_as_json(client) : evicted_as_text(client));
  return {};
}

}  // namespace

void add_clients(options::CommandLine& program) {
  auto& line = program.add_command({.name = "clients",
                                    .usage = "VOLUME [--json]",
                                    .summary = "Lists who uses a volume. Changes nothing.",
                                    .footer = R"(Examples:
  lccfs clients -c /etc/ceph/ceph.conf -p vms
  lccfs clients --local /srv/volume --json

"not seen now" is one look: it is no proof that the client is gone.)"});
  auto& given = line.runs(run_clients);
  options::add_address(line, given.address);
  add_json(line, given.json);
}

void add_evict(options::CommandLine& program) {
  auto& line = program.add_command({.name = "evict",
                                    .usage = "VOLUME --client NUMBER [--json]",
                                    .summary = "Bars one client from a volume for good.",
                                    .footer = R"(Examples:
  lccfs evict -c /etc/ceph/ceph.conf -p vms --client 4711
  lccfs evict --local /srv/volume --client 4711

When it returns, nothing that the client still sends takes effect. What the client has not synced is lost.
Its mount answers EIO until it is unmounted and mounted again; on a local volume its program is ended.
A client that has died needs no evicting: the next client that needs what it held fences it.)"});
  auto& given = line.runs(run_evict);
  options::add_address(line, given.address);
  line.group("Whom");
  line.option("--client", "NUMBER", options::number(given.client, 1, UINT64_MAX), "as lccfs clients shows it");
  add_json(line, given.json);
  line.check([&given]() -> Result<> {
    if (given.client != 0) return {};
    return failure(ErrorCode::invalid, "--client is missing: the number of the client, as lccfs clients shows it");
  });
}

Result<InstanceInfo> evict(const OpenStore& open, Clock& clock, std::uint64_t client) {
  metrics::HangingOperations hanging(clock);
  {
    LCCFS_TRY(auto looker, open({.step_timeout = step_timeout}));
    LCCFS_CHECK(describe_client(*hanging.look_at(std::move(looker)), client));
  }
  // A fence that is given up may still bar the client, of which nothing would be known then.
  LCCFS_TRY(auto store, open({}));
  return evict_client(hanging.look_at(std::move(store)), clock, client);
}

}  // namespace lccfs::cli
