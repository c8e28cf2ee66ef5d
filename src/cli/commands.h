// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands of lccfs. Each adds itself to the program's command line, and runs when the line was parsed.
#pragma once

#include <string>

#include "lccfs/volume.h"
#include "options/command_line.h"

namespace lccfs::cli {

/// Somebody waits for these commands: every step of theirs gives up.
inline constexpr std::chrono::seconds step_timeout{30};

class Mkfs {
 public:
  explicit Mkfs(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  MakeVolumeOptions volume_;
};

class Info {
 public:
  explicit Info(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  bool json_ = false;
};

class Clients {
 public:
  explicit Clients(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  bool json_ = false;
};

class Evict {
 public:
  explicit Evict(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  std::uint64_t client_ = 0;
};

class Upgrade {
 public:
  explicit Upgrade(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  bool dry_run_ = false;
};

// What `info` prints. Ages are told as of `now_seconds`.
std::string info_as_text(const VolumeInfo& info, std::int64_t now_seconds);
std::string info_as_json(const VolumeInfo& info);
// What `clients` and `evict` print: a line, without its end; and all of them.
std::string client_as_text(const InstanceInfo& client);
std::string clients_as_json(const std::vector<InstanceInfo>& clients);

}  // namespace lccfs::cli
