// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The directory of a local volume:
//
//   lccfs-local        marker: "LCCFS local store, layout 1\n". It comes first; the rest is made when it is missing, but
//                      no data/ where there are metadata. (A folder in data/ is made for its first file: nothing tells one
//                      that is missing from one that never was.)
//   metadata/          the LMDB environment: environment.h, metadata_table.h, watch_table.h
//   data/<2 hex>/<object name>   one sparse file for each data object, spread by a hash of the name: data_files.h.
//                      The sticky bit of a file or directory there: its name may not be durable yet
//   clients/<id>       locked by its client for as long as it lives; <id>.sock beside it: client.h, watches.h
#pragma once

#include <string>

#include "lccfs/result.h"
#include "store/local/descriptor.h"

namespace lccfs::local {

struct Directory {
  std::string path;
  Descriptor root, data, clients;
  std::string metadata_path;
  bool read_only = false;  ///< this process may not write into it, or it is mounted read-only
};

/// Opens the directory of a volume. not_found: it is missing, or holds none. With `create` it is made; `exists`: it
/// holds something that is not ours (nothing was changed). corrupt: a part of it is missing or damaged. unsupported: a
/// newer layout. permission_denied: also if it belongs to another user than this process's and root, or every user may
/// write into it.
Result<Directory> open_directory(const std::string& path, bool create);

// LMDB does not see a reader that does not write that down: readers that may not write, and writers, keep each other
// out. Each shows itself first (the writer by its file in clients/), and looks for the other then.

/// Shows that a program reads here that may not write, for as long as it is open.
Result<Descriptor> show_onlooker(const Directory& directory);
/// busy: there is one.
Result<> expect_no_onlooker(const Directory& directory);

}  // namespace lccfs::local
