// SPDX-License-Identifier: LGPL-2.1-or-later
// What the operations of the namespace share: their answers, and what their steps have changed in memory.
#include "fs/namespace.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"
#include "txn/attribute_txn.h"

namespace lccfs {

namespace {
/// Steps after answers, beyond which renames wait.
constexpr unsigned most_in_background = 256;
}  // namespace

AttributesReply Namespace::reply_for(const Inode& view) {
  if (view.attr.type == FileType::regular) return files_.reply_for(view);
  return {attributes_of(view, instance_.super().object_size_bytes), options_.attributes_ttl};
}

std::chrono::nanoseconds Namespace::entry_ttl(std::chrono::nanoseconds sent) const {
  const auto ttl = options_.entry_ttl.value_or(std::chrono::nanoseconds(0));
  return std::max(std::chrono::nanoseconds(0), sent + ttl - now());
}

bool Namespace::believes_leases() { return leases_.takes_leases() && leases_.may_answer_from_memory(); }

void Namespace::attr_changed(const Inode& changed) {
  const auto version = changed.version != 0 ? std::optional(changed.version) : std::nullopt;  // 0: it is not stored yet
  metadata_.inodes.change_attr(changed.ino, version, [&changed](Inode& view) {
    view.attr = changed.attr;
    view.attr_raw = changed.attr_raw;
    view.ctime = changed.ctime;
  });
  files_.attributes_changed(changed);
}

/// What the store never had of a new file, it need not get, unless somebody opens it before its removal is stored: the
/// log has it discarded then.
void Namespace::lost_its_only_name(Ino ino) {
  instance_.unstored().forget_ctime(ino);
  const bool is_unstored = instance_.unstored().is_untouched(ino) && !files_.is_open(ino);
  files_.lost_a_name(ino, is_unstored ? Files::Name::the_only_one_of_an_unstored : Files::Name::the_only_one);
  metadata_.inodes.drop(ino);
}

/// Before a name is removed there. Whether its lease was taken for that.
bool Namespace::begin_to_empty(Ino directory) {
  const auto known = metadata_.in_memory(directory);
  const bool is_anothers = known && !leases_.is_free_or_ours(*known);
  return !is_anothers && emptying_.is_first_removal(directory) && leases_.begin_to_empty(directory);
}

/// It is used, though it was likely to go: what is read of it is read now. What the kernel was told of it; nullopt: nothing
/// that was not read for it.
std::optional<format::AttrRecord> Namespace::look_anew_at(Ino ino) {
  auto told = emptying_.is_used(ino);
  if (told) metadata_.inodes.drop(ino);
  return told;
}

/// The kernel lets callers change an inode by what it was told of its owner. `stale`: that is so no more; until it has looked
/// the path up anew, or asked for attributes.
Result<> Namespace::check_as_told(Ino ino) {
  const auto told = look_anew_at(ino);
  if (!told) return {};
  LCCFS_TRY(const auto now, metadata_.read_existing(ino));
  if (now.attr == *told) return {};
  return failure(ErrorCode::stale, format::inode_object(ino) + " has changed since its name was looked up");
}

/// On a full store additions find no room; what removes a name that is one of them needs none.
Result<bool> Namespace::store_additions_before_a_name_goes(const Inode& inode, bool was_gone) {
  const auto stored = store_additions();
  if (stored) return true;
  if (is_out_of_space(stored.error()) && !was_gone && is_gone_with_its_name(inode)) return false;
  return std::unexpected(stored.error());
}

/// The last step of unlink, and of a rename over a file. The name is gone whether this succeeds or not: after a failure
/// recount does it.
void Namespace::one_link_less(const Inode& inode) {
  if (is_gone_with_its_name(inode)) {
    lost_its_only_name(inode.ino);
    return files_.removal_is_stored(inode.ino);
  }
  files_.lost_a_name(inode.ino, Files::Name::one_of_several);
  const auto take_one = [](format::AttrRecord& attr) -> Result<> {
    if (attr.nlink > 0) --attr.nlink;
    return {};
  };
  const auto changed = change_attr(instance_, inode.ino, take_one, &inode);
  if (changed) return attr_changed(*changed);
  log::failed(log::Level::warning, format::inode_object(inode.ino) + ": link count left to the collector",
              changed.error());
  metadata_.inodes.drop(inode.ino);
}

Result<std::optional<Entries>> Namespace::directory_with_room_for(const txn::Name& name, bool from_memory) {
  LCCFS_TRY(auto entries, seals_.find_to_change({&name}, from_memory));
  LCCFS_TRY(const bool takes_names, seals_.takes_names(entries.directory));
  if (!takes_names) return std::nullopt;
  const auto& taken = entries.found.front();
  if (!taken) return entries;
  if (!entries.fresh) return std::nullopt;
  LCCFS_TRY(const auto target, seals_.target_of(name, *taken));
  if (!target) return std::nullopt;
  return failure(ErrorCode::exists, format::inode_object(name.directory) + ": there is an entry " + name.name);
}

Result<bool> Namespace::insert_entry(const txn::Name& name, const format::EntryRecord& entry,
                                     const std::optional<txn::SubdirectoryCount>& nsub, bool& may_be_there) {
  const auto sent = now();
  const auto time = wall_time();
  const Metadata::Changing changing(metadata_, {&name});
  const auto step = metadata_.run_on_directory(txn::insert_entry(name, entry, time, nsub), {&name});
  may_be_there = !step && !certainly_not_applied(step.error());
  if (!step) return std::unexpected(step.error());
  if (step->decided == Decided::refused) return false;
  metadata_.name_changed(name, txn::Entry{encode(entry), entry}, sent, step->version);
  metadata_.directory_changed(name.directory, step->version, time, nsub);
  return true;
}

/// Who may come to know of an unshared inode asks for its directory first. A release that has looked for ctimes before
/// this one was there does not wait for it.
bool Namespace::keep_ctime(Ino moved, Ino directory, TimeSpec time) {
  const auto tenure = leases_.held.tenure_of(directory);
  if (!tenure || !metadata_.unshared(moved) || !instance_.unstored().add_ctime(moved, directory, time)) return false;
  if (!leases_.held.is_held(directory, *tenure)) store_later({moved});
  return true;
}

void Namespace::store_later(const std::vector<Ino>& moved) {
  if (moved.empty()) return;
  begin_background_step();
  instance_.unstored().store_ctimes(moved, [this](const Result<>&) { end_background_step(); });
}

void Namespace::change_ctime_later(Ino moved, Ino directory, TimeSpec time) {
  if (metadata_.change_ctime_behind(moved, directory, time, keep_behind(moved))) return;
  metadata_.inodes.change(moved, std::nullopt, [time](Inode& view) { view.ctime = time; });
  const bool is_unstored = instance_.unstored().edit(moved, [time](MetaTxn& create) {
    txn::change_new_inode(create, {.ctime = time});
    return true;
  });
  if (is_unstored) return;
  if (keep_ctime(moved, directory, time)) return;
  {
    Lock lock(background_mutex_);
    const auto may_send = [this, moved]() REQUIRES(background_mutex_) {
      return in_background_ < most_in_background || next_ctimes_.contains(moved);
    };
    lock.wait(background_done_, may_send);
    const auto [at, is_first] = next_ctimes_.try_emplace(moved);
    if (!is_first) at->second = time;
    if (!is_first) return;
    ++in_background_;
  }
  send_ctime(moved, txn::set_ctime(moved, time));
}

void Namespace::send_ctime(Ino moved, MetaTxn txn) {
  instance_.store().apply_async(std::move(txn), [this, moved](const Result<Applied>& applied) {
    if (!applied) log::debug(format::inode_object(moved) + ": set ctime: not done: " + applied.error().context);
    ctime_is_answered(moved);
  });
}

void Namespace::ctime_is_answered(Ino moved) {
  std::optional<TimeSpec> next;
  {
    const Lock lock(background_mutex_);
    const auto at = next_ctimes_.find(moved);
    next = std::exchange(at->second, std::nullopt);
    if (!next) next_ctimes_.erase(at);
  }
  next ? send_next_ctime(moved, *next) : end_background_step();
}

/// Another change that was sent after the rename, and before this, has a later one, which stays.
void Namespace::send_next_ctime(Ino moved, TimeSpec time) {
  objects::read_inode_async(instance_.reader(), moved, {}, [this, moved, time](const Result<Inode>& now) {
    if (!now || now->ctime >= time) return ctime_is_answered(moved);
    send_ctime(moved, txn::set_next_ctime(moved, now->ctime, time));
  });
}

void Namespace::begin_background_step() {
  const Lock lock(background_mutex_);
  ++in_background_;
}

void Namespace::end_background_step() {
  const Lock lock(background_mutex_);
  --in_background_;
  background_done_.notify_all();
}

void Namespace::apply_later(MetaTxn txn) {
  begin_background_step();
  const std::string step = txn.object + ": " + txn.step;
  instance_.store().apply_async(std::move(txn), [this, step](const Result<Applied>& applied) {
    if (!applied) log::debug(step + ": not done: " + applied.error().context);
    end_background_step();
  });
}

/// The operation has ended, so its step takes effect no more: what a read does not show was taken back, by a collector
/// as a rule, or never was there.
void Namespace::look_again_at(const PointerInDoubt& in_doubt) {
  begin_background_step();
  const auto look = [this, in_doubt](const auto& read) {
    const auto leads_there = [&in_doubt](const auto& one) { return one.parent == in_doubt.parent; };
    const bool is_gone = !read && read.error().code == ErrorCode::not_found;
    if (is_gone || (read && std::ranges::none_of(read->pointers, leads_there))) directories_.let_go(in_doubt);
    end_background_step();
  };
  objects::read_inode_async(instance_.reader(stop_reading_.get_token()), in_doubt.ino, {.traces = true}, look);
}

void Namespace::wait_for_background_steps() {
  stop_reading_.request_stop();
  {
    Lock lock(background_mutex_);
    lock.wait(background_done_, [this]() REQUIRES(background_mutex_) { return in_background_ == 0; });
  }
  reads_ahead_.wait();
  leases_.wait();
  removals_.end();
}

void Namespace::forget(Ino ino) {
  metadata_.inodes.drop(ino);
  emptying_.forget(ino);
  const Lock lock(kept_mutex_);
  kept_by_name_.erase(ino);
}

}  // namespace lccfs
