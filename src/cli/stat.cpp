// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <iostream>

#include "cli/commands.h"
#include "cli/output.h"
#include "format/object_names.h"
#include "survey/inode_facts.h"

namespace lccfs::cli {
namespace {

/// A number alone is an inode's, where it cannot be a path on a mount.
bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<int> run_stat(const OnPlace& given) {
  LCCFS_TRY(const Place place, resolve_place(given.place));
  LCCFS_TRY(const auto volume, open_to_look(place.address));
  LCCFS_TRY(const Ino ino, inode_of(volume, place));
  const auto facts = survey::read_inode_facts(*volume.store, ino);
  if (!facts && facts.error().code == ErrorCode::not_found)
    return failure(ErrorCode::not_found, "there is no inode " + std::to_string(ino.value) + " in the volume");
  if (!facts) return std::unexpected(facts.error());
  const auto size = volume.super.object_size_bytes;
  std::cout << (given.json ? stat_as_json(*facts, size) : stat_as_text(*facts, size));
  return {};
}

}  // namespace

void add_stat(options::CommandLine& program) {
  auto& line = program.add_command({.name = "stat",
                                    .usage = "[VOLUME] {PATH | NUMBER} [--json]",
                                    .summary = "Shows what is stored of one inode, and where it is open.",
                                    .footer = R"(Examples:
  lccfs stat /mnt/vms/instances/disk
  lccfs stat -p vms -n nova /instances/disk
  lccfs stat --local /srv/volume 4711 --json

With a VOLUME the path is one within it, and a number is an inode's (./4711 is a name). What a client has
written and not stored yet is not shown. All clients are asked whether they have it open, as a collector
asks them; one that does not answer within ten seconds is named. Nobody is asked for a directory that is not
removed yet.)"});
  auto& given = line.runs(run_stat);
  add_place(line, given.place, "PATH", "what to look at");
  add_json(line, given.json);
  line.check([&given]() -> Result<> {
    if (!names_volume(given.place) || !is_number(given.place.path)) return {};
    LCCFS_TRY(const std::uint64_t number, options::parse_number(given.place.path, 1, UINT64_MAX));
    given.place.ino = Ino{number};
    return {};
  });
}

}  // namespace lccfs::cli
