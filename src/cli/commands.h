// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands of lccfs. Each adds itself to the program's command line, and runs when the line was parsed.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/place.h"
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
  bool json_ = false;
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

/// Bars the client. A step that may have been applied is not given up, so it waits for the store for as long as that
/// takes, and what has not been answered is named in the log meanwhile.
Result<InstanceInfo> evict(std::shared_ptr<ObjectStore> store, Clock& clock, std::uint64_t client);

class Evict {
 public:
  explicit Evict(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  std::uint64_t client_ = 0;
  bool json_ = false;
};

class Auth {
 public:
  explicit Auth(options::CommandLine& program);
  Result<> run() const;

 private:
  Result<std::string> data_pool() const;

  VolumeAddress address_;
  std::string client_, data_pool_, keyring_;
  bool read_only_ = false;
};

class Upgrade {
 public:
  explicit Upgrade(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  bool dry_run_ = false, json_ = false;
};

class Df {
 public:
  explicit Df(options::CommandLine& program);
  Result<> run() const;

 private:
  Place place_;
  bool json_ = false;
};

class Du {
 public:
  explicit Du(options::CommandLine& program);
  Result<> run() const;

 private:
  Place place_;
  bool summary_ = false, human_ = false, json_ = false;
};

class Stat {
 public:
  explicit Stat(options::CommandLine& program);
  Result<> run() const;

 private:
  Place place_;
  bool json_ = false;
};

class Dump {
 public:
  explicit Dump(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
};

class Load {
 public:
  explicit Load(options::CommandLine& program);
  Result<> run() const;

 private:
  VolumeAddress address_;
  bool json_ = false;
};

class Doctor {
 public:
  explicit Doctor(options::CommandLine& program);
  /// The status to exit with.
  Result<int> run() const;

 private:
  VolumeAddress address_;
  std::string peer_;
  bool json_ = false;
};

class Top {
 public:
  explicit Top(options::CommandLine& program);
  Result<> run() const;

 private:
  std::vector<std::string> wanted_;
  std::chrono::nanoseconds interval_{std::chrono::seconds(1)};
  bool once_ = false, json_ = false;
};

class LogLevel {
 public:
  explicit LogLevel(options::CommandLine& program);
  Result<> run() const;

 private:
  std::string level_;
  std::vector<std::string> wanted_;
};

// What `info` prints. Ages are told as of `now_seconds`.
std::string info_as_text(const VolumeInfo& info, std::int64_t now_seconds);
std::string info_as_json(const VolumeInfo& info);
// What `clients` prints: a line, without its end; and all of them.
std::string client_as_text(const InstanceInfo& client);
std::string clients_as_json(const std::vector<InstanceInfo>& clients);
nlohmann::ordered_json clients_json(const std::vector<InstanceInfo>& clients);
// What `evict` prints; `client` is what it was before.
std::string evicted_as_text(const InstanceInfo& client);
std::string evicted_as_json(const InstanceInfo& client);

}  // namespace lccfs::cli
