// SPDX-License-Identifier: LGPL-2.1-or-later
// A store whose reads are sent again when they time out: a check of hours outlives an OSD that is away for a minute.
#pragma once

#include <string>

#include "base/forwarding_store.h"

namespace lccfs::check {

/// As the store itself, which outlives it, but for reads and listings: of these a time-out is an error only once each
/// of many attempts has had one. Each is as long as the store's own time-out. Says so in the log.
class PatientStore final : public ForwardingStore {
 public:
  /// Five minutes, where a step times out after 30 s as in lccfs-fsck.
  static constexpr unsigned most_attempts = 10;

  explicit PatientStore(ObjectStore& store) : ForwardingStore(store) {}

  void query_async(MetaRead read, QueryDone done) override { query(std::move(read), std::move(done), 1); }
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    read_data(std::move(object), offset, target, std::move(done), 1);
  }
  Result<ListPage> list(std::string cursor) override;
  Result<std::vector<std::string>> list_starts(unsigned parts) override;
  Result<Capacity> capacity() override;

 private:
  void query(MetaRead read, QueryDone done, unsigned attempt);
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done, unsigned attempt);
};

}  // namespace lccfs::check
