// SPDX-License-Identifier: LGPL-2.1-or-later
// The blocking forms of the store port. The completion owns the promise: the waiter may be gone before it returns.
#include "lccfs/object_store.h"

#include <future>

namespace lccfs {

Result<Applied> ObjectStore::apply(MetaTxn txn) {
  std::promise<Result<Applied>> promise;
  auto answer = promise.get_future();
  apply_async(std::move(txn),
              [promise = std::move(promise)](Result<Applied> result) mutable { promise.set_value(std::move(result)); });
  return answer.get();
}

Result<MetaSnapshot> ObjectStore::query(MetaRead read) {
  std::promise<Result<MetaSnapshot>> promise;
  auto answer = promise.get_future();
  query_async(std::move(read), [promise = std::move(promise)](Result<MetaSnapshot> result) mutable {
    promise.set_value(std::move(result));
  });
  return answer.get();
}

}  // namespace lccfs
