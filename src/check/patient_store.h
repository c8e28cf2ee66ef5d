// SPDX-License-Identifier: LGPL-2.1-or-later
// A store whose reads are sent again when they time out: a check of hours outlives an OSD that is away for a minute.
#pragma once

#include <string>

#include "lccfs/object_store.h"

namespace lccfs::check {

/// As the store itself, which outlives it, but for reads and listings: of these a time-out is an error only once each
/// of many attempts has had one. Each is as long as the store's own time-out. Says so in the log.
class PatientStore final : public ObjectStore {
 public:
  /// Five minutes, where a step times out after 30 s as in lccfs-fsck.
  static constexpr unsigned most_attempts = 10;

  explicit PatientStore(ObjectStore& store) : store_(store) {}

  void query_async(MetaRead read, QueryDone done) override { query(std::move(read), std::move(done), 1); }
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    read_data(std::move(object), offset, target, std::move(done), 1);
  }
  Result<ListPage> list(std::string cursor) override;
  Result<std::vector<std::string>> list_starts(unsigned parts) override;
  Result<Capacity> capacity() override;

  // -- as they are
  void apply_async(MetaTxn txn, ApplyDone done) override { store_.apply_async(std::move(txn), std::move(done)); }
  void write_data(std::string object, std::uint64_t offset, SharedBytes bytes, DataDone done) override {
    store_.write_data(std::move(object), offset, std::move(bytes), std::move(done));
  }
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override {
    store_.truncate_data(std::move(object), size_bytes, std::move(done));
  }
  void remove_data(std::string object, DataDone done) override {
    store_.remove_data(std::move(object), std::move(done));
  }
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override {
    store_.zero_data(std::move(object), offset, size_bytes, std::move(done));
  }
  void copy_data(std::string source, std::string target, DataDone done) override {
    store_.copy_data(std::move(source), std::move(target), std::move(done));
  }
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override {
    store_.data_extents(std::move(object), offset, size_bytes, std::move(done));
  }
  Result<> use_data_pool(const std::string& name) override { return store_.use_data_pool(name); }
  Result<> announce() override { return store_.announce(); }
  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    return store_.watch(object, std::move(handler));
  }
  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override {
    return store_.notify(object, std::move(payload), timeout);
  }
  Result<Presence> presence(const std::string& object, const Bytes& identity) override {
    return store_.presence(object, identity);
  }
  Bytes identity() const override { return store_.identity(); }
  Result<> check_may_fence() override { return store_.check_may_fence(); }
  void look_at_watchers(const std::string& object) override { store_.look_at_watchers(object); }
  Result<> fence(const Bytes& identity) override { return store_.fence(identity); }
  Result<> sync_fences() override { return store_.sync_fences(); }

 private:
  void query(MetaRead read, QueryDone done, unsigned attempt);
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done, unsigned attempt);

  ObjectStore& store_;
};

}  // namespace lccfs::check
