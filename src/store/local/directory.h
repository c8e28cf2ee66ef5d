// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The directory of a local volume:
//
//   lccfs-local        marker: "LCCFS local store, layout 1\n". It comes first; the rest is made when it is missing.
//   metadata/          the LMDB environment: environment.h, metadata_table.h, client_table.h
//   data/<2 hex>/<object name>   one sparse file for each data object, spread by a hash of the name: data_files.h
//   clients/<id>       locked by its client for as long as it lives; <id>.sock beside it: client.h, watch_server.h
#pragma once

#include <string>

#include "lccfs/result.h"
#include "store/local/descriptor.h"

namespace lccfs::local {

struct Directory {
  std::string path;
  Descriptor root, data, clients;
  std::string metadata_path;
};

/// Opens the directory of a volume. not_found: it is missing, or holds none. With `create` it is made; `exists`: it
/// holds something that is not ours (nothing was changed). unsupported: a newer layout.
Result<Directory> open_directory(const std::string& path, bool create);

}  // namespace lccfs::local
