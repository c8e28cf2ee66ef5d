// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/metadata.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/completions.h"
#include "base/expected_errors.h"
#include "fs/attempts.h"
#include "reclaim/traces.h"
#include "txn/attribute_txn.h"

namespace lccfs {

namespace {

// Of a listing with attributes.
constexpr std::size_t most_in_flight = 32;
constexpr std::chrono::seconds patience{1};

constexpr std::uint32_t page_entries = 1024;

Result<std::optional<txn::Entry>> entry_in(const std::map<std::string, Bytes>& keys, const txn::Name& name) {
  const auto found = keys.find(name.key);
  if (found == keys.end()) return std::nullopt;
  LCCFS_TRY(const auto record, objects::decode_part<format::EntryRecord>(format::inode_object(name.directory),
                                                                         "entry " + name.name, found->second));
  return txn::Entry{found->second, record};
}

void count_subdirectories(Inode& directory, std::int64_t count) {
  directory.nsub = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  directory.nsub_raw = encode(format::NumberRecord{directory.nsub});
}

}  // namespace

KeyRange entries_after(const std::string& key) { return {"n/", key, page_entries}; }

std::shared_ptr<const Inode> Metadata::in_memory(Ino ino) { return instance_.fenced() ? nullptr : inodes.get(ino); }

std::shared_ptr<const Inode> Metadata::held_directory(Ino ino) {
  auto view = inodes.get(ino);
  const bool is_held = view && view->directory_lease && leases_.held.is_held(ino, *view->directory_lease);
  return is_held && leases_.may_answer_from_memory() ? view : nullptr;
}

std::optional<Inode> Metadata::unshared(Ino ino) {
  auto view = inodes.unshared(ino);
  return view && leases_.may_answer_from_memory() ? std::move(view) : std::nullopt;
}

Result<Inode> Metadata::remember(const InodeCache::Ticket& ticket, Ino ino, Result<Inode> read) {
  if (read) {
    inodes.put_read(ticket, *read);
  } else {
    inodes.drop(ino);
  }
  return read;
}

Inode Metadata::remember_as_read(const InodeCache::Ticket& ticket, const Inode& as_read) {
  Inode view = as_read;
  view.sent = ticket.sent;
  inodes.put_read(ticket, view);
  return view;
}

/// Nobody is kept from reading by a full store: of what is not stored, memory knows more than that read shows.
Result<InodeCache::Ticket> Metadata::begin_read(Ino ino) {
  auto ticket = inodes.begin(ino);
  const auto stored = leases_.log.store(ino);
  if (!stored && !is_out_of_space(stored.error())) return std::unexpected(stored.error());
  if (!stored) ticket.changes = InodeCache::Ticket::keeps_nothing;
  return ticket;
}

Result<Inode> Metadata::read(Ino ino, const InodeParts& parts) {
  LCCFS_TRY(const auto ticket, begin_read(ino));
  return remember(ticket, ino, read_inode(instance_, ino, parts));
}

/// What is answered after the ticket was taken makes it void.
Metadata::ReadAhead Metadata::read_ahead(Ino ino) {
  const auto ticket = begin_read(ino);
  if (!ticket) {
    auto [answer, done] = promised<Result<Inode>>();
    done(std::unexpected(ticket.error()));
    return {.ino = ino, .ticket = {}, .inode = std::move(answer)};
  }
  auto as_read = as_read_.get(ino);
  if (!as_read) return {.ino = ino, .ticket = *ticket, .inode = lccfs::read_ahead(instance_, ino)};
  auto [version, done] = promised<Result<MetaSnapshot>>();
  instance_.query_async({.object = format::inode_object(ino)}, std::move(done));
  return {.ino = ino, .ticket = *ticket, .as_read = std::move(as_read), .version = std::move(version)};
}

Result<Inode> Metadata::finish(ReadAhead& ahead) {
  if (ahead.as_read) {
    const auto now = ahead.version.get();
    if (now && now->version == ahead.as_read->version) return remember_as_read(ahead.ticket, *ahead.as_read);
    auto read = this->read(ahead.ino);
    if (read) as_read_.put(*read);
    return read;
  }
  auto view = ahead.inode.get();
  if (view) view->sent = ahead.ticket.sent;
  if (view) as_read_.put(*view);
  return remember(ahead.ticket, ahead.ino, std::move(view));
}

void Metadata::read_at_once(Ino ino, std::move_only_function<void(std::optional<Inode>)> done,
                            const std::stop_token& stop) {
  const auto ticket = inodes.begin(ino);
  if (auto as_read = as_read_.get(ino)) {
    auto looked = [this, ticket, as_read, done = std::move(done)](const Result<MetaSnapshot>& now) mutable {
      const bool is_the_same = now && now->version == as_read->version;
      if (now && !is_the_same) as_read_.drop(as_read->ino);
      done(is_the_same ? std::optional(remember_as_read(ticket, *as_read)) : std::nullopt);
    };
    return instance_.reader(stop)({.object = format::inode_object(ino)}, std::move(looked));
  }
  objects::read_inode_async(instance_.reader(stop), ino, {},
                            [this, ticket, done = std::move(done)](Result<Inode> read) mutable {
                              if (!read) return done(std::nullopt);
                              read->sent = ticket.sent;
                              as_read_.put(*read);
                              inodes.put_read(ticket, *read);
                              done(std::move(*read));
                            });
}

/// Their completions may come when nobody waits any more.
std::map<Ino, Inode> Metadata::read_many(const std::vector<Ino>& wanted) {
  struct Reads {
    Mutex mutex;
    std::condition_variable changed;
    std::size_t in_flight GUARDED_BY(mutex) = 0;
    std::vector<std::pair<InodeCache::Ticket, Result<Inode>>> answered GUARDED_BY(mutex);
  };
  auto& clock = instance_.clock();
  const auto give_up_at = clock.elapsed() + patience;
  const auto reads = std::make_shared<Reads>();
  const auto fall_to = [&](std::size_t in_flight) {
    Lock lock(reads->mutex);
    const auto few = [&reads, in_flight]() REQUIRES(reads->mutex) { return reads->in_flight <= in_flight; };
    while (!few() && clock.elapsed() < give_up_at) {
      clock.wait_for(reads->changed, lock, give_up_at - clock.elapsed(), few);
    }
    return few();
  };
  for (const Ino ino : wanted) {
    if (!fall_to(most_in_flight - 1)) break;
    const auto ticket = inodes.begin(ino);
    if (leases_.log.has(ino)) continue;  // it may be long before that is stored
    {
      const Lock lock(reads->mutex);
      ++reads->in_flight;
    }
    objects::read_inode_async(instance_.reader(), ino, {}, [reads, ticket](Result<Inode> read) {
      const Lock lock(reads->mutex);
      --reads->in_flight;
      reads->answered.emplace_back(ticket, std::move(read));
      reads->changed.notify_all();
    });
  }
  fall_to(0);
  std::map<Ino, Inode> found;
  const Lock lock(reads->mutex);
  for (auto& [ticket, read] : std::exchange(reads->answered, {})) {
    if (!read) continue;
    read->sent = ticket.sent;
    inodes.put_read(ticket, *read);
    found.emplace(read->ino, std::move(*read));
  }
  return found;
}

Result<Inode> Metadata::read_existing(Ino ino, const InodeParts& parts) { return or_stale(read(ino, parts)); }

Result<Inode> Metadata::read_directory(Ino ino, const InodeParts& parts) {
  auto view = read_existing(ino, parts);
  if (!view || view->is_directory()) return view;
  return failure(ErrorCode::not_directory, format::inode_object(ino) + " is no directory");
}

Result<std::shared_ptr<const Inode>> Metadata::existing(Ino ino) {
  if (auto held = in_memory(ino)) return held;
  LCCFS_TRY(auto view, read_existing(ino));
  return std::make_shared<const Inode>(std::move(view));
}

Result<bool> Metadata::was_removed(const Inode& view) {
  using Kind = format::StateRecord::Kind;
  if (leases_.held.removed_from(view.ino)) return true;
  if (view.state.kind != Kind::sealed) return !view.live();
  const auto key = format::detached_key(view.ino, view.state.token);
  MetaRead removal{.object = format::inode_object(view.state.parent), .keys = {key}};
  LCCFS_TRY(const auto parent, or_none(instance_.query(std::move(removal))));
  if (parent && parent->keys.contains(key)) return true;
  // A collector removes the key once it has marked the directory.
  LCCFS_TRY(const auto again, or_none(read(view.ino)));
  return !again || !again->live();
}

Result<> Metadata::check_not_removed(const Inode& view) {
  LCCFS_TRY(const bool removed, was_removed(view));
  if (removed) return failure(ErrorCode::stale, format::inode_object(view.ino) + " was removed");
  return {};
}

std::optional<Entries> Metadata::find_held(std::initializer_list<const txn::Name*> wanted) {
  Entries entries;
  entries.fresh = true;
  entries.directory = held_directory((*wanted.begin())->directory);
  if (!entries.directory) return std::nullopt;
  auto known = leases_.held.find(wanted, *entries.directory->directory_lease);
  if (!known) return std::nullopt;
  entries.found = std::move(*known);
  return entries;
}

Result<Metadata::NamesRead> Metadata::read_names(Ino directory, const InodeParts& parts) {
  for (Attempts attempts(instance_);;) {
    LCCFS_CHECK(attempts.next());
    const auto kept_as = leases_.held.begin_read_names(directory);
    LCCFS_TRY(auto view, read_directory(directory, parts));
    const bool is_answer = !leases_.has_answered_more(view) || (instance_.read_only() && !attempts.first());
    if (is_answer) return NamesRead{std::move(view), kept_as};
    LCCFS_CHECK(leases_.make_way(view));
  }
}

std::optional<KeyPage> Metadata::as_answered(const HeldDirectories::Ticket& ticket, const std::string& after,
                                             const KeyPage& keys, std::uint64_t version) {
  const auto last = keys.more && !keys.entries.empty() ? keys.entries.back().first : std::string();
  const auto changed = leases_.held.changed_since(version, ticket.directory, ticket.tenure, after, last);
  if (changed.empty()) return std::nullopt;
  std::map<std::string, Bytes> now(keys.entries.begin(), keys.entries.end());
  for (const auto& [key, entry] : changed) {
    now.erase(key);
    if (entry) now.emplace(key, entry->raw);
  }
  return KeyPage{.entries = {now.begin(), now.end()}, .more = keys.more};
}

/// Damaged keys are left to who reads them.
void Metadata::keep_entries(const HeldDirectories::Ticket& ticket, std::string after, const KeyPage& keys,
                            std::uint64_t version) {
  HeldDirectories::Page page{.after = std::move(after), .last = {}, .version = version, .entries = {}};
  if (keys.more && !keys.entries.empty()) page.last = keys.entries.back().first;
  for (const auto& [key, value] : keys.entries) {
    const auto record = format::decode<format::EntryRecord>(value);
    if (!record) return;
    page.entries.emplace_back(key, txn::Entry{value, *record});
  }
  leases_.held.keep(ticket, page);
}

Result<Entries> Metadata::find(std::initializer_list<const txn::Name*> wanted, Trust trust) {
  const Ino directory = (*wanted.begin())->directory;
  if (trust != Trust::in_nothing) {
    if (auto held = find_held(wanted)) return std::move(*held);
  }
  if (trust == Trust::in_hints && !instance_.fenced()) {
    Entries entries;
    for (const auto* name : wanted) {
      if (auto hint = names.get(*name)) entries.found.push_back(std::move(*hint));
    }
    entries.directory = in_memory(directory);
    if (entries.found.size() == wanted.size()) return entries;
  }
  for (;;) {
    LCCFS_TRY(auto read, find_by_a_read(wanted));
    if (read) return std::move(*read);
  }
}

/// nullopt: it may not show what was stored meanwhile.
Result<std::optional<Entries>> Metadata::find_by_a_read(std::initializer_list<const txn::Name*> wanted) {
  const Ino directory = (*wanted.begin())->directory;
  InodeParts with_names;
  for (const auto* name : wanted) with_names.keys.push_back(name->key);
  // Who asks for one name of a directory that is worth a lease asks for others.
  if (leases_.held.begin_first_page(directory)) with_names.extra_ranges = {entries_after({})};
  LCCFS_TRY(auto read, read_names(directory, with_names));
  auto& [view, kept_as] = read;
  const auto sent = view.sent;
  const bool is_held = kept_as && leases_.held.is_confirmed(*kept_as, view.directory_lease);
  LCCFS_CHECK(check_not_removed(view));
  if (view.nsub_raw.empty()) {
    return failure(ErrorCode::corrupt, format::inode_object(directory) + ": xattr nsub is missing");
  }
  if (is_held && !view.extra_ranges.empty()) {
    keep_entries(*kept_as, {}, std::exchange(view.extra_ranges, {}).front(), view.version);
  }
  Entries entries;
  for (const auto* name : wanted) {
    auto changed = is_held ? leases_.held.changed_since(view.version, *kept_as, name->key) : std::nullopt;
    if (changed) {
      entries.found.push_back(std::move(*changed));
      continue;
    }
    LCCFS_TRY(auto entry, entry_in(view.keys, *name));
    if (kept_as) leases_.held.keep(*kept_as, name->key, entry, view.version);
    if (entry && entry->record.mark) {
      names.drop(*name);
      entries.marked.emplace_back(name, *entry);
      LCCFS_TRY(entry, standing(*name, std::move(*entry)));
    } else {
      names.put(*name, entry, sent);
    }
    entries.found.push_back(std::move(entry));
  }
  if (is_held && !leases_.held.still_knows(*kept_as)) return std::nullopt;
  entries.fresh = true;
  entries.directory = std::make_shared<const Inode>(std::move(view));
  return entries;
}

/// A mark is never set twice, so an entry that is there again with it had it all the time. "Cancelled" alone proves
/// nothing: a settler that stood still may say so after the commit, once the owner has removed its decision.
Result<std::optional<txn::Entry>> Metadata::standing(const txn::Name& name, txn::Entry entry) {
  if (!entry.record.mark) return entry;
  for (Attempts attempts(instance_); entry.record.mark;) {
    LCCFS_CHECK(attempts.next());
    LCCFS_TRY(const auto state, reclaim::state_of_move(instance_.reader(), *entry.record.mark));
    if (state == reclaim::MoveState::committed) return std::nullopt;
    LCCFS_TRY(
        const auto directory,
        objects::find_object(instance_.reader(), {.object = format::inode_object(name.directory), .keys = {name.key}}));
    if (!directory) return std::nullopt;
    LCCFS_TRY(auto again, entry_in(directory->keys, name));
    if (!again || again->raw == entry.raw) return again;
    entry = std::move(*again);
  }
  return entry;
}

bool as_expected(const std::map<std::string, Bytes>& keys, std::span<const ExpectedEntry> expected) {
  return std::ranges::all_of(expected, [&keys](const ExpectedEntry& one) {
    const auto found = keys.find(one.name.key);
    return one.entry ? found != keys.end() && found->second == one.entry->raw : found == keys.end();
  });
}

Result<bool> Metadata::unchanged(std::span<const ExpectedEntry> expected) {
  InodeParts names_again;
  for (const auto& one : expected) names_again.keys.push_back(one.name.key);
  const auto again = read_names(expected.front().name.directory, names_again);
  if (again) return as_expected(again->view.keys, expected);
  if (again.error().code != ErrorCode::stale) return std::unexpected(again.error());
  return false;
}

Result<StepResult> Metadata::run(MetaTxn txn) { return or_stale(instance_.run(std::move(txn))); }

Result<StepResult> Metadata::run_on_directory(MetaTxn txn, std::initializer_list<const txn::Name*> changed) {
  const bool changes_names = changed.size() != 0;
  auto step = or_stale(changes_names ? leases_.run_on_names((*changed.begin())->directory, std::move(txn))
                                     : leases_.run(std::move(txn)));
  const bool is_applied = step && step->decided == Decided::applied;
  for (const auto* name : changed) {
    if (!is_applied) name_in_doubt(*name);
  }
  return step;
}

Result<bool> Metadata::may_change_behind(const Entries& entries) {
  const auto& directory = entries.directory;
  const bool may = leases_.writes_behind() && directory && directory->directory_lease && entries.fresh &&
                   leases_.held.writes_behind(directory->ino);
  if (may) LCCFS_CHECK(leases_.log.wait_for_room(directory->ino));
  return may;
}

/// Memory's directory and the log change together: so they have its changes in one order.
bool Metadata::change_behind(ChangeBehind change) {
  const Ino directory = change.entries.directory->ino;
  if (!leases_.may_answer_from_memory()) return false;
  const auto now = instance_.clock().elapsed();
  const auto tenure = *change.entries.directory->directory_lease;
  bool is_logged = false;
  inodes.change(directory, std::nullopt, [&](Inode& view) {
    NameLog::Record record{std::move(change.step), {}, change.what, std::move(change.kept)};
    for (const auto& name : change.names) record.keys.push_back(name.name.key);
    is_logged = leases_.held.change({directory, tenure, change.names, change.what.removed},
                                    [&] { return leases_.log.add(directory, tenure, std::move(record)); });
    if (!is_logged) return;
    view.mtime = view.ctime = change.time;
    if (change.what.subdirectories == 0) return;
    count_subdirectories(view, static_cast<std::int64_t>(view.nsub) + change.what.subdirectories);
  });
  if (!is_logged) return false;
  for (const auto& name : change.names) names.put(name.name, name.changed, now);
  leases_.log.send_if_many(directory);
  return true;
}

Result<bool> Metadata::change_directory_behind(Ino directory, const EditDirectory& edit,
                                               const std::shared_ptr<const void>& kept) {
  if (!leases_.writes_behind() || !inodes.unshared(directory)) return false;
  LCCFS_CHECK(leases_.log.wait_for_room(directory));
  if (!leases_.may_answer_from_memory()) return false;
  bool is_logged = false;
  inodes.change_unshared(directory, [&](Inode& view, const InodeCache::Home& home) {
    Inode edited = view;
    auto step = edit(edited);
    if (!step) return;
    NameLog::Record record{std::move(*step), {}, {.attributes_in = home.directory}, kept};
    is_logged = leases_.held.change({.directory = directory, .tenure = *view.directory_lease, .while_held = home}, [&] {
      return leases_.log.add(directory, *view.directory_lease, std::move(record));
    });
    if (is_logged) view = std::move(edited);
  });
  return is_logged;
}

bool Metadata::change_ctime_behind(Ino moved, Ino home, TimeSpec time, const std::shared_ptr<const void>& kept) {
  if (!leases_.log.has(moved)) return false;
  bool is_logged = false;
  inodes.change(moved, std::nullopt, [&](Inode& view) {
    if (!view.directory_lease) return;
    const auto tenure = *view.directory_lease;
    const auto ctime = std::max(view.ctime, time);
    NameLog::Record record{txn::set_ctime(moved, ctime), {}, {.attributes_in = home}, kept};
    is_logged = leases_.held.change({.directory = moved, .tenure = tenure},
                                    [&] { return leases_.log.add(moved, tenure, std::move(record)); });
    if (is_logged) view.ctime = ctime;
  });
  return is_logged;
}

void Metadata::name_changed(const txn::Name& name, EntryCache::Hint changed, std::chrono::nanoseconds sent,
                            std::uint64_t version) {
  leases_.held.changed(name, changed, version);
  names.put(name, std::move(changed), sent);
}

void Metadata::name_in_doubt(const txn::Name& name) {
  leases_.held.doubt(name);
  names.drop(name);
}

void Metadata::directory_changed(Ino directory, std::uint64_t version, TimeSpec time,
                                 const std::optional<txn::SubdirectoryCount>& nsub) {
  inodes.change(directory, version, [this, directory, time, &nsub](Inode& view) {
    view.mtime = view.ctime = time;
    if (!nsub) return;
    const auto before = format::decode<format::NumberRecord>(nsub->raw);
    const auto change = static_cast<std::int64_t>(nsub->changed - (before ? before->value : nsub->changed));
    const bool is_ahead = leases_.log.has(directory);  // memory has changes that came after that step
    count_subdirectories(
        view, is_ahead ? static_cast<std::int64_t>(view.nsub) + change : static_cast<std::int64_t>(nsub->changed));
  });
  leases_.was_changed(directory);
}

std::string describe(const txn::Name& name) { return format::inode_object(name.directory) + ": " + name.name; }

Error no_entry(const txn::Name& name) {
  return {ErrorCode::not_found, format::inode_object(name.directory) + ": no entry " + name.name, Outcome::definite};
}

bool certainly_not_applied(const Error& error) {
  const bool can_tell = error.code == ErrorCode::stale || is_out_of_space(error);
  return can_tell && error.outcome == Outcome::definite;
}

}  // namespace lccfs
