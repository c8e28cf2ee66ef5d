// SPDX-License-Identifier: LGPL-2.1-or-later
// bare_scan ADDRESS [--jobs N]: lists all objects of a volume, and reads the xattrs of every inode, N at a time. What a
// check cannot do without. Prints the seconds that it took.
#include <chrono>
#include <iostream>
#include <memory>

#include "bench/in_flight.h"
#include "format/object_names.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;
using bench::InFlight;

Result<> scan(ObjectStore& store, unsigned jobs) {
  InFlight in_flight(jobs);
  std::string cursor;
  do {
    LCCFS_TRY(const ListPage page, store.list(cursor));
    for (const std::string& name : page.names) {
      if (!name.starts_with("Inode.")) continue;
      in_flight.begin();
      store.query_async({.object = name, .xattrs = true}, [&in_flight](const Result<MetaSnapshot>& read) {
        if (!read) InFlight::fail(read.error().context);
        in_flight.end();
      });
    }
    cursor = page.next_cursor;
  } while (!cursor.empty());
  return {};
}

Result<double> run(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line(
      {.name = "bare_scan", .usage = "VOLUME [--jobs N]", .summary = "Reads what a check must.", .footer = ""});
  options::add_address(line, address);
  line.group("Scan");
  unsigned jobs = 16;
  line.option("--jobs", "N", options::number(jobs, 1, UINT32_MAX), "reads in flight (default: 16)");
  LCCFS_CHECK(line.parse(words));
  LCCFS_TRY(const auto store, open_store(address, {}));
  const auto begin = std::chrono::steady_clock::now();
  LCCFS_CHECK(scan(*store, jobs));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto seconds = run({argv + 1, argv + argc});
  if (!seconds) {
    std::cerr << "bare_scan: " << seconds.error().context << "\n";
    return 1;
  }
  std::cout << *seconds << "\n";
  return 0;
}
