// SPDX-License-Identifier: LGPL-2.1-or-later
// A volume on a scripted cluster, and mounts of it.
#pragma once

#include <memory>
#include <utility>

#include "lccfs/file_system.h"
#include "lccfs/volume.h"
#include "scripted/scripted_store.h"
#include "support/fake_clock.h"
#include "support/hooks.h"

namespace lccfs::test {

/// One client of the volume: a FileSystem, and the store client under it, which counts its steps and takes a script.
struct Mount {
  std::shared_ptr<ScriptedClient> client;
  std::unique_ptr<FileSystem> file_system;
  FileSystem* operator->() const { return file_system.get(); }
};

/// A client that answers for new files, their names and bytes, before the store has them.
inline FileSystemOptions new_files_behind() {
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = true;
  options.dirty_limit_bytes = 8 << 20;
  options.idle_leases = 100;
  return options;
}

class TestVolume {
 public:
  explicit TestVolume(const MakeVolumeOptions& volume = {}, const ScriptedCluster::Options& options = {})
      : cluster_(ScriptedCluster::make(options)) {
    need(make_volume(*cluster_->new_client(), clock_, volume));
  }

  FakeClock& clock() { return clock_; }
  ScriptedCluster& cluster() { return *cluster_; }
  std::shared_ptr<ScriptedClient> new_client() { return cluster_->new_client(); }

  Mount mount(const FileSystemOptions& options = {}) {
    Mount mount;
    mount.client = new_client();
    mount.file_system = need(mount_volume(mount.client, clock_, options));
    mount.client->reset_record();
    return mount;
  }

 private:
  FakeClock clock_;
  std::shared_ptr<ScriptedCluster> cluster_;
};

}  // namespace lccfs::test
