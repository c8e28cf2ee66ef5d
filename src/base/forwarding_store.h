// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lccfs/object_store.h"

namespace lccfs {

/// All that it is asked goes on to the next store, which outlives the calls. For stores that change some of it.
class ForwardingStore : public ObjectStore {
 public:
  explicit ForwardingStore(ObjectStore& next) : next_(next) {}

  void apply_async(MetaTxn txn, ApplyDone done) override { next_.apply_async(std::move(txn), std::move(done)); }
  void query_async(MetaRead read, QueryDone done) override { next_.query_async(std::move(read), std::move(done)); }
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    next_.read_data(std::move(object), offset, target, std::move(done));
  }
  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override {
    next_.write_data(std::move(object), std::move(pieces), std::move(done));
  }
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override {
    next_.truncate_data(std::move(object), size_bytes, std::move(done));
  }
  void remove_data(std::string object, DataDone done) override {
    next_.remove_data(std::move(object), std::move(done));
  }
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override {
    next_.zero_data(std::move(object), offset, size_bytes, std::move(done));
  }
  void copy_data(std::string source, std::string target, DataDone done) override {
    next_.copy_data(std::move(source), std::move(target), std::move(done));
  }
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override {
    next_.data_extents(std::move(object), offset, size_bytes, std::move(done));
  }
  Result<ListPage> list(std::string cursor) override { return next_.list(std::move(cursor)); }
  Result<std::vector<std::string>> list_starts(unsigned parts) override { return next_.list_starts(parts); }
  Result<Capacity> capacity() override { return next_.capacity(); }
  Result<> use_data_pool(const std::string& name) override { return next_.use_data_pool(name); }
  Result<> announce() override { return next_.announce(); }
  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    return next_.watch(object, std::move(handler));
  }
  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override {
    return next_.notify(object, std::move(payload), timeout);
  }
  Result<Presence> presence(const std::string& object, const Bytes& identity) override {
    return next_.presence(object, identity);
  }
  Bytes identity() const override { return next_.identity(); }
  bool may_be_of_this_host(const Bytes& identity) const override { return next_.may_be_of_this_host(identity); }
  Result<> check_may_fence() override { return next_.check_may_fence(); }
  void look_at_watchers(const std::string& object) override { next_.look_at_watchers(object); }
  Result<> fence(const Bytes& identity) override { return next_.fence(identity); }
  Result<> sync_fences() override { return next_.sync_fences(); }

 protected:
  ObjectStore& next() { return next_; }

 private:
  ObjectStore& next_;
};

}  // namespace lccfs
