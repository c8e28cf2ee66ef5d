// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Calls run one after the other, or one in the midst of another, at one of its requests. What each may answer is known
// from the model file system, which does a call at once and whole, and from what docs/POSIX.md relaxes: a mount may
// show older bytes than another has written until it opens the file anew, and sizes that are a second old.
#include "crash/kernel_stage.h"

#include <fcntl.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "crash/file_history.h"
#include "crash/kernel_model.h"
#include "format/object_names.h"
#include "support/hooks.h"

namespace lccfs::crash {

namespace {

using Kind = Action::Kind;
using Id = ModelTree::Id;
using Range = FileHistory::Range;
using test::need;

constexpr TimeSpec first_mtime{1'600'000'000, 0};

bool for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }
bool for_reading(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }

template <class T>
std::string text_of_result(const Result<T>& result) {
  return result ? "ok" : describe(result.error().code);
}

/// A mount's: an hour behind that of the mount before it. Or it stands still, but for what is measured with it.
class WallClock final : public Clock {
 public:
  WallClock(Clock& world, unsigned hours_behind, bool stands)
      : world_(world), behind_(std::int64_t{3600} * hours_behind), stands_(stands), begin_(world.wall_time()) {}
  std::chrono::nanoseconds elapsed() const override { return world_.elapsed(); }
  void sleep_for(std::chrono::nanoseconds duration) override { world_.sleep_for(duration); }
  TimeSpec wall_time() const override {
    auto time = stands_ ? begin_ : world_.wall_time();
    time.seconds -= behind_;
    return time;
  }

 private:
  Clock& world_;
  const std::int64_t behind_;
  const bool stands_;
  const TimeSpec begin_;
};

class KernelPlay {
 public:
  KernelPlay(const Start& start, const Mounts& mounts, const std::vector<Action>& actions, KernelCounts& counts)
      : mounts_(mounts), actions_(actions), counts_(counts), world_(start.world), tree_(start.model) {
    prepare_times();
    for (unsigned i = 0; i < mounts.count; ++i) mount();
    for (const Id id : tree_.files()) files_.try_emplace(id, tree_.bytes_of(id), mounts.count);
  }

  std::string play() {
    while (next_ < actions_.size() && wrong_.empty()) {
      const Action& action = actions_[next_++];
      if (!is_possible(action)) continue;
      outermost_ = &action;
      point_ = 0;
      try {
        perform(action);
      } catch (const std::exception& error) {
        complain(std::string("  throws ") + error.what());
      }
      outermost_ = nullptr;
    }
    if (wrong_.empty() && !is_killed_) end();
    for (auto& mount : mounted_) mount.give_up();
    return wrong_.empty() ? "" : played_ + wrong_;
  }

 private:
  struct Mounted {
    std::unique_ptr<WallClock> clock;
    std::shared_ptr<ScriptedClient> store;
    std::unique_ptr<FileSystem> file_system;
    std::unique_ptr<KernelModel> kernel;

    void give_up() {
      if (!file_system) return;
      store->set_hook(nullptr);
      store->crash();
      kernel.reset();
      file_system.reset();
    }
  };
  struct Slot {
    KernelModel::Descriptor file;
    Id id = 0;
    bool is_mapped = false;
    std::optional<KernelModel::AsyncWrite> write;
    bool is_done = false;
    bool is_direct() const { return (file->flags & O_DIRECT) != 0; }
  };
  struct Appended {
    unsigned mount;
    std::string bytes;
  };

  /// The last that somebody has set; 0: nobody has.
  struct Mode {
    std::uint32_t bits = 0;
    unsigned set_by = 0;  // a mount
    std::chrono::nanoseconds since{0};
  };
  Mode mode_of(Id id) const {
    const auto set = modes_.find(id);
    return set == modes_.end() ? Mode{} : set->second;
  }

  // ---- the world

  /// Written by another client, so that no kernel knows of it.
  void prepare_times() {
    const auto store = world_.cluster().new_client();
    const auto file_system = need(mount_volume(store, world_.clock(), {}));
    test::Paths paths(*file_system);
    for (const char* path : {"/a", "/b", "/d/c"}) {
      SetAttributes changes;
      changes.mtime = first_mtime;
      need(file_system->set_attributes({}, need(paths.find(path)), changes));
    }
    need(file_system->unmount());
  }

  void mount() {
    Mounted made;
    made.clock =
        std::make_unique<WallClock>(world_.clock(), static_cast<unsigned>(mounted_.size()), mounts_.clocks_stand);
    made.store = world_.cluster().new_client();
    FileSystemOptions options;
    if (mounts_.names_are_remembered) options.entry_ttl = std::chrono::seconds(1);
    if (mounted_.size() % 2 == 1) {
      options.dirty_limit_bytes = 1 << 20;
      options.idle_leases = 100;
    }
    options.lease_after_changes = 1 + mounted_.size() % 2;  // directories are held, and go to and fro
    options.names_behind = true;
    made.file_system = need(mount_volume(made.store, *made.clock, options));
    made.store->set_hook([this, number = mounted_.size()](const StepInfo& step) { return before_step(step, number); });
    made.kernel = std::make_unique<KernelModel>(*made.file_system, world_.clock(), [this] { between(); });
    mounted_.push_back(std::move(made));
  }

  unsigned mount_of(const Action& action) const { return mounts_.mount_of_program[action.program]; }
  KernelModel& kernel_of(const Action& action) { return *mounted_[mount_of(action)].kernel; }
  std::chrono::nanoseconds now() { return world_.clock().elapsed(); }
  FileHistory& file(Id id) { return files_.at(id); }
  Slot* slot_of(const Action& action) {
    const auto found = slots_.find({action.program, action.slot});
    return found == slots_.end() ? nullptr : &found->second;
  }

  // ---- calls within calls

  void between() {
    for (auto& mount : mounted_) {
      if (mount.kernel) mount.kernel->settle();
    }
    if (is_within_) return;
    const std::lock_guard turn(turn_);
    resume_within();
  }

  /// The same, before the store reads or writes a file's bytes: the file system is in the midst of a request. Not where
  /// another mount does it because it was asked to: who asks it, too, would wait for what waits here.
  Fault before_step(const StepInfo& step, std::size_t mount) {
    if (is_refusing_ && step.step == "store size, times, map") {
      return is_stored_.exchange(true) ? Fault{Fault::Kind::fail, ErrorCode::no_space}
                                       : Fault{Fault::Kind::lost_answer_applied, ErrorCode::timed_out};
    }
    if (is_within_ || (step.kind != StepKind::read && step.kind != StepKind::write)) return {};
    if (outermost_ == nullptr || mount_of(*outermost_) != mount) return {};
    const std::lock_guard turn(turn_);
    is_at_step_ = true;
    resume_within();
    is_at_step_ = false;
    return {};
  }

  void resume_within() {
    if (outermost_ == nullptr) return;
    const int point = point_++;
    is_within_ = true;
    while (next_ < actions_.size() && actions_[next_].within == point && may_run_within(actions_[next_]) &&
           wrong_.empty()) {
      ++counts_.within;
      perform(actions_[next_++]);
    }
    is_within_ = false;
  }

  static bool changes_names(const Action& action) {
    return action.kind == Kind::unlink || action.kind == Kind::rename || action.kind == Kind::mkdir ||
           action.kind == Kind::rmdir || action.kind == Kind::list ||
           (action.kind == Kind::open && (action.flags & O_CREAT) != 0);
  }

  bool may_run_within(const Action& action) {
    const Action& outer = *outermost_;
    if (action.program == outer.program || !is_possible(action)) return false;
    if (action.kind == Kind::wait || action.kind == Kind::kill || action.kind == Kind::forget) return false;
    const bool has_points = outer.kind == Kind::read || outer.kind == Kind::write || outer.kind == Kind::do_write ||
                            outer.kind == Kind::stat ||
                            (outer.kind == Kind::open && (outer.flags & (O_CREAT | O_TRUNC)) == 0);
    if (!has_points) return false;
    if (is_at_step_ && !waits_for_nobody(action)) return false;
    if (changes_names(action) && (outer.kind == Kind::stat || outer.kind == Kind::open)) return false;
    if (mount_of(action) == mount_of(outer) && would_wait(action)) return false;
    return outer.kind != Kind::write || id_of(action) != id_of(outer) || suits_write(action);
  }

  /// In the file system, too, what is under way may keep others waiting: who releases a lease, or cuts the file.
  bool waits_for_nobody(const Action& action) {
    const bool only_looks = action.kind == Kind::read || action.kind == Kind::stat ||
                            (action.kind == Kind::open && (action.flags & (O_CREAT | O_TRUNC)) == 0);
    if (mount_of(action) != mount_of(*outermost_)) return only_looks && outermost_->kind != Kind::read;
    return only_looks || action.kind == Kind::do_write || action.kind == Kind::end_write;
  }

  bool would_wait(const Action& action) {
    const auto busy = kernel_of(action).busy();
    switch (action.kind) {
      case Kind::stat:
      case Kind::do_write:
      case Kind::end_write:
      case Kind::map:
      case Kind::clear_append:
        return false;
      case Kind::read:
      case Kind::load:
      case Kind::store:
      case Kind::unmap:
        return busy.pages;
      case Kind::open:
        return changes_names(action) ? busy.names : (action.flags & O_TRUNC) != 0 && (busy.pages || busy.inode);
      case Kind::unlink:
      case Kind::rename:
      case Kind::mkdir:
      case Kind::rmdir:
      case Kind::list:
        return busy.names;
      default:
        return busy.pages || busy.inode;
    }
  }

  /// Of an action on a file that is just being written: whether what is to come of both is known.
  bool suits_write(const Action& action) {
    // Both kernels see a capability, and one finds that it has gone when it removes it.
    if (action.kind == Kind::write && capable_.contains(*id_of(action))) return false;
    if (write_appends_) {
      // Of O_RDWR|O_APPEND the kernel may split a write: another's may come in between (docs/POSIX.md).
      const bool is_whole = (slot_of(*outermost_)->file->flags & O_ACCMODE) == O_WRONLY;
      return is_whole && action.kind == Kind::write && appends(slot_of(action)->file->flags);
    }
    if (write_grows_) return false;
    switch (action.kind) {
      case Kind::write:
        return !appends(slot_of(action)->file->flags) && !range_of(action).meets(write_range_) &&
               range_of(action).end <= file(*id_of(action)).bytes().size();
      case Kind::begin_write:
      case Kind::store:
        return !in_pages(range_of(action)).meets(in_pages(write_range_));
      case Kind::truncate:
      case Kind::truncate_in_vain:
        return false;
      case Kind::open:
        return (action.flags & O_TRUNC) == 0;
      default:
        return true;
    }
  }

  std::optional<Id> id_of(const Action& action) {
    if (!action.path.empty()) return tree_.id_of(action.path);
    const Slot* slot = slot_of(action);
    return slot == nullptr ? std::nullopt : std::optional(slot->id);
  }
  static Range range_of(const Action& action) { return {action.offset_bytes, action.offset_bytes + action.size_bytes}; }
  static Range in_pages(Range range) {
    constexpr auto page = KernelModel::page_size_bytes;
    return {range.begin / page * page, (range.end + page - 1) / page * page};
  }

  // ---- what can be done now

  bool is_possible(const Action& action) {
    if (action.kind == Kind::open) return can_open(action);
    if (!action.path.empty() || action.kind == Kind::wait || action.kind == Kind::forget) return true;
    if (action.kind == Kind::kill) return true;
    Slot* slot = slot_of(action);
    return slot != nullptr && can_use(*slot, action);
  }

  bool can_open(const Action& action) {
    if (action.slot != Action::at_once && slot_of(action) != nullptr) return false;
    const auto id = tree_.id_of(action.path);
    return !id || (action.flags & O_TRUNC) == 0 || file(*id).is_settled();
  }

  bool can_use(Slot& slot, const Action& action) {
    const int flags = slot.file->flags;
    FileHistory& of = file(slot.id);
    const auto size_bytes = of.bytes().size();
    const auto range = range_of(action);
    switch (action.kind) {
      case Kind::read:
        return for_reading(flags) && range.end <= FileHistory::most_bytes;
      case Kind::write:
        if (!for_writing(flags)) return false;
        if (appends(flags)) return size_bytes + 3 * KernelModel::most_bytes_at_once <= FileHistory::most_bytes;
        return range.end <= FileHistory::most_bytes / 2 && of.is_settled(in_pages(range));
      case Kind::begin_write:
        return for_writing(flags) && !slot.write && of.is_settled(in_pages(range)) && range.end <= size_bytes;
      case Kind::do_write:
        return slot.write && !slot.is_done;
      case Kind::end_write:
        return slot.write && slot.is_done;
      case Kind::map:
        return mounts_.count == 1 && for_reading(flags) && !slot.is_mapped;
      case Kind::unmap:
        return slot.is_mapped;
      case Kind::load:
        return slot.is_mapped && range.end <= size_bytes;
      case Kind::store:
        return slot.is_mapped && for_writing(flags) && range.end <= size_bytes && of.is_settled(in_pages(range));
      case Kind::truncate:
        return for_writing(flags) && of.is_settled();
      case Kind::truncate_in_vain:  // what another mount sees meanwhile may be either
        return for_writing(flags) && of.is_settled() && mounts_.count == 1;
      case Kind::clear_append:
        return appends(flags);
      case Kind::close:
        return !slot.write;
      default:
        return true;
    }
  }

  // ---- doing it

  void perform(const Action& action) {
    ++counts_.calls;
    played_ += std::string(is_within_.load() ? "    " : "  ") + text_of(action) + "\n";
    switch (action.kind) {
      case Kind::open:
        return open(action);
      case Kind::close:
        return close(action);
      case Kind::read:
        return read(action);
      case Kind::write:
        return appends(slot_of(action)->file->flags) ? append(action) : write(action);
      case Kind::begin_write:
      case Kind::do_write:
      case Kind::end_write:
        return write_async(action);
      case Kind::map:
      case Kind::unmap:
      case Kind::load:
      case Kind::store:
        return use_map(action);
      case Kind::truncate:
        return truncate(action);
      case Kind::truncate_in_vain:
        return truncate_in_vain(action);
      case Kind::fsync:
      case Kind::fdatasync:
        return sync(action);
      case Kind::clear_append:
        slot_of(action)->file->flags &= ~O_APPEND;
        return;
      case Kind::stat:
        return stat(action);
      case Kind::list:
        return list(action);
      case Kind::forget:
        return kernel_of(action).forget();
      case Kind::wait:
        return world_.clock().sleep_for(std::chrono::milliseconds(action.milliseconds));
      case Kind::kill:
        return kill();
      default:
        return change_by_path(action);
    }
  }

  void complain(const std::string& what) {
    if (wrong_.empty()) wrong_ = what + "\n";
  }
  void expect(const std::string& found, const std::string& expected) {
    if (found != expected) complain("  answers " + found + ", not " + expected);
  }

  void open(const Action& action) {
    const auto before = tree_.id_of(action.path);
    std::string expected = before ? "ok" : describe(ErrorCode::not_found);
    if (before && (action.flags & O_EXCL) != 0) expected = describe(ErrorCode::exists);
    if (!before && (action.flags & O_CREAT) != 0) {
      expected = tree_.perform({.kind = Call::Kind::create, .path = action.path, .mode = 0644});
      if (const auto made = tree_.id_of(action.path)) files_.try_emplace(*made, "", mounts_.count);
    }
    const auto ended = before ? std::optional(file(*before).all_that_ended()) : std::nullopt;
    auto opened = kernel_of(action).open(action.path, action.flags);
    expect(text_of_result(opened), expected);
    const auto id = tree_.id_of(action.path);
    if (!opened || !id) return;
    if (action.slot == Action::at_once) return expect(text_of_result(kernel_of(action).close(*opened)), "ok");
    slots_[{action.program, action.slot}] = {*opened, *id, false, {}, false};
    if (ended) file(*id).sees(mount_of(action), *ended);
    if (ended) capability_seen_.erase({*id, mount_of(action)});
    if ((action.flags & O_TRUNC) != 0 && before) cut(*id, mount_of(action), 0);
  }

  void close(const Action& action) {
    const auto slot = slots_.extract({action.program, action.slot}).mapped();
    const auto ended = file(slot.id).all_that_ended();
    expect(text_of_result(kernel_of(action).close(slot.file)), "ok");
    if (for_writing(slot.file->flags)) file(slot.id).keeps(mount_of(action), ended);
    if (slot.is_mapped) expect(text_of_result(kernel_of(action).unmap(slot.file)), "ok");
  }

  void judge_bytes(FileHistory& of, const FileHistory::View& view, const Action& action,
                   const Result<std::string>& found) {
    if (!found) return complain("  answers " + text_of_result(found));
    if (of.may_be_read(view, action.offset_bytes, action.size_bytes, *found)) return;
    const auto newest = of.bytes().size() > action.offset_bytes
                            ? of.bytes().substr(action.offset_bytes, action.size_bytes)
                            : std::string();
    complain("  reads " + test::runs_of(*found) + ", newest: " + test::runs_of(newest));
  }

  void read(const Action& action) {
    const Slot slot = *slot_of(action);
    FileHistory& of = file(slot.id);
    auto view = of.view_of(mount_of(action), now());
    if (slot.is_direct()) view.raise(of.all_that_ended());
    judge_bytes(of, view, action, kernel_of(action).read(slot.file, action.offset_bytes, action.size_bytes));
  }

  void write(const Action& action) {
    const Slot slot = *slot_of(action);
    FileHistory& of = file(slot.id);
    const auto range = range_of(action);
    const bool is_outermost = outermost_ == &action;
    const bool grows = range.end > of.bytes().size();
    if (is_outermost) {
      write_appends_ = false;
      write_grows_ = grows;
      write_range_ = range;
    }
    if (!grows) {
      change(slot.id, {.kind = Call::Kind::write,
                       .path = {},
                       .offset_bytes = range.begin,
                       .size_bytes = action.size_bytes,
                       .letter = action.letter});
      of.unsettle(&action, range);
    }
    const auto done = kernel_of(action).write(slot.file, range.begin, std::string(action.size_bytes, action.letter));
    expect(text_of_result(done), "ok");
    if (grows) {
      const Range all{of.bytes().size(), range.end};
      change(slot.id, {.kind = Call::Kind::write,
                       .path = {},
                       .offset_bytes = range.begin,
                       .size_bytes = action.size_bytes,
                       .letter = action.letter});
      of.changed(mount_of(action), all);
      of.changed_size(mount_of(action));
    }
    of.settle(&action);
    of.changed(mount_of(action), range);
    wrote(slot, mount_of(action), range);
  }

  void append(const Action& action) {
    const Slot slot = *slot_of(action);
    const bool is_outermost = outermost_ == &action;
    if (is_outermost) {
      write_appends_ = true;
      appended_within_.clear();
    }
    const std::string bytes(action.size_bytes, action.letter);
    expect(text_of_result(kernel_of(action).write(slot.file, 0, bytes)), "ok");
    const Appended appended{mount_of(action), bytes};
    if (!is_outermost && write_appends_ && outermost_->kind == Kind::write && id_of(*outermost_) == slot.id) {
      appended_within_.push_back(appended);
      return;
    }
    if (is_outermost) write_appends_ = false;
    put_appended(slot, appended);
  }

  /// What was appended meanwhile came before it or after it, each whole.
  void put_appended(const Slot& slot, const Appended& last) {
    std::vector<Appended> order = std::exchange(appended_within_, {});
    order.push_back(last);
    const auto stored = stored_bytes(slot.file->ino);
    for (std::size_t place = order.size();; --place) {
      std::string together = file(slot.id).bytes();
      for (const Appended& one : order) together += one.bytes;
      const bool is_this = stored.substr(0, together.size()) == together;
      if (is_this || order.size() == 1) break;
      if (place == 1) return complain("  an append is not whole: " + test::runs_of(stored));
      std::swap(order[place - 1], order[place - 2]);
    }
    for (const Appended& one : order) {
      const Range range{file(slot.id).bytes().size(), file(slot.id).bytes().size() + one.bytes.size()};
      change(slot.id, {.kind = Call::Kind::append, .path = {}, .size_bytes = one.bytes.size(), .letter = one.bytes[0]});
      file(slot.id).changed(one.mount, range);
      file(slot.id).changed_size(one.mount);
      wrote(slot, one.mount, range);
    }
  }

  std::string stored_bytes(Ino ino) {
    std::string bytes;
    world_.cluster().with_objects([&](scripted::Objects& objects) {
      const auto found = objects.data().find(format::data_object(ino, ObjectIndex{0}));
      if (found != objects.data().end()) bytes = found->second;
    });
    return bytes;
  }

  void change(Id id, const Call& call) {
    tree_.perform_on({id}, call);
    file(id).put(tree_.bytes_of(id), now());
  }

  /// Writing and cutting take the capability away. One that another mount has set since the file was opened here is
  /// seen after a second; by a direct write of root's (all are), perhaps never.
  void take_capability(Id id, unsigned mount, bool passed_by_pages) {
    tree_.perform_on({id}, {.kind = Call::Kind::remove_xattr, .path = {}, .other = capability});
    capable_.erase(id);
    const auto seen = capability_seen_.find({id, mount});
    if (seen != capability_seen_.end() && (passed_by_pages || seen->second > now())) capability_unknown_.insert(id);
  }

  /// A write has ended; other mounts have nothing left to store.
  void wrote(const Slot& slot, unsigned mount, Range range) {
    take_capability(slot.id, mount, slot.file->direct);
    FileHistory& of = file(slot.id);
    if ((slot.file->flags & O_DSYNC) != 0) of.keeps_range(mount, range);
    others_keep_all(of, mount);
  }

  void others_keep_all(FileHistory& of, unsigned mount) {
    for (unsigned other = 0; other < mounts_.count; ++other) {
      if (other != mount) of.keeps(other, of.all_that_ended());
    }
  }

  void write_async(const Action& action) {
    Slot& slot = *slot_of(action);
    FileHistory& of = file(slot.id);
    if (action.kind == Kind::do_write) {
      slot.is_done = true;
      return kernel_of(action).do_write(*slot.write);
    }
    if (action.kind == Kind::end_write) {
      const auto range = Range{slot.write->offset_bytes, slot.write->offset_bytes + slot.write->bytes.size()};
      expect(text_of_result(kernel_of(action).end_write(*slot.write)), "ok");
      slot.write.reset();
      slot.is_done = false;
      of.settle(slot.file.get());
      of.changed(mount_of(action), range);
      return wrote(slot, mount_of(action), range);
    }
    const auto range = range_of(action);
    auto begun = kernel_of(action).begin_write(slot.file, range.begin, std::string(action.size_bytes, action.letter));
    if (!begun) return;
    slot.write = std::move(*begun);
    change(slot.id, {.kind = Call::Kind::write,
                     .path = {},
                     .offset_bytes = range.begin,
                     .size_bytes = action.size_bytes,
                     .letter = action.letter});
    of.unsettle(slot.file.get(), range);
  }

  void use_map(const Action& action) {
    Slot& slot = *slot_of(action);
    FileHistory& of = file(slot.id);
    if (action.kind == Kind::map) {
      const auto mapped = kernel_of(action).map(slot.file);
      if (!slot.is_direct()) expect(text_of_result(mapped), "ok");
      slot.is_mapped = mapped.has_value();
    } else if (action.kind == Kind::unmap) {
      slot.is_mapped = false;
      expect(text_of_result(kernel_of(action).unmap(slot.file)), "ok");
    } else if (action.kind == Kind::load) {
      const auto view = of.view_of(mount_of(action), now());
      judge_bytes(of, view, action, kernel_of(action).load(slot.file, action.offset_bytes, action.size_bytes));
    } else {
      const auto stored =
          kernel_of(action).store(slot.file, action.offset_bytes, std::string(action.size_bytes, action.letter));
      expect(text_of_result(stored), "ok");
      change(slot.id, {.kind = Call::Kind::write,
                       .path = {},
                       .offset_bytes = action.offset_bytes,
                       .size_bytes = action.size_bytes,
                       .letter = action.letter});
      of.changed(mount_of(action), range_of(action));
    }
  }

  void cut(Id id, unsigned mount, std::uint64_t size_bytes) {
    change(id, {.kind = Call::Kind::truncate, .path = {}, .size_bytes = size_bytes});
    file(id).changed(mount, {0, FileHistory::most_bytes});
    file(id).changed_size(mount);
    take_capability(id, mount, false);
    others_keep_all(file(id), mount);
  }

  void truncate(const Action& action) {
    const Slot slot = *slot_of(action);
    expect(text_of_result(kernel_of(action).truncate(slot.file, action.size_bytes)), "ok");
    cut(slot.id, mount_of(action), action.size_bytes);
  }

  /// Size and bytes stay as they were, whatever the store has done; that the kernel takes the capability first stands.
  void truncate_in_vain(const Action& action) {
    const Slot slot = *slot_of(action);
    is_refusing_ = true;
    expect(text_of_result(kernel_of(action).truncate(slot.file, action.size_bytes)), describe(ErrorCode::no_space));
    is_refusing_ = is_stored_ = false;
    take_capability(slot.id, mount_of(action), false);
  }

  void sync(const Action& action) {
    const Slot slot = *slot_of(action);
    const auto ended = file(slot.id).all_that_ended();
    expect(text_of_result(kernel_of(action).fsync(slot.file, action.kind == Kind::fdatasync)), "ok");
    file(slot.id).keeps(mount_of(action), ended);
  }

  void stat(const Action& action) {
    const auto id = tree_.id_of(action.path);
    const auto view = id && files_.contains(*id) ? file(*id).view_of(mount_of(action), now()) : FileHistory::View{};
    const auto mode_before = id ? mode_of(*id) : Mode{};
    const auto found = kernel_of(action).stat(action.path);
    if (mounts_.names_are_remembered) return;
    expect(text_of_result(found), id ? "ok" : describe(ErrorCode::not_found));
    if (found && id && mode_of(*id).since == mode_before.since) judge_mode(mode_before, mount_of(action), found->mode);
    if (!found || !id || file(*id).may_be_size(view, found->size_bytes)) return;
    complain("  says " + std::to_string(found->size_bytes) +
             " bytes, newest: " + std::to_string(file(*id).bytes().size()));
  }

  /// A mode that was set elsewhere is seen after a second.
  void judge_mode(const Mode& mode, unsigned mount, std::uint32_t found) {
    const bool is_young = now() - mode.since <= std::chrono::milliseconds(1001);
    if (mode.bits == 0 || found == mode.bits || (mount != mode.set_by && is_young)) return;
    complain("  says mode " + std::to_string(found) + ", which was set to " + std::to_string(mode.bits));
  }

  void list(const Action& action) {
    const auto found = kernel_of(action).list(action.path);
    if (!found) return complain("  answers " + text_of_result(found));
    std::string names, expected;
    for (const std::string& name : *found) names += " " + name;
    const auto prefix = action.path == "/" ? "/" : action.path + "/";
    for (const std::string& line : tree_.lines()) {
      const auto path = line.substr(0, line.find(' '));
      if (path.size() > prefix.size() && path.starts_with(prefix) && path.find('/', prefix.size()) == std::string::npos)
        expected += " " + path.substr(prefix.size());
    }
    expect(names, expected);
  }

  void change_by_path(const Action& action) {
    auto& kernel = kernel_of(action);
    const auto id = tree_.id_of(action.path);
    if (action.kind == Kind::put_mtime_back) {
      return expect(text_of_result(kernel.set_mtime(action.path, first_mtime)),
                    id ? "ok" : describe(ErrorCode::not_found));
    }
    if (action.kind == Kind::chmod) {
      if (id) modes_[*id] = {static_cast<std::uint32_t>(action.flags), mount_of(action), now()};
      return both(kernel.chmod(action.path, static_cast<std::uint32_t>(action.flags)),
                  {.kind = Call::Kind::chmod, .path = action.path, .mode = static_cast<std::uint32_t>(action.flags)});
    }
    if (action.kind == Kind::set_capability) {
      for (unsigned other = 0; id && other < mounts_.count; ++other) {
        if (other != mount_of(action)) capability_seen_[{*id, other}] = now() + std::chrono::milliseconds(1001);
      }
      if (id) capable_.insert(*id);
      if (id) capability_unknown_.erase(*id);
      if (id && !file(*id).is_settled()) capability_unknown_.insert(*id);
      return both(kernel.set_xattr(action.path, capability, "c"),
                  {.kind = Call::Kind::set_xattr, .path = action.path, .other = capability, .letter = 'c'});
    }
    if (action.kind == Kind::unlink) return both(kernel.unlink(action.path), {Call::Kind::unlink, action.path});
    if (action.kind == Kind::rmdir) return both(kernel.rmdir(action.path), {Call::Kind::rmdir, action.path});
    if (action.kind == Kind::mkdir) {
      const auto made = kernel.mkdir(action.path, 0755);
      // The kernel remembers one that is gone.
      if (mounts_.names_are_remembered && text_of_result(made) == describe(ErrorCode::exists)) return;
      return both(made, {.kind = Call::Kind::mkdir, .path = action.path, .mode = 0755});
    }
    both(kernel.rename(action.path, action.other),
         {.kind = Call::Kind::rename, .path = action.path, .other = action.other});
  }

  void both(const Result<>& found, const Call& call) { expect(text_of_result(found), tree_.perform(call)); }

  // ---- the end

  /// kill -9 of the first mount: the others look, each through its kernel, and a new one.
  void kill() {
    ++counts_.kills;
    is_killed_ = true;
    mounted_.front().give_up();
    world_.let_a_minute_pass();
    const auto store = world_.cluster().new_client();
    const auto file_system = need(mount_volume(store, world_.clock(), {}));
    test::Paths paths(*file_system);
    for (const char* path : {"/a", "/b", "/d/c"}) {
      for (unsigned mount = 1; mount < mounts_.count; ++mount) judge_killed(*mounted_[mount].kernel, path);
      judge_killed(paths, path);
    }
    need(file_system->unmount());
  }

  template <class Reader>
  void judge_killed(Reader& reader, const std::string& path) {
    const auto id = tree_.id_of(path);
    const auto handle = reader.open(path, O_RDONLY);
    expect(text_of_result(handle), id ? "ok" : describe(ErrorCode::not_found));
    if (!id || !handle) return;
    const auto found = reader.read(*handle, 0, FileHistory::most_bytes);
    static_cast<void>(reader.close(*handle));
    const Action action{.kind = Kind::read, .path = path, .size_bytes = FileHistory::most_bytes};
    judge_bytes(file(*id), file(*id).kept_by(0), action, found);
    if (!wrong_.empty()) wrong_ = "  of " + path + ":\n" + wrong_;
  }

  void end() {
    while (!slots_.empty() && wrong_.empty()) {
      const auto [program, number] = slots_.begin()->first;
      Slot& slot = slots_.begin()->second;
      if (slot.write && !slot.is_done) perform({.kind = Kind::do_write, .program = program, .slot = number});
      if (slot.write) perform({.kind = Kind::end_write, .program = program, .slot = number});
      perform({.kind = Kind::close, .program = program, .slot = number});
    }
    for (auto& mount : mounted_) {
      mount.kernel.reset();
      mount.store->set_hook(nullptr);
      expect(text_of_result(mount.file_system->unmount()), "ok");
      mount.file_system.reset();
    }
    if (!wrong_.empty()) return;
    const auto examined = world_.examine();
    if (!examined.problems.empty()) complain(examined.problems);
    Tree expected = tree_.lines(), found = examined.tree;
    for (const Id id : capability_unknown_) {
      static_cast<void>(id);
      for (Tree* tree : {&expected, &found}) {
        for (std::string& line : *tree) {
          if (const auto at = line.find(std::string(" ") + capability + "=c"); at != std::string::npos)
            line.erase(at, std::string(capability).size() + 3);
        }
      }
    }
    if (found != expected) complain("  in the end there is\n" + text_of(found) + "  and not\n" + text_of(expected));
  }

  const Mounts& mounts_;
  const std::vector<Action>& actions_;
  KernelCounts& counts_;
  World world_;
  ModelTree tree_;
  std::map<Id, FileHistory> files_;
  std::vector<Mounted> mounted_;
  std::map<std::pair<unsigned, unsigned>, Slot> slots_;  // by program and number
  std::string played_, wrong_;
  bool is_killed_ = false;
  std::atomic<bool> is_refusing_ = false, is_stored_ = false;  // the next step that stores a size

  std::mutex turn_;  // steps may be of other threads: one of them continues with the history at a time
  std::size_t next_ = 0;
  const Action* outermost_ = nullptr;
  std::atomic<bool> is_within_ = false;
  bool is_at_step_ = false;
  int point_ = 0;
  // the outermost call, if it is a write
  bool write_appends_ = false, write_grows_ = false;
  Range write_range_;
  std::vector<Appended> appended_within_;

  std::map<Id, Mode> modes_;
  std::map<std::pair<Id, unsigned>, std::chrono::nanoseconds> capability_seen_;  // by mount: from when on it knows
  std::set<Id> capable_, capability_unknown_;
};

}  // namespace

std::vector<Call> setup_for_kernels() {
  return {{.kind = Call::Kind::mkfile, .path = "/a", .mode = 0601},
          {.kind = Call::Kind::write, .path = "/a", .size_bytes = 100, .letter = 'S'},
          {.kind = Call::Kind::mkfile, .path = "/b", .mode = 0602},
          {.kind = Call::Kind::write, .path = "/b", .size_bytes = 70, .letter = 'T'},
          {.kind = Call::Kind::mkdir, .path = "/d", .mode = 0700},
          {.kind = Call::Kind::mkfile, .path = "/d/c", .mode = 0603},
          {.kind = Call::Kind::write, .path = "/d/c", .size_bytes = 10, .letter = 'U'}};
}

std::string play_on_kernels(const Start& start, const Mounts& mounts, const std::vector<Action>& actions,
                            KernelCounts& counts) {
  ++counts.histories;
  return KernelPlay(start, mounts, actions, counts).play();
}

}  // namespace lccfs::crash
