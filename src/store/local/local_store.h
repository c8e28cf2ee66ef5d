// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The embedded store: a volume in a directory of this machine. Several processes may have it open at once. It keeps
// the port's whole contract, over kill -9 of any of them and over a loss of power.
//
//   apply     committer.h: group commit into LMDB (environment.h, metadata_table.h)
//   query     a read of mapped memory by the calling thread, or after the client's own transactions in flight
//   data      data_queue.h: sparse files (data_files.h)
//   clients   client.h: a locked file each; a fence is SIGKILL
//   watches   watches.h: a socket each; watch_table.h
#pragma once

#include <memory>
#include <string>

#include "lccfs/object_store.h"
#include "lccfs/volume_address.h"

namespace lccfs {

/// Starts threads, and opens what must not be carried over a fork. not_found: no directory, or no volume in it (with
/// options.create it is made). exists: what is in it is not ours. unsupported: a newer layout. Nothing was changed.
/// A directory that this process may only read is read while nobody uses it (busy: somebody does): whatever would
/// change it, watches too, answers permission_denied.
Result<std::unique_ptr<ObjectStore>> open_local_store(const std::string& directory, const StoreOptions& options);

}  // namespace lccfs
