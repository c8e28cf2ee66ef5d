// SPDX-License-Identifier: LGPL-2.1-or-later
// The facade: which part answers which operation. What an operation does stands in the file named after it.
#include "lccfs/file_system.h"

#include <fcntl.h>

#include <utility>

#include "base/log.h"
#include "base/periodic.h"
#include "base/thread_pool.h"
#include "format/object_names.h"
#include "format/records.h"
#include "fs/files.h"
#include "fs/namespace.h"
#include "instance/instance.h"
#include "objects/object.h"
#include "reclaim/collector.h"

namespace lccfs {
namespace {

class MountedVolume final : public FileSystem {
 public:
  MountedVolume(std::unique_ptr<Instance> instance, const FileSystemOptions& options)
      : instance_(std::move(instance)), files_(*instance_, pool_, options), names_(*instance_, files_, options) {
    instance_->set_open_probe([this](Ino ino) { return files_.needs(ino) || names_.needs_directory(ino); });
  }
  ~MountedVolume() override { instance_->set_open_probe(nullptr); }

  // -- names
  Result<EntryReply> lookup(Ino parent, const std::string& name) override { return names_.lookup(parent, name); }
  void known_entry(Ino parent, const std::string& name, KnownDone done) override {
    names_.known_entry(parent, name, std::move(done));
  }
  bool begin_to_keep(Ino parent, const std::string& name, Ino directory, bool is_known) override {
    return names_.begin_to_keep(parent, name, directory, is_known);
  }
  std::optional<Attributes> begin_to_keep_listed(Ino parent, const std::string& name, Ino directory) override {
    return names_.begin_to_keep_listed(parent, name, directory);
  }
  void is_kept_by_name(Ino directory) override { names_.is_kept_by_name(directory); }
  Result<EntryReply> make_node(const Caller& caller, Ino parent, const std::string& name,
                               const NewNode& node) override {
    const Instance::Operation running(*instance_);
    return names_.make_node(caller, parent, name, node);
  }
  Result<CreateReply> create(const Caller& caller, Ino parent, const std::string& name, std::uint32_t mode,
                             int flags) override {
    const Instance::Operation running(*instance_);
    auto created = names_.create(caller, parent, name, mode, flags);
    if (!created || (flags & O_DSYNC) == 0) return created;
    const auto stored = names_.sync_name_of(created->entry.attributes.ino);
    if (stored) return created;
    files_.release(created->open.handle);
    return std::unexpected(stored.error());
  }
  Result<EntryReply> link(Ino ino, Ino parent, const std::string& name) override {
    const Instance::Operation running(*instance_);
    return names_.link(ino, parent, name);
  }
  Result<> unlink(Ino parent, const std::string& name) override {
    const Instance::Operation running(*instance_);
    return names_.unlink(parent, name);
  }
  Result<> rmdir(Ino parent, const std::string& name) override {
    const Instance::Operation running(*instance_);
    return names_.rmdir(parent, name);
  }
  Result<> rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                  RenameMode mode) override {
    const Instance::Operation running(*instance_);
    return names_.rename(old_parent, old_name, new_parent, new_name, mode);
  }
  Result<std::string> read_link(Ino ino) override { return names_.read_link(ino); }

  // -- directories
  Result<HandleId> open_directory(Ino ino) override { return names_.open_directory(ino); }
  Result<std::vector<DirectoryEntry>> read_directory(HandleId handle, std::uint64_t cookie,
                                                     std::size_t max_entries) override {
    return names_.read_directory(handle, cookie, max_entries);
  }
  Result<std::vector<ListedEntry>> read_directory_plus(HandleId handle, std::uint64_t cookie,
                                                       const HasRoom& has_room) override {
    return names_.read_directory_plus(handle, cookie, has_room);
  }
  void release_directory(HandleId handle) override { names_.release_directory(handle); }

  // -- attributes
  Result<AttributesReply> get_attributes(Ino ino) override { return names_.get_attributes(ino); }
  std::optional<AttributesReply> known_attributes(Ino ino) override { return names_.known_attributes(ino); }
  Result<AttributesReply> set_attributes(const Caller& caller, Ino ino, const SetAttributes& changes) override {
    const Instance::Operation running(*instance_);
    if (changes.size_bytes) LCCFS_CHECK(names_.store_additions());
    return names_.set_attributes(caller, ino, changes);
  }
  Result<Bytes> get_xattr(Ino ino, const std::string& name) override { return names_.get_xattr(ino, name); }
  bool knows_no_xattr(Ino ino, std::string_view name) override { return names_.knows_no_xattr(ino, name); }
  Result<std::vector<std::string>> list_xattrs(Ino ino) override { return names_.list_xattrs(ino); }
  Result<> set_xattr(Ino ino, const std::string& name, const Bytes& value, XattrMode mode, SetgidBit setgid,
                     const Caller& caller) override {
    const Instance::Operation running(*instance_);
    return names_.set_xattr(ino, name, value, mode, setgid, caller);
  }
  Result<> remove_xattr(Ino ino, const std::string& name, const Caller& caller) override {
    const Instance::Operation running(*instance_);
    return names_.remove_xattr(ino, name, caller);
  }

  // -- files
  Result<OpenReply> open(const Caller& caller, Ino ino, int flags) override {
    if ((flags & O_DSYNC) != 0) LCCFS_CHECK(names_.sync_name_of(ino));
    if ((flags & O_TRUNC) != 0) LCCFS_CHECK(names_.store_additions());
    return files_.open(caller, ino, flags, names_.believes_leases());
  }
  void is_mapped(HandleId handle) override { files_.is_mapped(handle); }
  void read(HandleId handle, std::uint64_t offset, std::span<char> target, ReadDone done) override {
    files_.read(handle, offset, target, std::move(done));
  }
  void write(HandleId handle, WriteRequest request, WriteDone done) override {
    if ((request.flags & O_DSYNC) != 0) done = after_name_is_synced(handle, std::move(done));
    files_.write(handle, std::move(request), std::move(done));
  }
  void write_not_told(Ino ino) override { files_.write_not_told(ino); }
  Result<> flush(HandleId handle, const IsHeard& is_heard) override { return files_.flush(handle, is_heard); }
  std::optional<Result<>> known_flush(HandleId handle, const IsHeard& is_heard) override {
    return files_.known_flush(handle, is_heard);
  }
  Result<> fsync(HandleId handle, bool data_only) override {
    LCCFS_CHECK(files_.fsync(handle, data_only));
    const auto ino = files_.ino_of(handle);
    return ino ? names_.sync_name_of(*ino) : Result<>();
  }
  void release(HandleId handle) override { files_.release(handle); }
  void set_lock(const LockRequest& request, LockDone done) override { files_.locks().set(request, std::move(done)); }
  void find_lock(const LockRequest& request, FindLockDone done) override {
    files_.locks().find(request, std::move(done));
  }
  void interrupt_lock(std::uint64_t ticket) override { files_.locks().interrupt(ticket); }
  void interrupt_all_locks() override { files_.locks().interrupt_all(); }
  void drop_range_locks(HandleId handle, std::uint64_t owner) override {
    files_.locks().drop_range_locks(handle, owner);
  }
  void disown_locks(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody) override {
    files_.locks().disown(handle, owner, nobody);
  }
  Result<> fallocate(const Caller& caller, HandleId handle, int mode, std::uint64_t offset,
                     std::uint64_t size_bytes) override {
    return files_.fallocate(caller, handle, mode, offset, size_bytes);
  }
  Result<std::uint64_t> seek(HandleId handle, std::uint64_t offset, SeekTo what) override {
    return files_.seek(handle, offset, what);
  }
  Result<std::uint64_t> copy_file_range(const Caller& caller, HandleId source, std::uint64_t source_offset,
                                        HandleId target, std::uint64_t target_offset,
                                        std::uint64_t size_bytes) override {
    auto copied = files_.copy_file_range(caller, source, source_offset, target, target_offset, size_bytes);
    const int flags = files_.flags_of(target).value_or(0);
    if (!copied || (flags & O_DSYNC) == 0) return copied;
    auto synced = fsync(target, (flags & O_SYNC) != O_SYNC);  // the kernel sends none
    if (synced) return copied;
    files_.drop_pages_of_copy(target, target_offset, *copied);
    return std::unexpected(std::move(synced).error());
  }
  Result<> sync_directory(Ino ino) override { return names_.sync_directory(ino); }

  Result<VolumeUsage> usage() override {
    LCCFS_TRY(const auto capacity, files_.space());
    VolumeUsage usage{capacity.total_bytes, capacity.available_bytes, capacity.objects};
    if (capacity.quota) usage.available_objects = capacity.quota->available;
    return usage;
  }

  // -- the mount
  void forget(Ino ino) override {
    names_.forget(ino);
    files_.forget(ino);
  }
  void tick() override {
    names_.tick();  // first: it does not wait
    instance_->look_around();
    files_.tick();
  }
  bool fenced() const override { return instance_->fenced(); }
  std::chrono::seconds grace_period() const override { return std::chrono::seconds(instance_->super().grace_seconds); }
  Result<GarbageReport> collect_garbage(const std::stop_token& stop, const OnGarbageRemoved& on_removed) override {
    if (instance_->read_only()) return failure(ErrorCode::read_only, "a read-only mount collects nothing");
    if (!collector_) collector_.emplace(*instance_, reclaim::CollectorOptions{.jobs = 4, .grace = grace_period()});
    if (collector_->another_is_at_work(grace_period())) return GarbageReport{.is_left_to_another = true};
    LCCFS_TRY(const auto pass, collector_->pass(stop, on_removed));
    return GarbageReport{.inodes_removed = pass.inodes_removed,
                         .data_objects_removed = pass.data_objects_removed,
                         .bytes_freed = pass.bytes_freed,
                         .items_left = pass.items_left,
                         .silent_clients = pass.silent.size(),
                         .damaged_objects = pass.damaged.size(),
                         .refused = pass.refused};
  }
  MountCounts counts() const override {
    MountCounts counts;
    files_.count(counts);
    names_.count(counts);
    return counts;
  }
  std::optional<InstanceId> asked_holder(Ino ino) const override { return instance_->asked_holders().about(ino); }
  void set_kernel_cache(KernelCache* cache) override { files_.set_kernel_cache(cache); }

  void write_back_pages(std::chrono::nanoseconds at_most) override {
    files_.kernel().write_back_all(instance_->clock(), at_most, [this](Ino ino) { return files_.is_open(ino); });
  }
  Result<> unmount() override {
    names_.begin_to_store_ctimes();
    names_.begin_to_end();
    const auto names_stored = store_names();
    LCCFS_CHECK(files_.release_everything());
    files_.finish_what_was_asked();
    LCCFS_CHECK(files_.release_everything());  // what a last question has stirred up
    names_.wait_for_background_steps();
    files_.stop_answering();
    names_.wait_for_background_steps();  // what the last question for a directory has begun
    const auto ended = instance_->end();
    instance_->set_question_handler(nullptr);  // who wants what is still held here is not told "busy" for ever
    LCCFS_CHECK(ended);
    LCCFS_CHECK(names_stored);
    LCCFS_CHECK(names_.untold_loss());
    return instance_->losses().first();
  }

 private:
  /// And what is under way of them: all are stored then, or lost. One object may not answer: what can be stored of other
  /// files is stored meanwhile. An error: some found no room.
  Result<> store_names() {
    const auto each_second = run_each_second(instance_->clock(), [this] { files_.store_meanwhile(); });
    Result<> found_room;
    for (auto stored = names_.store_names(); !stored; stored = names_.store_names()) {
      const bool finds_no_room = is_out_of_space(stored.error());
      if (finds_no_room && found_room) found_room = stored;
      // Nobody makes any here, but for what is stored once that is lost. Else as a tick would.
      if (finds_no_room && names_.give_up_names_without_room(stored.error())) continue;
      instance_->clock().sleep_for(std::chrono::seconds(1));
    }
    names_.wait_for_background_steps();
    return found_room;
  }

  /// The kernel sends no fsync after a direct write: what it is to have stored must be found by its name, too.
  WriteDone after_name_is_synced(HandleId handle, WriteDone done) {
    const auto ino = files_.ino_of(handle);
    if (!ino) return done;
    return [this, ino = *ino, done = std::move(done)](Result<std::size_t> written) mutable {
      if (!written || !names_.has_name_to_sync(ino)) return done(std::move(written));
      pool_.post([this, ino, size_bytes = *written, done = std::move(done)]() mutable {
        const auto synced = names_.sync_name_of(ino);
        done(synced ? Result<std::size_t>(size_bytes) : std::unexpected(synced.error()));
      });
    };
  }

  // In this order: the files end before the threads that work for them, and these before the instance.
  std::unique_ptr<Instance> instance_;
  ThreadPool pool_;
  Files files_;
  Namespace names_;
  std::optional<reclaim::Collector> collector_;
};

/// A mount says at once that the root is damaged. A missing volume is the instance's to report.
Result<> check_root(ObjectStore& store) {
  const auto object = format::inode_object(root_ino);
  LCCFS_TRY(const auto root, objects::find_object(objects::reader_of(store), {.object = object, .xattrs = true}));
  if (!root) return {};
  const auto attr = root->needed<format::AttrRecord>(format::xattr::attr);
  if (!attr) return failure(attr.error().code, attr.error().context + ": the volume is damaged");
  const auto state = root->needed<format::StateRecord>(format::xattr::state);
  if (!state) return failure(state.error().code, state.error().context + ": the volume is damaged");
  if (attr->type == FileType::directory && state->kind == format::StateRecord::Kind::live) return {};
  return failure(ErrorCode::corrupt, object + " is no live directory: the volume is damaged");
}

}  // namespace

Result<std::unique_ptr<FileSystem>> mount_volume(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                 const FileSystemOptions& options) {
  LCCFS_CHECK(check_root(*store));
  LCCFS_TRY(auto instance, Instance::start(std::move(store), clock, {options.mount_id, options.read_only}));
  if (!instance->recorded()) {
    log::warning(
        "this client may only read the volume: it is no recorded user of it, nobody asks it what it has open, and what "
        "is removed elsewhere while it is open here may answer ESTALE");
  }
  if (options.names_behind && !instance->super().has(format::feature::names_behind)) {
    log::info("the volume has no feature \"names_behind\": names are stored before the answer; see lccfs upgrade");
  }
  return std::make_unique<MountedVolume>(std::move(instance), options);
}

}  // namespace lccfs
