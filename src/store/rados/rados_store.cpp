// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/rados_store.h"

#include <string>
#include <utility>

#include "store/rados/connection.h"
#include "store/rados/data_steps.h"
#include "store/rados/fence.h"
#include "store/rados/identity.h"
#include "store/rados/meta_steps.h"
#include "store/rados/notify.h"
#include "store/rados/rights.h"
#include "store/rados/volume_info.h"
#include "store/rados/watch.h"

namespace lccfs {
namespace {

class RadosStore : public ObjectStore {
 public:
  RadosStore(std::unique_ptr<rados::Connection> connection, rados::Identity identity)
      : connection_(std::move(connection)), identity_(std::move(identity)) {}
  ~RadosStore() override {
    in_flight_.wait_for_none();
    data_.end();
    connection_.reset();  // first: it ends librados' threads, and lets go of the memory of writes
  }

  void apply_async(MetaTxn txn, ApplyDone done) override {
    rados::apply(connection_->metadata(), in_flight_, std::move(txn), std::move(done));
  }
  void query_async(MetaRead read, QueryDone done) override {
    rados::query(connection_->metadata(), in_flight_, std::move(read), std::move(done));
  }

  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    data_.read(connection_->data(), std::move(object), offset, target, std::move(done));
  }
  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override {
    data_.write(connection_->data(), std::move(object), std::move(pieces), std::move(done));
  }
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override {
    data_.truncate(connection_->data(), std::move(object), size_bytes, std::move(done));
  }
  void remove_data(std::string object, DataDone done) override {
    data_.remove(connection_->data(), std::move(object), std::move(done));
  }
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override {
    data_.zero(connection_->data(), std::move(object), offset, size_bytes, std::move(done));
  }
  void copy_data(std::string source, std::string target, DataDone done) override {
    data_.copy(connection_->data(), std::move(source), std::move(target), std::move(done));
  }
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override {
    data_.extents(connection_->data(), std::move(object), offset, size_bytes, std::move(done));
  }

  Result<ListPage> list(std::string cursor) override { return rados::list(*connection_, cursor); }
  Result<std::vector<std::string>> list_starts(unsigned parts) override {
    return rados::list_starts(*connection_, parts);
  }
  Result<Capacity> capacity() override { return rados::capacity(*connection_); }
  Result<> use_data_pool(const std::string& name) override { return connection_->use_data_pool(name); }

  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    return rados::watch(*connection_, object, std::move(handler));
  }
  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override {
    return notifies_.send(object, payload, timeout);
  }
  Result<Presence> presence(const std::string& object, const Bytes& identity) override {
    return fences_.presence(object, identity);
  }

  Result<> announce() override { return rados::enable_application(*connection_); }

  Bytes identity() const override { return rados::encode_identity(identity_); }
  bool may_be_of_this_host(const Bytes& identity) const override {
    const auto other = rados::parse_identity(identity);
    return other && rados::has_our_ip_address(identity_, *other);
  }
  Result<> check_may_fence() override { return fences_.check_permitted(); }
  void look_at_watchers(const std::string& object) override { fences_.look_at_watchers(object); }
  Result<> fence(const Bytes& identity) override { return fences_.fence(identity); }
  Result<> sync_fences() override { return fences_.sync(); }

 private:
  std::unique_ptr<rados::Connection> connection_;
  const rados::Identity identity_;
  rados::RequestsInFlight in_flight_;
  rados::DataSteps data_{in_flight_};
  rados::Fences fences_{*connection_, in_flight_};
  rados::Notifies notifies_{*connection_, in_flight_};
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_rados_store(const VolumeAddress& address, const StoreOptions& options) {
  std::unique_ptr<rados::Connection> connection;
  LCCFS_TRY(auto identity, rados::first_that_can_be_fenced([&]() -> Result<rados::Identity> {
              LCCFS_TRY(connection, rados::Connection::open(address, options));
              return rados::identity_of(connection->cluster().get_instance_id(), connection->cluster().get_addrs());
            }));
  return std::make_unique<RadosStore>(std::move(connection), std::move(identity));
}

}  // namespace lccfs
