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

void ObjectStore::write_data(std::string object, std::uint64_t offset, SharedBytes bytes, DataDone done) {
  std::vector<DataPiece> pieces(1);
  pieces.front() = {offset, std::move(bytes)};
  write_data(std::move(object), std::move(pieces), std::move(done));
}

}  // namespace lccfs
