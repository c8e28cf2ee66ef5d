// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One suite for every store: what include/lccfs/object_store.h promises, as cases. A program of the suite is all the
// *_test.cpp files and one fixture, which defines fresh_volume().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "support/catch.h"

namespace lccfs::conformance {

/// A client that writes without pause (victim.h) until it is fenced or ended, in this process or in one of its own.
class Victim {
 public:
  virtual ~Victim() = default;
  virtual Bytes identity() = 0;
  /// Returns when nothing runs of it any more. To be called after a fence.
  virtual void wait_until_over() = 0;
  /// Ends it without a fence.
  virtual void end() = 0;
};

/// One fresh, empty volume. Outlives its clients and victims.
class Volume {
 public:
  virtual ~Volume() = default;
  virtual std::shared_ptr<ObjectStore> new_client() = 0;
  /// Returns when the victim is writing, and watches victim_session.
  virtual std::unique_ptr<Victim> start_victim() = 0;
  /// Whether one client of several in a process can be fenced, and then answers `fenced`.
  virtual bool fences_single_clients() const = 0;
};

/// Defined once for each store. nullptr: it cannot run here, and the reason was printed.
std::unique_ptr<Volume> fresh_volume();

// -- short forms for the cases

/// The value, or the case fails with the error's text.
template <class T>
T value_of(Result<T> result) {
  INFO((result ? std::string() : result.error().context));
  REQUIRE(result.has_value());
  return std::move(*result);
}
void succeeds(const Result<>& result);
/// The error's code as text, or "success": compares with a readable report.
template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "success" : describe(result.error().code);
}
inline std::string outcome(ErrorCode code) { return describe(code); }

MetaTxn txn(std::string object, std::vector<Guard> guards, std::vector<Mutation> mutations);
void create(ObjectStore& store, const std::string& object, std::vector<Mutation> more = {});
/// Everything there is of a metadata object with not too many keys.
Result<MetaSnapshot> look(ObjectStore& store, const std::string& object);
bool exists(ObjectStore& store, const std::string& object);

/// Counts answers, and waits for as many as were asked for.
class Answers {
 public:
  template <class T>
  auto expect_one() {
    const std::lock_guard expecting(mutex_);
    ++expected_;
    return [this](Result<T> result) {
      const std::lock_guard lock(mutex_);
      ++answered_;
      if (!result) ++failed_;
      changed_.notify_all();
    };
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answered_ >= expected_; });
  }
  unsigned answered() {
    const std::lock_guard lock(mutex_);
    return answered_;
  }
  unsigned failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned expected_ = 0, answered_ = 0, failed_ = 0;
};

SharedBytes share(Bytes bytes);
Result<> write(ObjectStore& store, const std::string& object, std::uint64_t offset, SharedBytes bytes);
Result<> write(ObjectStore& store, const std::string& object, std::vector<DataPiece> pieces);
Result<> write(ObjectStore& store, const std::string& object, std::uint64_t offset, Bytes bytes);
/// What a read of that length answers.
Result<Bytes> read(ObjectStore& store, const std::string& object, std::uint64_t offset, std::size_t length);
Result<> truncate(ObjectStore& store, const std::string& object, std::uint64_t size_bytes);
Result<> remove_data(ObjectStore& store, const std::string& object);
Result<> zero(ObjectStore& store, const std::string& object, std::uint64_t offset, std::uint64_t size_bytes);
Result<> copy(ObjectStore& store, const std::string& source, const std::string& target);
Result<std::vector<DataExtent>> extents(ObjectStore& store, const std::string& object, std::uint64_t offset,
                                        std::uint64_t size_bytes);
/// Sorted. The second form: what the listings from `list_starts(parts)` name.
std::vector<std::string> list_all(ObjectStore& store);
std::vector<std::string> list_parts(ObjectStore& store, unsigned parts);

}  // namespace lccfs::conformance

#define LCCFS_STORE_CASE(function, name)                                           \
  static void function(lccfs::conformance::Volume& volume);                        \
  TEST_CASE(name) {                                                                \
    if (const auto volume = lccfs::conformance::fresh_volume()) function(*volume); \
  }                                                                                \
  static void function([[maybe_unused]] lccfs::conformance::Volume& volume)
#define LCCFS_STORE_CASE_AT(line, name) LCCFS_STORE_CASE(LCCFS_CONCAT(store_case_, line), name)

/// STORE_CASE("a sentence of behaviour") { uses `volume` }
#define STORE_CASE(name) LCCFS_STORE_CASE_AT(__COUNTER__, name)  // several files may be compiled as one
