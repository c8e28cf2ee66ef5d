// SPDX-License-Identifier: LGPL-2.1-or-later
// What the port's transactions mean, for the stores that carry them out themselves: the local one, and the tests'
// scripted one. Pure functions of one object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lccfs/object_store.h"

namespace lccfs {

/// A metadata object without its keys, of which there may be many.
struct MetaHead {
  std::uint64_t version = 0;
  Bytes payload;
  std::map<std::string, Bytes> xattrs;
};

/// The keys of one object, wherever the store has them. Errors are the store's own.
class MetaKeys {
 public:
  virtual ~MetaKeys() = default;
  /// nullopt: no such key. Good until the next change.
  virtual Result<std::optional<std::string_view>> get(const std::string& key) const = 0;
  virtual Result<> set(const std::string& key, const Bytes& value) = 0;
  virtual Result<> remove(const std::string& key) = 0;  ///< absent is fine
};

bool creates(const MetaTxn& txn);
bool removes(const MetaTxn& txn);

/// All that can refuse a transaction: its form (invalid), a missing object, a guard, `exists`. `head`: nullptr if there
/// is no such object.
Result<> may_apply(const MetaTxn& txn, const MetaHead* head, const MetaKeys& keys);

/// Carries out what was checked. Not for one that removes.
Result<> mutate(const MetaTxn& txn, MetaHead& head, MetaKeys& keys);

}  // namespace lccfs
