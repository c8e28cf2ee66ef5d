// SPDX-License-Identifier: LGPL-2.1-or-later
// Files: what is told of them, what the namespace operations ask, and what is done without a request.
#include "fs/files.h"

#include <algorithm>
#include <utility>

#include "base/expected_errors.h"
#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

namespace {
constexpr std::chrono::seconds store_dirty_after{5};
}  // namespace

Files::Files(Instance& instance, ThreadPool& pool, const FileSystemOptions& options)
    : instance_(instance),
      options_(options),
      holders_(instance),
      room_(std::make_shared<DirtyRoom>(options.dirty_limit_bytes, instance.clock())),
      open_files_(instance, holders_, kernel_, room_),
      tasks_(pool),
      space_looks_(instance, room_),
      announcements_(instance, open_files_),
      io_{instance, pool, holders_, kernel_, *room_, announcements_, options.attributes_ttl},
      recalls_(instance, open_files_, kernel_),
      idle_leases_(open_files_, instance, *room_, options.idle_leases),
      locks_(instance, open_files_, holders_,
             [this](FileNode& node, const std::stop_token& stop) { return refresh(node, stop); }),
      opener_keys_(instance, open_files_, [this](const Inode& view) {
        kernel_.drop_now(
            view.ino, [this, &view] { return !is_put_off_by_lock(view.ino); }, [this, &view] { look_again(view); });
      }) {
  instance.set_missed_handler([this] { begin_anew(); });
  instance.set_question_handler([this](const format::Question& question) { return answer(question); });
  space_looks_.tick();  // of any mount: statfs goes by it where the store does not answer
}

Files::~Files() {
  finish_what_was_asked();
  stop_answering();
  instance_.set_question_handler(nullptr);  // as at the end of an unmount: one that failed did not come to that
}

void Files::finish_what_was_asked() {
  // Some of the waits below have no bound, and a client that says nothing is taken for dead.
  instance_.set_question_handler([this](const format::Question& question) { return answer_at_the_end(question); });
  instance_.set_missed_handler(nullptr);
  recalls_.wait();
  locks_.end();
  opener_keys_.end();
  announcements_.end();
  tasks_.wait();
}

void Files::stop_answering() {
  // What is begun may wait for an object that does not answer, and so may the end of the instance. Nothing of this here
  // is needed to say so: it stays until the instance has ended.
  instance_.set_question_handler([](const format::Question&) { return format::Answer{format::Answer::Kind::busy}; });
  recalls_.wait();
}

format::Answer Files::answer_for_directory(const format::Question& question) {
  format::Answer answer{format::Answer::Kind::busy};
  directory_handler_.call([&](const auto& handler) { answer = handler(question); });
  return answer;
}

/// No write lease is left, but leases of locks are, though without locks.
format::Answer Files::answer_at_the_end(const format::Question& question) {
  using Kind = format::Question::Kind;
  if (question.kind == Kind::release_directory) return answer_for_directory(question);
  if (question.kind == Kind::share_locks) return recalls_.answer(question);
  return {format::Answer::Kind::busy};
}

format::Answer Files::answer(const format::Question& question) {
  using Kind = format::Question::Kind;
  using Answer = format::Answer::Kind;
  if (question.kind == Kind::release_directory) return answer_for_directory(question);
  if (question.kind == Kind::locks_changed) {
    return {locks_.changed(question.ino, question.asker) ? Answer::done : Answer::busy};
  }
  if (question.kind == Kind::file_changed) {
    changed_elsewhere(question.ino);
    return {opener_keys_.is_open(question.ino) ? Answer::done : Answer::busy};
  }
  if (question.kind == Kind::file_opened) {
    // Before it stores what is buffered: what is written from then on waits for the store, and is told.
    const auto node = open_files_.use(question.ino);
    announcements_.opened(*node, question.asker);
  }
  if (question.kind == Kind::share_locks) locks_.is_wanted(question.ino, question.asker);
  return recalls_.answer(question);
}

// ---- what is told of an inode

/// The inode read anew; if another client writes it, its size as of now.
Result<Inode> Files::read_told(Ino ino, LeaseHolders::Ask ask, const std::stop_token& stop) {
  LCCFS_TRY(auto view, holders_.read_current(ino, ask, stop));
  if (is_old_news(view)) return holders_.read_current(ino, ask, stop);
  return view;
}

/// Our own lease in it is known to memory: where it was released between the read and the look into memory, the read is
/// old.
bool Files::is_old_news(const Inode& read) const {
  if (read.lease != instance_.id()) return false;
  return !holds(read.ino);
}

/// Memory's size and times over those of an inode that was just read.
Attributes Files::current_attributes(const Inode& read, bool& leased_here) const {
  const auto node = open_files_.existing(read.ino);
  const auto acknowledged = node ? node->acknowledged(read) : std::nullopt;
  leased_here = acknowledged.has_value();
  return acknowledged ? *acknowledged : attributes_of(read, instance_.super().object_size_bytes);
}

/// They count from when the read was sent: its answer may be late.
std::chrono::nanoseconds Files::trusted_for(const Inode& read) const {
  const std::chrono::nanoseconds unknown{0};
  if (read.sent == unknown) return options_.attributes_ttl;
  const auto age = instance_.clock().elapsed() - read.sent;
  return std::max(std::chrono::nanoseconds(0), options_.attributes_ttl - age);
}

/// Remembered as what the kernel knows.
AttributesReply Files::reply(const Inode& read) {
  bool leased_here = false;
  AttributesReply answer{current_attributes(read, leased_here), options_.attributes_ttl};
  if (!leased_here) answer.attributes_ttl = trusted_for(read);
  // Another client writes it: what we say may be old at once. And what a file occupies is not known of a part of its
  // map.
  const bool written_elsewhere = read.lease && *read.lease != instance_.id();
  if (!leased_here && (written_elsewhere || !read.map_is_whole)) answer.attributes_ttl = {};
  kernel_.told(answer.attributes);
  return answer;
}

Result<AttributesReply> Files::get_attributes(Ino ino) {
  LCCFS_TRY(const auto view, or_stale(read_told(ino, LeaseHolders::Ask::for_attributes)));
  return reply(view);
}

AttributesReply Files::reply_for(const Inode& view) {
  if (view.attr.type != FileType::regular) {
    return {attributes_of(view, instance_.super().object_size_bytes), trusted_for(view)};
  }
  if (const auto known = known_reply_for(view)) return *known;
  const auto again = holders_.read_current(view.ino, LeaseHolders::Ask::nobody);
  return reply(again ? *again : view);
}

std::optional<AttributesReply> Files::known_reply_for(const Inode& view) {
  return is_old_news(view) ? std::nullopt : std::optional(reply(view));
}

// ---- what the namespace operations use

std::optional<Ino> Files::ino_of(HandleId handle) const {
  const auto open = open_files_.handle(handle);
  return open ? std::optional(open->node->ino) : std::nullopt;
}

std::optional<int> Files::flags_of(HandleId handle) const {
  const auto open = open_files_.handle(handle);
  return open ? std::optional(open->flags) : std::nullopt;
}

bool Files::is_open(Ino ino) const {
  const auto node = open_files_.existing(ino);
  if (!node) return false;
  const Lock lock(node->mutex);
  return node->handles > 0;
}

bool Files::is_in_use(Ino ino) { return static_cast<bool>(open_files_.use_existing(ino)); }

bool Files::needs(Ino ino) {
  const auto node = open_files_.use_existing(ino);
  if (!node) return false;
  bool is_needed = false;
  {
    const Lock lock(node->mutex);
    is_needed = node->handles > 0 || node->openings > 0 || node->lease_held;
  }
  idle_leases_.release_soon(node);
  return is_needed;
}

void Files::lost_a_name(Ino ino, Name which) {
  const auto node = open_files_.use_existing(ino);
  if (!node) return;
  if (which != Name::one_of_several) {
    const Lock lock(node->mutex);
    node->is_without_name = true;
  }
  if (which != Name::the_only_one_of_an_unstored) idle_leases_.release_soon(node);
}

void Files::removal_is_stored(Ino ino) {
  const auto node = open_files_.use_existing(ino);
  if (!node) return;
  {
    const Lock lock(node->mutex);
    node->is_removal_stored = true;
  }
  idle_leases_.release_soon(node);
}

void Files::has_its_name_again(Ino ino) {
  const auto node = open_files_.use_existing(ino);
  if (!node) return;
  const Lock lock(node->mutex);
  node->is_without_name = false;
}

void Files::discard(Ino ino) {
  if (const auto node = open_files_.use_existing(ino)) node->discard_unless_open();
}

void Files::bring_up_to_date(std::map<Ino, Inode>& inodes, const ReadMany& read) {
  holders_.bring_up_to_date(inodes, read);
}

bool Files::holds(Ino ino) const {
  const auto node = open_files_.existing(ino);
  return node && node->held();
}

Result<> Files::store_before_naming(const Inode& view, std::chrono::nanoseconds since, NewName name) {
  using Ask = LeaseHolders::Ask;
  if (const auto node = open_files_.use_existing(view.ino); node && node->held()) {
    auto stored = node->store_dirty(false);
    const bool was_ours_until_then = node->held();
    if (!stored || was_ours_until_then) return stored;
  } else if (view.sent >= since && !view.lease) {
    return {};
  }
  const auto ask = name == NewName::replaces ? Ask::for_opening : Ask::for_attributes;
  LCCFS_TRY(const auto current, or_none(holders_.read_current(view.ino, ask)));
  if (!current || !current->holder_is_expired) return {};
  clean_up_after(open_files_.use(view.ino), *current->lease);
  return failure(ErrorCode::io, format::inode_object(view.ino) +
                                    ": the client that wrote it is gone, perhaps before it has stored all");
}

void Files::attributes_changed(const Inode& view) {
  const auto node = open_files_.existing(view.ino);
  if (!node) return;
  {
    const Lock lock(node->mutex);
    node->learn_attr(view);
  }
  announcements_.changed(*node);
}

std::optional<bool> Files::has_capability(Ino ino) const {
  const auto node = open_files_.existing(ino);
  if (!node) return std::nullopt;
  const Lock lock(node->mutex);
  const auto age = instance_.clock().elapsed() - node->attr_sent;
  if (node->handles == 0 || node->view.ino != ino || age > options_.attributes_ttl) return std::nullopt;
  return (node->view.attr.flags & format::attr_flag::capability) != 0;
}

void Files::born(const Inode& view) { open_files_.use(view.ino)->born(view); }

void Files::unborn(Ino ino) { open_files_.use(ino)->unborn(); }

// ---- what is done without a request

void Files::count(MountCounts& counts) const {
  open_files_.count(counts);
  counts.leases_recalled = recalls_.begun();
  counts.dirty_bytes = room_->used_bytes();
  counts.locks_waiting = locks_.waiting();
}

void Files::tick() {
  const auto now = instance_.clock().elapsed();
  look_at_space();
  locks_.tick();
  idle_leases_.stop_waiting();
  idle_leases_.begin_count();
  instance_.unstored().end_unused([this](Ino ino) { return open_files_.existing(ino) != nullptr; });
  for (auto& node : open_files_.use_all()) {
    opener_keys_.see_to(node);
    if (node->is_changed_under_lock && !node->locks.is_held()) {
      node->is_changed_under_lock = false;
      changed_elsewhere(node->ino);
    }
    if (!idle_leases_.see_to(node)) begin_to_store(std::move(node), now - store_dirty_after);
  }
}

/// If it is dirty since then.
void Files::begin_to_store(OpenFiles::Use node, std::chrono::nanoseconds since) {
  bool due = false, begin = false;
  {
    const Lock lock(node->mutex);
    due = node->dirty_since && *node->dirty_since <= since;
    begin = due && !std::exchange(node->store_is_posted, true);
  }
  // Also while an earlier store waits for an object that does not answer.
  if (due) node->buffer->begin_write_out();
  if (!begin) return;
  tasks_.post([this, node = std::move(node)] {
    auto stored = node->store_dirty(true);
    if (!stored) log::failed(log::Level::error, format::inode_object(node->ino) + ": storing it", stored.error());
    announcements_.changed(*node);  // some may have failed to be stored when it was written
    const Lock lock(node->mutex);
    if (!stored && node->dirty_since) node->dirty_since = instance_.clock().elapsed();
    node->store_is_posted = false;
  });
}

void Files::store_meanwhile() {
  idle_leases_.stop_waiting();
  for (auto& node : open_files_.use_all()) {
    if (!instance_.unstored().is_unsent(node->ino)) {
      begin_to_store(std::move(node), instance_.clock().elapsed());
      continue;
    }
    node->buffer->begin_write_out();  // its inode comes with the batch of its name
  }
}

/// Removes, in the background, what an expired holder wrote past the end. It does not wait for the next writer.
void Files::clean_up_after(OpenFiles::Use node, InstanceId holder) {
  tasks_.post([this, node = std::move(node), holder] {
    Result<> done;
    {
      const AloneInGate alone(node->gate);
      done = node->take_over_from(holder);
    }
    // The dead client may not have told of its last change; with the lease goes what is known of the openers.
    if (done) announcements_.changed(*node);
    if (done) done = release_or_store(*node, 0, Dirty::may_stay);
    if (!done) {
      log::failed(log::Level::warning, format::inode_object(node->ino) + ": cleaning up after its writer",
                  done.error());
    }
  });
}

void Files::look_at_space() {
  if (room_->is_used() || options_.names_behind) space_looks_.tick();
}

Result<> Files::release_everything() { return idle_leases_.release_all(); }

}  // namespace lccfs
