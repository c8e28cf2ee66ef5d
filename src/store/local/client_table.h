// SPDX-License-Identifier: LGPL-2.1-or-later
// Which clients may change the volume, and what each watches. It is in LMDB, so that every process finds them, and so
// that a client's transactions and its fence are ordered by one lock. A client that is not in the table is fenced: each
// of its transactions looks.
#pragma once

#include <string>
#include <vector>

#include "lccfs/result.h"
#include "store/local/environment.h"

namespace lccfs::local {

Result<> add_client(WriteTransaction& transaction, const std::string& id, const std::string& identity);
/// With its watches; absent is fine.
Result<> remove_client(WriteTransaction& transaction, const std::string& id);
Result<bool> is_client(const Transaction& transaction, const std::string& id);
Result<std::vector<std::string>> client_ids(const Transaction& transaction);

/// A client may watch an object several times: `number` tells its watches apart.
Result<> add_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                   std::uint64_t number);
Result<> remove_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                      std::uint64_t number);
/// Ids of the clients that watch the object, each once, dead ones among them.
Result<std::vector<std::string>> watchers(const Transaction& transaction, const std::string& object);

}  // namespace lccfs::local
