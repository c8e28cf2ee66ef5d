// SPDX-License-Identifier: LGPL-2.1-or-later
// A mount of a volume for the time being, by lccfs-fuse, in a folder that nobody else sees.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "lccfs/result.h"
#include "lccfs/volume_address.h"

namespace lccfs::cli {

/// Makes the folder; removes it, empty again, at the end.
class PrivateFolder {
 public:
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();
  const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Unmounts at the end. If this process dies, lccfs-fuse ends by itself.
class OwnMount {
 public:
  /// Below that folder. The error has what lccfs-fuse said.
  static Result<OwnMount> make(const VolumeAddress& address, const std::string& folder, const std::string& name);
  OwnMount(OwnMount&& other) noexcept : path_(std::move(other.path_)), process_(other.process_) { other.process_ = -1; }
  OwnMount& operator=(OwnMount&&) = delete;
  ~OwnMount();
  const std::string& path() const { return path_; }
  /// Calls that wait for it fail. It is killed if it does not end by itself within 5 s.
  void end_at_once();

 private:
  OwnMount(std::string path, pid_t process) : path_(std::move(path)), process_(process) {}
  void end_process(std::chrono::seconds longest) const;

  std::string path_;
  pid_t process_;
};

}  // namespace lccfs::cli
