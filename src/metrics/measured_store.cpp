// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/measured_store.h"

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/forwarding_store.h"

namespace lccfs::metrics {
namespace {

enum Kind : std::size_t {
  apply,
  query,
  read_data,
  write_data,
  truncate_data,
  remove_data,
  zero_data,
  copy_data,
  data_extents,
  list,
  capacity,
  watch,
  notify,
  presence,
  fence,
  sync_fences,
  kinds
};

using Moves = OperationKind::Moves;
// A notify waits for all watchers.
constexpr std::array<OperationKind, kinds> all_kinds = {{{"apply"},
                                                         {"query"},
                                                         {"read_data", Moves::out},
                                                         {"write_data", Moves::in},
                                                         {"truncate_data"},
                                                         {"remove_data"},
                                                         {"zero_data"},
                                                         {"copy_data"},
                                                         {"data_extents"},
                                                         {"list"},
                                                         {"capacity"},
                                                         {"watch"},
                                                         {"notify", Moves::nothing, true},
                                                         {"presence"},
                                                         {"fence"},
                                                         {"sync_fences"}}};
static_assert(kinds <= Operations::most_kinds);

/// Answers that callers expect are no failures: guards that fail are how clients get out of each other's way.
Outcome outcome_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::exists:
    case ErrorCode::guard_failed:
    case ErrorCode::no_space:
    case ErrorCode::file_too_large:
    case ErrorCode::unsupported:
    case ErrorCode::interrupted:
      return Outcome::refused;
    default:
      return Outcome::failed;
  }
}

template <class T>
Outcome outcome_of(const Result<T>& result) {
  return result ? Outcome::done : outcome_of(result.error().code);
}

class MeasuredStore final : public ForwardingStore {
 public:
  MeasuredStore(std::shared_ptr<ObjectStore> store, Operations& operations)
      : ForwardingStore(*store), store_(std::move(store)), operations_(operations) {}
  /// Before what completions use: the measured store waits for those in flight.
  ~MeasuredStore() override { store_.reset(); }

  void apply_async(MetaTxn txn, ApplyDone done) override {
    auto measured = timed<Applied>(Kind::apply, txn.object, std::move(done));
    store_->apply_async(std::move(txn), std::move(measured));
  }
  void query_async(MetaRead read, QueryDone done) override {
    auto measured = timed<MetaSnapshot>(Kind::query, read.object, std::move(done));
    store_->query_async(std::move(read), std::move(measured));
  }

  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    auto measured = timed<std::size_t>(Kind::read_data, object, std::move(done));
    store_->read_data(std::move(object), offset, target, std::move(measured));
  }
  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override {
    std::size_t size_bytes = 0;
    for (const DataPiece& piece : pieces) size_bytes += piece.bytes.size_bytes;
    auto measured = timed<void>(Kind::write_data, object, std::move(done), size_bytes);
    store_->write_data(std::move(object), std::move(pieces), std::move(measured));
  }
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override {
    auto measured = timed<void>(Kind::truncate_data, object, std::move(done));
    store_->truncate_data(std::move(object), size_bytes, std::move(measured));
  }
  void remove_data(std::string object, DataDone done) override {
    auto measured = timed<void>(Kind::remove_data, object, std::move(done));
    store_->remove_data(std::move(object), std::move(measured));
  }
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override {
    auto measured = timed<void>(Kind::zero_data, object, std::move(done));
    store_->zero_data(std::move(object), offset, size_bytes, std::move(measured));
  }
  void copy_data(std::string source, std::string target, DataDone done) override {
    auto measured = timed<void>(Kind::copy_data, target, std::move(done));
    store_->copy_data(std::move(source), std::move(target), std::move(measured));
  }
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override {
    auto measured = timed<std::vector<DataExtent>>(Kind::data_extents, object, std::move(done));
    store_->data_extents(std::move(object), offset, size_bytes, std::move(measured));
  }

  Result<ListPage> list(std::string cursor) override {
    return timed_call(Kind::list, volume, [&] { return store_->list(std::move(cursor)); });
  }
  Result<Capacity> capacity() override {
    return timed_call(Kind::capacity, volume, [&] { return store_->capacity(); });
  }

  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    return timed_call(Kind::watch, object, [&] { return store_->watch(object, std::move(handler)); });
  }
  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override {
    return timed_call(Kind::notify, object, [&] { return store_->notify(object, std::move(payload), timeout); });
  }
  Result<Presence> presence(const std::string& object, const Bytes& identity) override {
    return timed_call(Kind::presence, object, [&] { return store_->presence(object, identity); });
  }

  Result<> fence(const Bytes& identity) override {
    return timed_call(Kind::fence, volume, [&] { return store_->fence(identity); });
  }
  Result<> sync_fences() override {
    return timed_call(Kind::sync_fences, volume, [&] { return store_->sync_fences(); });
  }

 private:
  static constexpr const char* volume = "the volume";

  template <class T, class Done>
  Done timed(std::size_t kind, std::string_view object, Done done, std::uint64_t bytes = 0) {
    return [this, running = operations_.begin(kind, object), bytes, done = std::move(done)](Result<T> result) mutable {
      if constexpr (std::is_same_v<T, std::size_t>) bytes = result.value_or(0);
      operations_.end(running, outcome_of(result), result ? bytes : 0);
      done(std::move(result));
    };
  }

  template <class Call>
  auto timed_call(std::size_t kind, std::string_view object, Call call) -> decltype(call()) {
    const auto running = operations_.begin(kind, object);
    auto result = call();
    operations_.end(running, outcome_of(result));
    return result;
  }

  std::shared_ptr<ObjectStore> store_;
  Operations& operations_;
};

}  // namespace

Operations::About store_operations(std::chrono::nanoseconds slow_after) {
  return {.family = "lccfs_store_operation", .noun = "store operation", .kinds = all_kinds, .slow_after = slow_after};
}

std::unique_ptr<ObjectStore> measured(std::shared_ptr<ObjectStore> store, Operations& operations) {
  return std::make_unique<MeasuredStore>(std::move(store), operations);
}

}  // namespace lccfs::metrics
