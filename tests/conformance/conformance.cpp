// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/conformance.h"

#include <algorithm>
#include <future>
#include <utility>

namespace lccfs::conformance {
namespace {

/// Waits for the one answer of an asynchronous call.
template <class T, class Start>
Result<T> await(Start start) {
  std::promise<Result<T>> promise;
  auto answer = promise.get_future();
  start([promise = std::move(promise)](Result<T> result) mutable { promise.set_value(std::move(result)); });
  return answer.get();
}

}  // namespace

void succeeds(const Result<>& result) {
  INFO((result ? std::string() : result.error().context));
  REQUIRE(result.has_value());
}

MetaTxn txn(std::string object, std::vector<Guard> guards, std::vector<Mutation> mutations) {
  return MetaTxn{std::move(object), "conformance", std::move(guards), std::move(mutations)};
}

void create(ObjectStore& store, const std::string& object, std::vector<Mutation> more) {
  std::vector<Mutation> mutations{mutation::CreateExclusive{}};
  mutations.insert(mutations.end(), more.begin(), more.end());
  value_of(store.apply(txn(object, {}, std::move(mutations))));
}

Result<MetaSnapshot> look(ObjectStore& store, const std::string& object) {
  return store.query(MetaRead{object, true, true, {KeyRange{}}, {}});
}

bool exists(ObjectStore& store, const std::string& object) {
  const auto answer = store.query(MetaRead{object, false, false, {}, {}});
  if (!answer) REQUIRE(outcome(answer) == outcome(ErrorCode::not_found));
  return answer.has_value();
}

SharedBytes share(Bytes bytes) {
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return SharedBytes{std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()};
}

Result<> write(ObjectStore& store, const std::string& object, std::uint64_t offset, SharedBytes bytes) {
  return await<void>([&](auto done) { store.write_data(object, offset, std::move(bytes), std::move(done)); });
}

Result<> write(ObjectStore& store, const std::string& object, std::vector<DataPiece> pieces) {
  return await<void>([&](auto done) { store.write_data(object, std::move(pieces), std::move(done)); });
}

Result<> write(ObjectStore& store, const std::string& object, std::uint64_t offset, Bytes bytes) {
  return write(store, object, offset, share(std::move(bytes)));
}

Result<Bytes> read(ObjectStore& store, const std::string& object, std::uint64_t offset, std::size_t length) {
  Bytes target(length, '?');
  LCCFS_TRY(const std::size_t count, await<std::size_t>([&](auto done) {
              store.read_data(object, offset, std::span(target), std::move(done));
            }));
  target.resize(count);
  return target;
}

Result<> truncate(ObjectStore& store, const std::string& object, std::uint64_t size_bytes) {
  return await<void>([&](auto done) { store.truncate_data(object, size_bytes, std::move(done)); });
}

Result<> remove_data(ObjectStore& store, const std::string& object) {
  return await<void>([&](auto done) { store.remove_data(object, std::move(done)); });
}

Result<> zero(ObjectStore& store, const std::string& object, std::uint64_t offset, std::uint64_t size_bytes) {
  return await<void>([&](auto done) { store.zero_data(object, offset, size_bytes, std::move(done)); });
}

Result<> copy(ObjectStore& store, const std::string& source, const std::string& target) {
  return await<void>([&](auto done) { store.copy_data(source, target, std::move(done)); });
}

Result<std::vector<DataExtent>> extents(ObjectStore& store, const std::string& object, std::uint64_t offset,
                                        std::uint64_t size_bytes) {
  return await<std::vector<DataExtent>>(
      [&](auto done) { store.data_extents(object, offset, size_bytes, std::move(done)); });
}

namespace {

std::vector<std::string> list_from(ObjectStore& store, const std::vector<std::string>& starts) {
  std::vector<std::string> names;
  for (std::string cursor : starts) {
    do {
      ListPage page = value_of(store.list(cursor));
      std::move(page.names.begin(), page.names.end(), std::back_inserter(names));
      cursor = page.next_cursor;
    } while (!cursor.empty());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> list_all(ObjectStore& store) { return list_from(store, {""}); }

std::vector<std::string> list_parts(ObjectStore& store, unsigned parts) {
  return list_from(store, value_of(store.list_starts(parts)));
}

}  // namespace lccfs::conformance
