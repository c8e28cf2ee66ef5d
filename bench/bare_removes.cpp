// SPDX-License-Identifier: LGPL-2.1-or-later
// bare_removes -c CEPH.CONF -p POOL -n NAMESPACE --count N [--jobs J]: writes N objects of 4 KiB, then removes them, J
// at a time, with librados and nothing else. Prints the seconds that the removal took.
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <rados/librados.hpp>

#include "bench/in_flight.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;
using bench::InFlight;

constexpr std::size_t data_bytes = 4096;

/// Sends one operation for each object.
using Send = std::function<int(const std::string& object, librados::AioCompletion* completion)>;

void on_done(librados::completion_t completion, void* argument) {
  const int status = rados_aio_get_return_value(completion);
  if (status < 0) InFlight::fail("bare_removes: error " + std::to_string(status));
  static_cast<InFlight*>(argument)->end();
}

double for_all(std::uint64_t count, unsigned jobs, const Send& send) {
  const auto begin = std::chrono::steady_clock::now();
  {
    InFlight in_flight(jobs);
    for (std::uint64_t i = 0; i < count; ++i) {
      in_flight.begin();
      librados::AioCompletion* completion = librados::Rados::aio_create_completion(&in_flight, &on_done);
      if (send("bare." + std::to_string(i), completion) < 0) InFlight::fail("bare_removes: cannot send");
      completion->release();
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<librados::IoCtx> connect(librados::Rados& cluster, const VolumeAddress& address) {
  librados::IoCtx context;
  if (cluster.init(address.client_id.c_str()) < 0 || cluster.conf_read_file(address.conf_file.c_str()) < 0 ||
      cluster.connect() < 0 || cluster.ioctx_create(address.pool.c_str(), context) < 0)
    return failure(ErrorCode::io, "cannot connect to " + address.describe());
  context.set_namespace(address.pool_namespace);
  return context;
}

Result<double> run(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line(
      {.name = "bare_removes", .usage = "VOLUME --count N [--jobs N]", .summary = "Removes objects.", .footer = ""});
  options::add_address(line, address);
  line.group("Objects");
  std::uint64_t count = 0;
  unsigned jobs = 16;
  line.option("--count", "N", options::number(count, 1, UINT64_MAX), "how many");
  line.option("--jobs", "N", options::number(jobs, 1, UINT32_MAX), "in flight (default: 16)");
  LCCFS_CHECK(line.parse(words));
  librados::Rados cluster;
  LCCFS_TRY(librados::IoCtx context, connect(cluster, address));
  librados::bufferlist content;
  content.append(std::string(data_bytes, 'x'));
  for_all(count, jobs, [&](const std::string& object, librados::AioCompletion* completion) {
    librados::bufferlist bytes = content;
    return context.aio_write_full(object, completion, bytes);
  });
  return for_all(count, jobs, [&](const std::string& object, librados::AioCompletion* completion) {
    return context.aio_remove(object, completion);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto seconds = run({argv + 1, argv + argc});
  if (!seconds) {
    std::cerr << "bare_removes: " << seconds.error().context << "\n";
    return 1;
  }
  std::cout << *seconds << "\n";
  return 0;
}
