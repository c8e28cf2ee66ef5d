// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/local_store.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "store/local/metadata_table.h"
#include "store/local/volume.h"
#include "store/local/watch_table.h"

namespace lccfs {
namespace local {
namespace {

constexpr std::size_t names_per_page = 1000;

class LocalWatch final : public Watch {
 public:
  LocalWatch(std::shared_ptr<Volume> volume, std::shared_ptr<Client> client, std::string object, std::uint64_t number)
      : volume_(std::move(volume)), client_(std::move(client)), object_(std::move(object)), number_(number) {}

  ~LocalWatch() override {
    client_->watches().remove(number_);
    if (const auto ended = forget(); !ended) log::warning("end the watch on " + object_ + ": " + ended.error().context);
  }

 private:
  Result<> forget() {
    LCCFS_TRY(const auto transaction, volume_->environment().begin_write());
    LCCFS_CHECK(remove_watch(*transaction, object_, client_->identity().id, number_));
    return transaction->commit();
  }

  const std::shared_ptr<Volume> volume_;
  const std::shared_ptr<Client> client_;
  const std::string object_;
  const std::uint64_t number_;
};

// A cursor is the last name of a page of metadata objects, after 'm', or 'M' where the data objects are another part;
// or 'd', the number of the next data directory, '-' and one past the last one.
std::string data_cursor(unsigned directory, unsigned end) {
  return 'd' + std::to_string(directory) + '-' + std::to_string(end);
}

class LocalStore final : public ObjectStore {
 public:
  LocalStore(std::shared_ptr<Volume> volume, std::shared_ptr<Client> client)
      : volume_(std::move(volume)), client_(std::move(client)) {}
  ~LocalStore() override {
    client_->wait_for_steps();
    volume_->leave(*client_);
  }

  // -- metadata objects
  void apply_async(MetaTxn txn, ApplyDone done) override {
    if (auto allowed = check_may_write(txn.object); !allowed) return done(std::unexpected(allowed.error()));
    Step step = client_->begin_step();
    if (!step) return done(fenced_failure());
    volume_->committer().submit(std::move(step), std::move(txn), std::move(done));
  }

  void query_async(MetaRead read, QueryDone done) override {
    Step step = client_->begin_step();
    if (!step) return done(fenced_failure());
    const std::string object = read.object;
    Committer::Read work = [this, step = std::move(step), read = std::move(read), done = std::move(done)]() mutable {
      done(query_now(read));
    };
    if (!volume_->committer().run_after(object, work)) work();
  }

  // -- data objects
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    if (auto ends = begin(object, std::move(done))) volume_->data().read(object, offset, target, std::move(ends));
  }

  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override {
    change_data(object, std::move(done),
                [object, pieces = std::move(pieces)](const DataFiles& files) { return files.write(object, pieces); });
  }
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override {
    change_data(object, std::move(done), [=](const DataFiles& files) { return files.truncate(object, size_bytes); });
  }
  void remove_data(std::string object, DataDone done) override {
    change_data(object, std::move(done), [=](const DataFiles& files) { return files.remove(object); });
  }
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override {
    change_data(object, std::move(done),
                [=](const DataFiles& files) { return files.zero(object, offset, size_bytes); });
  }
  void copy_data(std::string source, std::string target, DataDone done) override {
    if (auto named = check_object_name(source); !named) return done(std::unexpected(std::move(named).error()));
    change_data(target, std::move(done), [=](const DataFiles& files) { return files.copy(source, target); });
  }
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override {
    if (auto ends = begin(object, std::move(done)))
      volume_->data().extents(object, offset, size_bytes, std::move(ends));
  }

  // -- the volume
  Result<ListPage> list(std::string cursor) override {
    LCCFS_CHECK(check_not_fenced());
    if (cursor.empty()) return list_metadata({}, false);
    if (cursor.front() == 'm' || cursor.front() == 'M') return list_metadata(cursor.substr(1), cursor.front() == 'M');
    unsigned number = 0, end = 0;
    if (std::sscanf(cursor.c_str(), "d%u-%u", &number, &end) != 2 || data_cursor(number, end) != cursor)
      return failure(ErrorCode::invalid, "not a cursor of a listing");
    LCCFS_TRY(auto names, volume_->data().files().names(number, end));
    return ListPage{std::move(names), number + 1 < end ? data_cursor(number + 1, end) : ""};
  }

  Result<std::vector<std::string>> list_starts(unsigned parts) override {
    std::vector<std::string> starts{"M"};
    const unsigned data_parts = std::clamp(parts, 2U, DataFiles::fan_out) - 1;
    const auto begin_of = [&](unsigned part) { return DataFiles::fan_out * part / data_parts; };
    for (unsigned part = 0; part < data_parts; ++part)
      starts.push_back(data_cursor(begin_of(part), begin_of(part + 1)));
    return starts;
  }

  /// Data objects are not counted: nothing but a walk over all of them would know.
  Result<Capacity> capacity() override {
    LCCFS_CHECK(check_not_fenced());
    struct statvfs status {};
    if (::fstatvfs(volume_->directory().root.get(), &status) != 0)
      return std::unexpected(system_error("ask for the free space of " + volume_->directory().path));
    const std::uint64_t total_bytes = status.f_blocks * status.f_frsize;
    const std::uint64_t available_bytes = status.f_bavail * status.f_frsize;
    return Capacity{total_bytes, available_bytes, volume_->environment().count(Table::objects), total_bytes,
                    available_bytes};
  }

  Result<> use_data_pool(const std::string& name) override {
    return failure(ErrorCode::invalid, "a local volume has no pools: no data pool '" + name + "'");
  }

  // -- watch and notify
  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    LCCFS_CHECK(check_may_write(object));
    const Step step = client_->begin_step();
    if (!step) return fenced_failure();
    const std::uint64_t number = client_->watches().add(object, std::move(handler));
    if (auto recorded = record_watch(object, number); !recorded) {
      client_->watches().remove(number);
      return std::unexpected(std::move(recorded).error());
    }
    return std::make_unique<LocalWatch>(volume_, client_, object, number);
  }

  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override {
    LCCFS_CHECK(check_not_fenced());
    std::vector<std::string> ids;
    {
      LCCFS_TRY(const auto transaction, volume_->environment().begin_read());
      LCCFS_CHECK(check_object(*transaction, object, "notify"));
      LCCFS_TRY(ids, watchers(*transaction, object));
    }
    return ask_clients(volume_->directory().clients.get(), ids, object, payload, timeout);
  }

  Result<Presence> presence(const std::string& object, const Bytes& identity) override {
    LCCFS_CHECK(check_not_fenced());
    LCCFS_CHECK(check_object_name(object));
    LCCFS_TRY(const ClientIdentity whom, decode_identity(identity));
    // An identity is that of a client whose file has been locked: a free lock, or no file, is its end.
    LCCFS_TRY(const bool alive, is_alive(volume_->directory().clients.get(), whom.id));
    if (!alive) return Presence::dead;
    LCCFS_TRY(const auto transaction, volume_->environment().begin_read());
    LCCFS_TRY(const auto ids, watchers(*transaction, object));
    return std::ranges::find(ids, whom.id) != ids.end() ? Presence::watching : Presence::absent;
  }

  // -- fencing
  Bytes identity() const override { return encode(client_->identity()); }

  Result<> fence(const Bytes& identity) override {
    LCCFS_CHECK(check_not_fenced());
    LCCFS_TRY(const ClientIdentity whom, decode_identity(identity));
    LCCFS_CHECK(check_may_write("fence"));
    return volume_->fence(whom);
  }

  /// Nothing to wait for: a fence returns when its victim's process is gone (or, in one process, has nothing in
  /// flight), and what it had done until then is in LMDB and in the page cache, which every client of the volume reads.
  Result<> sync_fences() override { return check_not_fenced(); }

 private:
  Result<> check_may_write(const std::string& what) const {
    if (!volume_->read_only()) return {};
    return failure(ErrorCode::permission_denied, what + ": " + volume_->directory().path + " can only be read");
  }

  Result<> check_not_fenced() {
    if (!client_->begin_step()) return fenced_failure();
    return {};
  }

  static Result<> check_object(const Transaction& transaction, const std::string& object, const std::string& what) {
    LCCFS_CHECK(check_object_name(object));
    LCCFS_TRY(const auto there, transaction.get(Table::objects, object));
    return there ? Result<>{} : failure(ErrorCode::not_found, what + " " + object + ": no such object");
  }

  Result<MetaSnapshot> query_now(const MetaRead& read) {
    LCCFS_TRY(const auto transaction, volume_->environment().begin_read());
    return local::query(*transaction, read);
  }

  Result<> record_watch(const std::string& object, std::uint64_t number) {
    LCCFS_TRY(const auto transaction, volume_->environment().begin_write());
    if (!client_->has_its_file()) return fenced_failure();
    LCCFS_CHECK(check_object(*transaction, object, "watch"));
    LCCFS_CHECK(add_watch(*transaction, object, client_->identity().id, number));
    return transaction->commit();
  }

  /// Begins a step on a data object: its completion, which ends it. Empty: it is refused, and answered.
  template <class Answer>
  std::move_only_function<void(Answer)> begin(const std::string& object, std::move_only_function<void(Answer)> done) {
    Step step = client_->begin_step();
    auto allowed = step ? check_object_name(object) : fenced_failure();
    if (allowed)
      return [step = std::move(step), done = std::move(done)](Answer answer) mutable { done(std::move(answer)); };
    done(std::unexpected(std::move(allowed).error()));
    return nullptr;
  }

  void change_data(const std::string& object, DataDone done, DataQueue::Change change) {
    if (auto allowed = check_may_write(object); !allowed) return done(std::unexpected(allowed.error()));
    if (auto ends = begin(object, std::move(done))) volume_->data().change(object, std::move(change), std::move(ends));
  }

  Result<ListPage> list_metadata(const std::string& after, bool alone) {
    LCCFS_TRY(const auto transaction, volume_->environment().begin_read());
    ListPage page{{}, alone ? "" : data_cursor(0, DataFiles::fan_out)};
    LCCFS_CHECK(transaction->walk(Table::objects, {}, after, [&](auto name, auto) {
      page.names.emplace_back(name);
      return page.names.size() < names_per_page;
    }));
    if (page.names.size() == names_per_page) page.next_cursor = (alone ? 'M' : 'm') + page.names.back();
    return page;
  }

  const std::shared_ptr<Volume> volume_;
  const std::shared_ptr<Client> client_;
};

}  // namespace
}  // namespace local

Result<std::unique_ptr<ObjectStore>> open_local_store(const std::string& directory, const StoreOptions& options) {
  LCCFS_TRY(auto volume, local::Volume::open(directory, options.create));
  LCCFS_TRY(auto client, volume->enter());
  return std::make_unique<local::LocalStore>(std::move(volume), std::move(client));
}

}  // namespace lccfs
