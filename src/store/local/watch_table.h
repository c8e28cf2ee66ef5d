// SPDX-License-Identifier: LGPL-2.1-or-later
// Which client watches what. It is in LMDB, so that every process finds it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lccfs/result.h"
#include "store/local/environment.h"

namespace lccfs::local {

/// A client may watch an object several times: `number` tells its watches apart.
Result<> add_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                   std::uint64_t number);
Result<> remove_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                      std::uint64_t number);
/// All but those of these clients.
Result<> remove_watches_but(WriteTransaction& transaction, const std::set<std::string>& ids);
/// Ids of the clients that watch the object, each once, dead ones among them.
Result<std::vector<std::string>> watchers(const Transaction& transaction, const std::string& object);

}  // namespace lccfs::local
