// SPDX-License-Identifier: LGPL-2.1-or-later
// The blocking forms of the store port.
#include "lccfs/object_store.h"

#include "base/completions.h"

namespace lccfs {

Result<Applied> ObjectStore::apply(MetaTxn txn) {
  auto [answer, done] = promised<Result<Applied>>();
  apply_async(std::move(txn), std::move(done));
  return answer.get();
}

Result<MetaSnapshot> ObjectStore::query(MetaRead read) {
  auto [answer, done] = promised<Result<MetaSnapshot>>();
  query_async(std::move(read), std::move(done));
  return answer.get();
}

}  // namespace lccfs
