// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  new inode | object   | step                                                   | stop here leaves
//  0         | Data.X.0 | bytes of a new file                                    | bytes without an inode: a collector removes
//            |          |                                                        | them, from the range intent
//  1         | Inode.P  | the same for its directory, if that is as new: nothing | P without a name: a collector removes it,
//            |          | names a directory that was never made                  | from the range intent
//  2         | Inode.X  | [create inode] exclusive, as in create.cpp, with what  | X without a name: a collector removes it,
//            |          | was changed of it before it was sent                   | from the range intent
//
//  moved X   | object   | step                                                   | stop here leaves
//  1         | Inode.X  | [set ctime]                                            | an old ctime, which stays
//
// Whether an earlier run of it has made the inode is decided by `attr`, which has the birth token.
#include "instance/unstored_inodes.h"

#include <algorithm>
#include <utility>

#include "base/completions.h"
#include "base/log.h"
#include "format/object_names.h"
#include "format/records.h"
#include "txn/attribute_txn.h"
#include "txn/namespace_txn.h"

namespace lccfs {

namespace {

/// Beyond that, each is sent at once. (Some 100 bytes each.)
constexpr std::size_t most_ctimes = 32'768;
constexpr unsigned looks_before_sent = 5;
/// A second: others' work goes on beside it.
constexpr std::size_t most_sent_at_once = 1024;

/// The directory where it was made.
std::optional<Ino> parent_of(const MetaTxn& create) {
  const auto parent = format::decode<format::BackPointerRecord>(txn::xattr_of(create, format::xattr::parent));
  return parent ? std::optional(parent->parent) : std::nullopt;
}

KeyPage page_of(const std::map<std::string, Bytes>& keys, const KeyRange& range) {
  KeyPage page;
  for (auto at = keys.lower_bound(std::max(range.prefix, range.after)); at != keys.end(); ++at) {
    if (at->first == range.after) continue;
    if (!at->first.starts_with(range.prefix)) break;
    page.more = page.entries.size() == range.limit;
    if (page.more) break;
    page.entries.emplace_back(*at);
  }
  return page;
}

Error name_is_lost(Ino ino) { return {ErrorCode::io, format::inode_object(ino) + ": its name is lost, and so is it"}; }

/// What is read of an object that this step makes. Version 0: the store does not have it.
MetaSnapshot made_by(const MetaTxn& create, const MetaRead& read) {
  MetaSnapshot made;
  std::map<std::string, Bytes> keys;
  for (const auto& change : create.mutations) {
    if (const auto* payload = std::get_if<mutation::SetPayload>(&change)) made.payload = payload->payload;
    if (const auto* set = std::get_if<mutation::SetXattr>(&change)) made.xattrs[set->name] = set->value;
    if (const auto* gone = std::get_if<mutation::RemoveXattr>(&change)) made.xattrs.erase(gone->name);
    if (const auto* set = std::get_if<mutation::SetKey>(&change)) keys[set->key] = set->value;
    if (const auto* gone = std::get_if<mutation::RemoveKey>(&change)) keys.erase(gone->key);
  }
  if (!read.payload) made.payload.clear();
  if (!read.xattrs) made.xattrs.clear();
  for (const auto& range : read.ranges) made.ranges.push_back(page_of(keys, range));
  for (const auto& key : read.keys) {
    if (const auto found = keys.find(key); found != keys.end()) made.keys.insert(*found);
  }
  return made;
}

}  // namespace

UnstoredInodes::~UnstoredInodes() { in_flight_.wait(); }

void UnstoredInodes::add(Ino ino, MetaTxn create) {
  const Lock lock(mutex_);
  unstored_.emplace(ino, Unstored{std::move(create)});
  ++size_;
}

bool UnstoredInodes::edit(Ino ino, const std::function<bool(MetaTxn&)>& edit) {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  auto* its = made_in(unstored_, ino);
  return its != nullptr && !its->was_sent && edit(its->step);
}

bool UnstoredInodes::forget(Ino ino) {
  bool left_nothing = false, has_bytes = false, is_needed = false;
  {
    const Lock lock(mutex_);
    auto* its = made_in(unstored_, ino);
    if (its == nullptr) return false;
    is_needed = its->is_needed && !its->has_failed;
    if (!is_needed) its->is_forgotten = true;
    if (its->is_in_flight) return false;  // it is lost if that fails
    if (!is_needed) {
      left_nothing = leaves_nothing(*its);
      has_bytes = its->has_bytes;
      if (std::exchange(its->has_failed, false)) --failed_;
      its->is_lost = true;
    }
  }
  if (is_needed) when_stored(ino, [](const Stored&) {});  // nobody else would send it any more
  if (has_bytes) remove_first_bytes(ino);
  return left_nothing;
}

void UnstoredInodes::remove_first_bytes(Ino ino) {
  store_->remove_data(format::data_object(ino, ObjectIndex{0}), [](const Result<>&) {});
}

bool UnstoredInodes::lose(Ino ino) {
  const Lock lock(mutex_);
  auto* its = made_in(unstored_, ino);
  if (its == nullptr) return false;
  its->is_lost = true;
  if (std::exchange(its->has_failed, false)) --failed_;
  return leaves_nothing(*its);
}

void UnstoredInodes::end_unused(const std::function<bool(Ino)>& is_used) {
  if (size_ == 0) return;
  std::vector<Ino> unused;
  {
    const Lock lock(mutex_);
    for (const auto& [ino, its] : unstored_) {
      if (is_over(its) || leaves_lost_bytes(its)) unused.push_back(ino);
    }
  }
  std::erase_if(unused, is_used);
  remove_lost_bytes(unused);
  end_forgotten(unused);
}

void UnstoredInodes::end_forgotten(std::span<const Ino> unused) {
  const Lock lock(mutex_);
  for (const Ino ino : unused) {
    const auto found = unstored_.find(ino);
    if (found != unstored_.end() && is_over(found->second)) erase(found);
  }
}

/// Nobody opens what is lost. Where the inode may be there, its bytes go with it.
void UnstoredInodes::remove_lost_bytes(std::span<const Ino> unused) {
  std::vector<Ino> left;
  {
    const Lock lock(mutex_);
    for (const Ino ino : unused) {
      auto* its = made_in(unstored_, ino);
      if (its == nullptr || !leaves_lost_bytes(*its)) continue;
      its->has_bytes = false;
      left.push_back(ino);
    }
  }
  for (const Ino ino : left) remove_first_bytes(ino);
}

void UnstoredInodes::erase(Inodes::iterator at) {
  unstored_.erase(at);
  --size_;
}

bool UnstoredInodes::need(Ino ino) {
  if (size_ == 0) return true;
  const Lock lock(mutex_);
  auto* its = made_in(unstored_, ino);
  if (its == nullptr) return true;
  its->is_needed = true;
  return !its->is_lost;
}

bool UnstoredInodes::is_unsent(Ino ino) const {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && !its->was_sent && !its->is_lost;
}

bool UnstoredInodes::is_untouched(Ino ino) const {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && leaves_nothing(*its) && !its->is_lost && !its->is_needed;
}

bool UnstoredInodes::is_refused(Ino ino) const {
  if (!is_failing()) return false;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && was_refused(*its);
}

bool UnstoredInodes::is_unstored(Ino ino) const {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  if (its == nullptr) return false;
  return !its->is_in_flight && !its->is_lost && (its->has_failed || (!its->has_bytes && !its->is_needed));
}

// ---- ctimes

bool UnstoredInodes::add_ctime(Ino ino, Ino directory, TimeSpec ctime) {
  const Lock lock(mutex_);
  if (unstored_.contains(ino)) return false;
  const auto found = ctimes_.find(ino);
  if (found == ctimes_.end() && ctimes_.size() >= most_ctimes) return false;
  if (found == ctimes_.end()) ++size_;
  auto& kept = ctimes_[ino];  // however often it is moved, the first waits no longer
  kept.directory = directory;
  kept.ctime = ctime;
  return true;
}

void UnstoredInodes::forget_ctime(Ino ino) {
  if (size_ == 0) return;
  const Lock lock(mutex_);
  if (ctimes_.erase(ino) != 0) --size_;
}

std::vector<Ino> UnstoredInodes::old_ctimes() {
  std::vector<Ino> old;
  if (size_ == 0) return old;
  const Lock lock(mutex_);
  for (auto& [ino, kept] : ctimes_) {
    if (++kept.looks > looks_before_sent && old.size() < most_sent_at_once) old.push_back(ino);
  }
  return old;
}

std::vector<Ino> UnstoredInodes::ctimes_of(std::optional<Ino> directory) const {
  std::vector<Ino> inodes;
  if (size_ == 0) return inodes;
  const auto is_wanted = [&directory](const auto& kept) { return !directory || kept.directory == *directory; };
  const Lock lock(mutex_);
  for (const auto& [ino, kept] : ctimes_) {
    if (is_wanted(kept)) inodes.push_back(ino);
  }
  for (const auto& [ino, kept] : unstored_) {
    if (!kept.creates && is_wanted(kept)) inodes.push_back(ino);
  }
  return inodes;
}

// ---- storing them

UnstoredInodes::Inodes::iterator UnstoredInodes::begin_to_store(Ino ino) {
  const auto kept = ctimes_.extract(ino);
  if (kept.empty()) return unstored_.find(ino);
  const auto& [directory, ctime, looks] = kept.mapped();
  Unstored changed{.step = txn::set_ctime(ino, ctime), .creates = false, .directory = directory};
  return unstored_.emplace(ino, std::move(changed)).first;
}

void UnstoredInodes::when_stored(Ino ino, StoredDone done) {
  Lock lock(mutex_);
  const auto found = begin_to_store(ino);
  if (found == unstored_.end()) {
    lock.unlock();
    return done(0);
  }
  auto& its = found->second;
  if (its.is_lost) {
    lock.unlock();
    return done(std::unexpected(name_is_lost(ino)));
  }
  its.waiting.push_back(std::move(done));
  if (std::exchange(its.is_in_flight, true)) return;
  in_flight_.enter();
  const auto first = first_to_send(ino);
  lock.unlock();
  if (!first) return;
  if (const auto lost = begin_to_send(*first)) answered(*first, std::unexpected(*lost));
}

/// Of it and its directories, which wait for each other; there may be thousands. nullopt: it is on its way.
std::optional<Ino> UnstoredInodes::first_to_send(Ino ino) {
  for (;;) {
    const auto& its = unstored_.at(ino);
    const auto parent = its.creates ? parent_of(its.step) : std::nullopt;
    const bool is_parent_first = parent && is_to_be_made(*parent);
    if (!is_parent_first) return ino;
    auto& above = unstored_.at(*parent);
    above.below.push_back(ino);
    if (std::exchange(above.is_in_flight, true)) return std::nullopt;
    in_flight_.enter();
    ino = *parent;
  }
}

bool UnstoredInodes::is_to_be_made(Ino ino) const {
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && !its->is_lost;
}

/// A directory that was removed meanwhile, or whose name is lost, is none to wait for: this inode may have left it.
std::optional<Error> UnstoredInodes::parent_answered(Ino ino, Ino parent, const Stored& stored) {
  Lock lock(mutex_);
  const bool goes_on = stored || !is_to_be_made(parent);
  const bool was_sent = unstored_.at(ino).was_sent;
  lock.unlock();
  if (goes_on) return begin_to_send(ino);
  Error error = stored.error();
  if (!was_sent) error.outcome = Outcome::definite;
  return error;
}

/// Whoever lost its name meanwhile was told that nothing was sent.
std::optional<Error> UnstoredInodes::begin_to_send(Ino ino) {
  Lock lock(mutex_);
  auto& its = unstored_.at(ino);
  if (its.is_lost) return name_is_lost(ino);
  its.was_sent = its.is_in_doubt = true;
  MetaTxn step = its.step;
  const bool creates = its.creates;
  lock.unlock();
  creates ? send(ino, std::move(step)) : send_ctime(ino, std::move(step));
  return std::nullopt;
}

void UnstoredInodes::when_stored(std::span<const Ino> inodes, DataDone done) {
  std::vector<Ino> made;
  if (size_ != 0) {
    const Lock lock(mutex_);
    std::ranges::copy_if(inodes, std::back_inserter(made),
                         [this](Ino ino) REQUIRES(mutex_) { return made_in(unstored_, ino) != nullptr; });
  }
  when_all(made, std::move(done));
}

void UnstoredInodes::when_all(std::span<const Ino> inodes, DataDone done) {
  struct All {
    DataDone done;
    std::atomic<std::size_t> left;
    Mutex mutex;
    Result<> result GUARDED_BY(mutex) = {};
  };
  if (inodes.empty()) return done({});
  const auto all = std::make_shared<All>(std::move(done), inodes.size() + 1);
  const auto one_less = [all](const Stored& stored) {
    if (!stored) {
      const Lock lock(all->mutex);
      if (all->result) all->result = std::unexpected(stored.error());
    }
    if (all->left.fetch_sub(1) != 1) return;
    Result<> result;
    {
      const Lock lock(all->mutex);
      result = std::move(all->result);
    }
    all->done(std::move(result));
  };
  for (const Ino ino : inodes) when_stored(ino, one_less);
  one_less(0);
}

Result<std::uint64_t> UnstoredInodes::store(Ino ino) {
  auto [answer, done] = promised<Stored>();
  when_stored(ino, std::move(done));
  return answer.get();
}

void UnstoredInodes::send(Ino ino, MetaTxn create) {
  MetaTxn sent = create;
  store_->apply_async(std::move(sent), [this, ino, create = std::move(create)](Result<Applied> applied) mutable {
    if (applied) return answered(ino, applied->version);
    auto& error = applied.error();
    if (error.code == ErrorCode::fenced) return answered(ino, std::unexpected(std::move(error)));
    if (error.code == ErrorCode::timed_out && error.outcome == Outcome::unknown) return send(ino, std::move(create));
    // It may have been applied by an earlier run whatever this answer says, "no space" included.
    read_back(ino, std::move(create), std::move(error));
  });
}

/// Whatever comes of it, what waits for it goes on.
void UnstoredInodes::send_ctime(Ino ino, MetaTxn step) {
  MetaTxn sent = step;
  store_->apply_async(std::move(sent), [this, ino, step = std::move(step)](const Result<Applied>& applied) mutable {
    const bool is_time_out = !applied && applied.error().code == ErrorCode::timed_out;
    if (is_time_out) return send_ctime(ino, std::move(step));
    if (!applied) log::debug(step.object + ": " + step.step + ": not done: " + applied.error().context);
    answered(ino, applied ? applied->version : 0);
  });
}

void UnstoredInodes::read_back(Ino ino, MetaTxn create, Error error) {
  MetaRead read{.object = create.object, .xattrs = true};
  store_->query_async(std::move(read), [this, ino, create = std::move(create),
                                        error = std::move(error)](Result<MetaSnapshot> there) mutable {
    const bool is_time_out = !there && there.error().code == ErrorCode::timed_out;
    if (is_time_out) return read_back(ino, std::move(create), std::move(error));
    if (!there) {
      const bool is_there_none = there.error().code == ErrorCode::not_found;
      if (!is_there_none || error.code == ErrorCode::exists) error = std::move(there).error();
      error.outcome = is_there_none ? Outcome::definite : Outcome::unknown;
      if (is_there_none) is_not_there(ino);
      return answered(ino, std::unexpected(std::move(error)));
    }
    const auto attr = there->xattrs.find(format::xattr::attr);
    const bool is_this_one = attr != there->xattrs.end() && attr->second == txn::xattr_of(create, format::xattr::attr);
    if (is_this_one) return answered(ino, there->version);
    answered(ino, failure(ErrorCode::corrupt, create.object + ": its number was handed out twice"));
  });
}

void UnstoredInodes::is_not_there(Ino ino) {
  const Lock lock(mutex_);
  unstored_.at(ino).is_in_doubt = false;
}

/// Those that wait for it now. None: it is as it will be.
UnstoredInodes::Waiting UnstoredInodes::next_waiting(Ino ino, const Stored& stored, bool& leaves_bytes) {
  const Lock lock(mutex_);
  const auto found = unstored_.find(ino);
  auto& its = found->second;
  if (!stored && its.is_forgotten) {
    its.is_lost = true;
    leaves_bytes = its.has_bytes;
  }
  const bool is_failing = !stored && !its.is_lost;
  if (std::exchange(its.has_failed, is_failing) != is_failing) is_failing ? ++failed_ : --failed_;
  Waiting waiting{std::exchange(its.waiting, {}), std::exchange(its.below, {})};
  if (!stored) {
    its.is_in_flight = false;
  } else if (waiting.is_empty()) {
    erase(found);
  }
  return waiting;
}

/// With it fails what waits for it, below each other maybe thousands.
void UnstoredInodes::answered(Ino ino, const Stored& stored) {
  std::deque<std::pair<Ino, Error>> failed;
  answer(ino, stored, failed);
  for (; !failed.empty(); failed.pop_front()) {
    const auto& [below, error] = failed.front();
    answer(below, std::unexpected(error), failed);
  }
}

/// Who comes while others are told comes after them: what is done on one object stays in its order. `failed`: those below
/// that are to be answered, too; the end of this object waits for them.
void UnstoredInodes::answer(Ino ino, const Stored& stored, std::deque<std::pair<Ino, Error>>& failed) {
  bool leaves_bytes = false;
  for (;;) {
    auto waiting = next_waiting(ino, stored, leaves_bytes);
    for (auto& done : waiting.done) done(stored);
    for (const Ino below : waiting.below) {
      if (auto error = parent_answered(below, ino, stored)) failed.emplace_back(below, std::move(*error));
    }
    if (!stored || waiting.is_empty()) break;
  }
  if (leaves_bytes) remove_first_bytes(ino);
  in_flight_.leave();
}

// ---- what passes by

std::optional<Ino> UnstoredInodes::unstored_of(std::string_view object) const {
  if (size_ == 0) return std::nullopt;
  const auto name = format::parse_object_name(object);
  if (!name) return std::nullopt;
  const Lock lock(mutex_);
  if (const auto* inode = std::get_if<format::InodeName>(&*name)) {
    const bool is_there = unstored_.contains(inode->ino) || ctimes_.contains(inode->ino);
    return is_there ? std::optional(inode->ino) : std::nullopt;
  }
  const auto* data = std::get_if<format::DataName>(&*name);
  return data != nullptr && made_in(unstored_, data->ino) != nullptr ? std::optional(data->ino) : std::nullopt;
}

template <class T, class Done, class Call>
void UnstoredInodes::after(Ino ino, Done done, Call call) {
  when_stored(ino, [done = std::move(done), call = std::move(call)](const Stored& stored) mutable {
    if (!stored) return done(Result<T>(std::unexpected(stored.error())));
    call(std::move(done));
  });
}

bool UnstoredInodes::was_removed(Ino ino) const {
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && its->is_lost && its->is_forgotten;
}

bool UnstoredInodes::is_lost(Ino ino) const {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && its->is_lost && !its->is_in_flight;
}

void UnstoredInodes::apply_async(MetaTxn txn, ApplyDone done) {
  const auto ino = unstored_of(txn.object);
  if (!ino) return store_->apply_async(std::move(txn), std::move(done));
  if (is_lost(*ino)) {
    return done(failure(ErrorCode::not_found, txn.object + ": its name is lost, and so is it"));
  }
  after<Applied>(*ino, std::move(done), [this, txn = std::move(txn)](ApplyDone to) mutable {
    store_->apply_async(std::move(txn), std::move(to));
  });
}

void UnstoredInodes::query_async(MetaRead read, QueryDone done) {
  const auto ino = unstored_of(read.object);
  if (ino && was_removed(*ino)) return done(failure(ErrorCode::not_found, read.object + " was removed"));
  if (!ino) return store_->query_async(std::move(read), std::move(done));
  when_stored(*ino, [this, ino = *ino, read = std::move(read), done = std::move(done)](const Stored& stored) mutable {
    if (stored) return store_->query_async(std::move(read), std::move(done));
    if (auto refused = as_refused(ino, read, stored.error())) return done(std::move(*refused));
    done(std::unexpected(stored.error()));
  });
}

/// Only where it is certain that the store has nothing, and this client may still answer.
std::optional<MetaSnapshot> UnstoredInodes::as_refused(Ino ino, const MetaRead& read, const Error& why) const {
  if (why.outcome != Outcome::definite || why.code == ErrorCode::fenced) return std::nullopt;
  const Lock lock(mutex_);
  const auto* its = made_in(unstored_, ino);
  return its != nullptr && was_refused(*its) ? std::optional(made_by(its->step, read)) : std::nullopt;
}

/// Once its step is on its way, or has failed, what comes of that is told to the writer.
bool UnstoredInodes::goes_before_inode(Ino ino, std::string_view object) {
  if (object != format::data_object(ino, ObjectIndex{0})) return false;
  const Lock lock(mutex_);
  auto* its = made_in(unstored_, ino);
  if (its == nullptr || its->was_sent || its->is_lost) return false;
  return its->has_bytes = true;
}

void UnstoredInodes::write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) {
  const auto ino = unstored_of(object);
  if (!ino || goes_before_inode(*ino, object))
    return store_->write_data(std::move(object), std::move(pieces), std::move(done));
  after<void>(*ino, std::move(done),
              [this, object = std::move(object), pieces = std::move(pieces)](DataDone to) mutable {
                store_->write_data(std::move(object), std::move(pieces), std::move(to));
              });
}

void UnstoredInodes::copy_data(std::string source, std::string target, DataDone done) {
  const auto ino = unstored_of(target);
  if (!ino) return store_->copy_data(std::move(source), std::move(target), std::move(done));
  after<void>(*ino, std::move(done), [this, source = std::move(source), target](DataDone to) mutable {
    store_->copy_data(std::move(source), std::move(target), std::move(to));
  });
}

}  // namespace lccfs
