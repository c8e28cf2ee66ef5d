// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/held_directories.h"

#include <algorithm>

namespace lccfs {

namespace {
/// Beyond, no further ones are taken.
constexpr std::size_t most_directories = 50'000;
constexpr std::size_t most_missing_passed = 64;
}  // namespace

/// The mutex, and after it the call of forget_names_ if that is wanted.
class LCCFS_THREAD_ANNOTATION(scoped_lockable) HeldDirectories::LockAndTell {
 public:
  explicit LockAndTell(HeldDirectories& held) LCCFS_THREAD_ANNOTATION(acquire_capability(held.mutex_))
      LCCFS_THREAD_ANNOTATION(no_thread_safety_analysis)
      : held_(held) {
    held_.mutex_.lock();
  }
  ~LockAndTell() LCCFS_THREAD_ANNOTATION(release_capability()) LCCFS_THREAD_ANNOTATION(no_thread_safety_analysis) {
    const auto directories = std::exchange(held_.names_are_void_, {});
    held_.mutex_.unlock();
    for (const Ino directory : directories) held_.forget_names_(directory);
  }
  LockAndTell(const LockAndTell&) = delete;
  LockAndTell& operator=(const LockAndTell&) = delete;

 private:
  HeldDirectories& held_;
};

// ---- leases

const HeldDirectories::Directory* HeldDirectories::find(Ino directory) const {
  const auto found = directories_.find(directory);
  return found == directories_.end() ? nullptr : &found->second;
}

HeldDirectories::Directory* HeldDirectories::find(Ino directory) {
  const auto found = directories_.find(directory);
  return found == directories_.end() ? nullptr : &found->second;
}

HeldDirectories::Directory& HeldDirectories::add(Ino directory, Token tenure) {
  if (auto* old = find(directory)) erase(*old);
  auto& added = directories_[directory];
  added.tenure = tenure;
  added.used_at = clock_.elapsed();
  added.place = used_.insert(used_.end(), directory);
  return added;
}

void HeldDirectories::erase(Directory& directory) {
  const Ino ino = *directory.place;
  if (!directory.given.empty()) names_are_void_.insert(ino);
  for (const auto& [key, name] : directory.names) used_bytes_ -= bytes_of(key);
  used_.erase(directory.place);
  if (directory.place_to_forget) to_forget_.erase(*directory.place_to_forget);
  directories_.erase(ino);
}

void HeldDirectories::use(Directory& directory) {
  directory.used_at = clock_.elapsed();
  used_.splice(used_.end(), used_, directory.place);
  if (directory.place_to_forget) to_forget_.splice(to_forget_.end(), to_forget_, *directory.place_to_forget);
}

bool HeldDirectories::has_room() const {
  const Lock lock(mutex_);
  return directories_.size() < most_directories;
}

bool HeldDirectories::begin(Ino directory, Token tenure) {
  const Lock lock(mutex_);
  if (directories_.size() >= most_directories || directories_.contains(directory)) return false;
  add(directory, tenure);
  return true;
}

bool HeldDirectories::take_effect(Ino directory, Token tenure, std::uint64_t version) {
  const Lock lock(mutex_);
  auto* found = find(directory);
  if (found == nullptr || found->tenure != tenure) return false;
  found->state = State::held;
  found->since = version;
  return true;
}

void HeldDirectories::may_write_behind(Ino directory, Token tenure) {
  const Lock lock(mutex_);
  if (auto* held = held_in(directory, tenure)) held->writes_behind = true;
}

void HeldDirectories::born(Ino directory, Token tenure, std::uint64_t version) {
  const LockAndTell lock(*this);
  auto& added = add(directory, tenure);
  added.state = State::held;
  added.since = version;
  added.is_known_whole = true;
  added.is_made_here = true;
}

std::optional<Token> HeldDirectories::leave(Ino directory) {
  const LockAndTell lock(*this);
  auto* found = find(directory);
  if (found == nullptr) return std::nullopt;
  if (found->state == State::is_being_taken) {
    erase(*found);
    return std::nullopt;
  }
  empty(*found);
  if (found->state != State::removed) found->state = State::leaving;
  return found->tenure;
}

std::optional<Ino> HeldDirectories::removed_from(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  if (found == nullptr || found->state != State::removed) return std::nullopt;
  return found->removed_from;
}

void HeldDirectories::removal_stored(Ino directory) {
  const Lock lock(mutex_);
  if (auto* found = find(directory)) found->is_removal_stored = true;
}

void HeldDirectories::removal_lost(Ino directory) {
  const Lock lock(mutex_);
  auto* found = find(directory);
  if (found != nullptr && found->state == State::removed) found->state = State::leaving;
}

void HeldDirectories::name_lost(Ino directory, Ino parent) {
  const Lock lock(mutex_);
  auto* found = find(directory);
  if (found == nullptr) return;
  found->state = State::removed;
  found->removed_from = parent;
  found->is_removal_stored = true;
}

bool HeldDirectories::is_removal_stored(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  return found != nullptr && found->is_removal_stored;
}

void HeldDirectories::end(Ino directory, Token tenure) {
  const LockAndTell lock(*this);
  auto* found = find(directory);
  if (found != nullptr && found->tenure == tenure) erase(*found);
}

void HeldDirectories::lost(Ino directory, Token tenure) {
  const LockAndTell lock(*this);
  auto* found = find(directory);
  if (found == nullptr || found->tenure != tenure) return;
  if (found->state != State::removed) return erase(*found);
  for (auto& [key, name] : found->names) name.logged = 0;
  found->logged = 0;
  make_room(*found);
}

bool HeldDirectories::end_unless_logged(Ino directory) {
  const LockAndTell lock(*this);
  auto* found = find(directory);
  if (found == nullptr) return true;
  if (found->logged != 0) return false;
  if (found->state != State::removed) erase(*found);
  return true;
}

std::vector<Ino> HeldDirectories::unused_for(const Unused& time, std::size_t most, std::size_t most_removed) const {
  const Lock lock(mutex_);
  const auto now = clock_.elapsed();
  std::vector<Ino> unused;
  for (const Ino ino : used_) {
    const auto& directory = *find(ino);
    if (most + most_removed == 0 || directory.used_at + time.taken > now) break;
    const bool is_held = directory.state == State::held;
    if (is_held && (directory.logged != 0 || (directory.is_made_here && directory.used_at + time.made_here > now))) {
      continue;
    }
    auto& left = directory.state == State::removed ? most_removed : most;
    if (directory.state == State::is_being_taken || left == 0) continue;
    --left;
    unused.push_back(ino);
  }
  return unused;
}

std::optional<Token> HeldDirectories::tenure_of(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  if (found == nullptr || found->state == State::is_being_taken) return std::nullopt;
  return found->tenure;
}

bool HeldDirectories::knows_of(Ino directory, Token tenure) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  return found != nullptr && found->tenure == tenure;
}

bool HeldDirectories::writes_behind(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  return found != nullptr && found->writes_behind;
}

void HeldDirectories::was_used(Ino directory) {
  const Lock lock(mutex_);
  if (auto* found = find(directory)) use(*found);
}

bool HeldDirectories::is_held(Ino directory, Token tenure) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  return found != nullptr && found->tenure == tenure && found->state == State::held;
}

bool HeldDirectories::begin_first_page(Ino directory) {
  const Lock lock(mutex_);
  auto* found = find(directory);
  if (found == nullptr || found->state != State::held) return false;
  if (found->is_known_whole || !found->known_up_to.empty()) return false;
  return !std::exchange(found->has_begun_first_page, true);
}

// ---- names

/// One that is being released, too: what is not stored yet is known until it is.
HeldDirectories::Directory* HeldDirectories::known_in(Ino directory, Token tenure) {
  auto* found = find(directory);
  return found != nullptr && found->knows_names() && found->tenure == tenure ? found : nullptr;
}

HeldDirectories::Directory* HeldDirectories::held_in(Ino directory, Token tenure) {
  auto* const known = known_in(directory, tenure);
  return known != nullptr && known->state == State::held ? known : nullptr;
}

std::optional<HeldDirectories::Ticket> HeldDirectories::begin_read(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  if (found == nullptr || found->state != State::held) return std::nullopt;
  return Ticket{directory, found->tenure, found->doubts};
}

std::optional<HeldDirectories::Ticket> HeldDirectories::begin_read_names(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  if (found == nullptr || !found->knows_names()) return std::nullopt;
  return Ticket{directory, found->tenure, found->doubts, found->logged != 0};
}

/// What was stored when the read was sent it shows: where that was all, it is none to be done again because memory is
/// short.
bool HeldDirectories::still_knows(const Ticket& ticket) const {
  const Lock lock(mutex_);
  const auto* found = find(ticket.directory);
  if (found == nullptr || found->tenure != ticket.tenure || !found->knows_names()) return false;
  return !ticket.has_unstored || found->read_anew_since <= ticket.doubts;
}

bool HeldDirectories::is_confirmed(const Ticket& ticket, const std::optional<Token>& stored) {
  if (stored == ticket.tenure) return true;
  end(ticket.directory, ticket.tenure);
  return false;
}

/// With the entry's bytes in the store, what the map adds, and what the allocator rounds up: measured, within a tenth.
std::uint64_t HeldDirectories::bytes_of(const std::string& key) {
  constexpr std::uint64_t beside_bytes = 144;
  return sizeof(decltype(Directory::names)::value_type) + beside_bytes + key.size();
}

HeldDirectories::NameKnown& HeldDirectories::at(Directory& directory, const std::string& key) {
  const auto [name, is_new] = directory.names.try_emplace(key);
  if (is_new) used_bytes_ += bytes_of(key);
  return name->second;
}

void HeldDirectories::put(Directory& directory, const std::string& key, Known known, std::uint64_t version) {
  auto& name = at(directory, key);
  if (name.in_doubt || name.logged != 0 || name.version > version) return;
  name.known = std::move(known);
  name.version = version;
}

void HeldDirectories::doubt(Directory& directory, const std::string& key) {
  at(directory, key).in_doubt = ++directory.doubts;
  if (directory.given.erase(key) != 0) names_are_void_.insert(*directory.place);
}

/// Nothing is known of any name there but what is not stored yet; what reads that are under way show is not kept,
/// because of doubts that are forgotten.
void HeldDirectories::empty(Directory& directory) {
  std::erase_if(directory.names, [this](const auto& name) REQUIRES(mutex_) {
    const bool is_stored = name.second.logged == 0;
    if (is_stored) used_bytes_ -= bytes_of(name.first);
    return is_stored;
  });
  directory.is_known_whole = false;
  directory.known_up_to.clear();
  directory.read_anew_since = ++directory.doubts;
  if (directory.place_to_forget) to_forget_.erase(*directory.place_to_forget);
  directory.place_to_forget.reset();
}

/// Its names have changed.
void HeldDirectories::make_room(Directory& changed) {
  const bool has_some = changed.names.size() > changed.logged;
  if (has_some && !changed.place_to_forget) {
    changed.place_to_forget = to_forget_.insert(to_forget_.end(), *changed.place);
  } else if (!has_some && changed.place_to_forget) {
    to_forget_.erase(*changed.place_to_forget);
    changed.place_to_forget.reset();
  }
  while (used_bytes_ > memory_bytes_ && !to_forget_.empty()) empty(directories_.at(to_forget_.front()));
}

void HeldDirectories::keep_one(Directory& directory, const Ticket& ticket, const std::string& key, Known known,
                               std::uint64_t version) {
  if (known && known->record.mark) return doubt(directory, key);
  const auto found = directory.names.find(key);
  if (found != directory.names.end() && found->second.in_doubt) {
    if (*found->second.in_doubt > ticket.doubts) return;
    found->second.in_doubt.reset();
    found->second.version = 0;
  }
  put(directory, key, std::move(known), version);
}

void HeldDirectories::keep(const Ticket& ticket, const std::string& key, Known known, std::uint64_t version) {
  const LockAndTell lock(*this);
  auto* directory = held_in(ticket.directory, ticket.tenure);
  if (directory == nullptr || directory->read_anew_since > ticket.doubts) return;
  keep_one(*directory, ticket, key, std::move(known), version);
  make_room(*directory);
}

void HeldDirectories::keep(const Ticket& ticket, const Page& page) {
  const LockAndTell lock(*this);
  auto* directory = held_in(ticket.directory, ticket.tenure);
  if (directory == nullptr || directory->read_anew_since > ticket.doubts) return;
  use(*directory);
  auto shown = page.entries.begin();
  std::vector<std::string> missing;
  for (auto name = directory->names.upper_bound(page.after); name != directory->names.end(); ++name) {
    if (!page.last.empty() && name->first > page.last) break;
    while (shown != page.entries.end() && shown->first < name->first) ++shown;
    if (shown == page.entries.end() || shown->first != name->first) missing.push_back(name->first);
  }
  for (const auto& key : missing) keep_one(*directory, ticket, key, std::nullopt, page.version);
  for (const auto& [key, entry] : page.entries) keep_one(*directory, ticket, key, entry, page.version);
  if (page.after <= directory->known_up_to) {
    if (page.last.empty()) directory->is_known_whole = true;
    directory->known_up_to = std::max(directory->known_up_to, page.last);
  }
  make_room(*directory);
}

// ---- names that the kernel keeps

/// One that is to leave may come here if the kernel has forgotten the directory meanwhile.
bool HeldDirectories::give(const txn::Name& name, Ino named, Token tenure) {
  const Lock lock(mutex_);
  if (auto* leaving = to_leave(name)) {
    leaving->is_asked_for = true;
    return false;
  }
  return give_if_known(name, named, tenure);
}

bool HeldDirectories::give_listed(const txn::Name& name, Ino named, Token tenure) {
  const Lock lock(mutex_);
  return to_leave(name) == nullptr && give_if_known(name, named, tenure);
}

bool HeldDirectories::give_if_known(const txn::Name& name, Ino named, Token tenure) {
  auto* directory = held_in(name.directory, tenure);
  if (directory == nullptr) return false;
  const auto entry = known(*directory, name);
  if (!entry || !*entry || (*entry)->record.ino != named) return false;
  directory->given.insert_or_assign(name.key, Given{name.name, ++given_});
  return true;
}

std::optional<HeldDirectories::KeptName> HeldDirectories::kept_by_kernel(Ino directory) const {
  const Lock lock(mutex_);
  const auto* found = find(directory);
  if (found == nullptr || found->given.empty()) return std::nullopt;
  const auto& [key, given] = *found->given.begin();
  return KeptName{key, given.name, given.number};
}

void HeldDirectories::expired(Ino directory, const KeptName& kept) {
  const Lock lock(mutex_);
  auto* found = find(directory);
  if (found == nullptr) return;
  const auto given = found->given.find(kept.key);
  if (given != found->given.end() && given->second.number == kept.number) found->given.erase(given);
}

bool HeldDirectories::may_leave(const txn::Name& name) {
  const Lock lock(mutex_);
  auto* found = find(name.directory);
  if (found == nullptr) return true;
  const auto given = found->given.find(name.key);
  if (given == found->given.end()) return true;
  given->second.is_to_leave = true;
  const bool may = given->second.is_asked_for;
  if (may) found->given.erase(given);
  return may;
}

void HeldDirectories::is_asked_for(const txn::Name& name) {
  const Lock lock(mutex_);
  if (auto* leaving = to_leave(name)) leaving->is_asked_for = true;
}

/// nullptr: it is not.
HeldDirectories::Given* HeldDirectories::to_leave(const txn::Name& name) {
  auto* found = find(name.directory);
  if (found == nullptr) return nullptr;
  const auto given = found->given.find(name.key);
  return given != found->given.end() && given->second.is_to_leave ? &given->second : nullptr;
}

/// What is renamed takes its time-out along, also while the directory is being released. More may be here than the kernel
/// keeps.
void HeldDirectories::was_changed(Directory& directory, const txn::Name& name, const Known& known) {
  directory.given.erase(name.key);
  const bool may_be_kept = known && known->record.type == FileType::directory;
  if (may_be_kept) directory.given.insert_or_assign(name.key, Given{name.name, ++given_});
}

// ---- steps on names

void HeldDirectories::hide(std::span<const txn::Name* const> names) {
  const Lock lock(mutex_);
  auto& hidden = hidden_[names.front()->directory];
  for (const auto* name : names) hidden.insert(name->key);
}

void HeldDirectories::show(std::span<const txn::Name* const> names) {
  const Lock lock(mutex_);
  const auto hidden = hidden_.find(names.front()->directory);
  for (const auto* name : names) hidden->second.extract(name->key);
  if (hidden->second.empty()) hidden_.erase(hidden);
}

bool HeldDirectories::is_hidden(const txn::Name& name) const {
  const auto hidden = hidden_.find(name.directory);
  return hidden != hidden_.end() && hidden->second.contains(name.key);
}

void HeldDirectories::pause(Ino directory) {
  const Lock lock(mutex_);
  paused_.insert(directory);
}

void HeldDirectories::resume(Ino directory) {
  const Lock lock(mutex_);
  paused_.extract(directory);
}

bool HeldDirectories::is_empty(Ino ino) const {
  const auto* directory = find(ino);
  if (directory == nullptr || directory->state != State::held || !directory->is_known_whole) return false;
  if (paused_.contains(ino) || hidden_.contains(ino)) return false;
  return std::ranges::none_of(directory->names,
                              [](const auto& name) { return name.second.known || name.second.in_doubt; });
}

bool HeldDirectories::change(const Changes& changes, const std::function<std::optional<std::uint64_t>()>& log) {
  const Lock lock(mutex_);
  auto* directory = held_in(changes.directory, changes.tenure);
  if (directory == nullptr || !directory->writes_behind || paused_.contains(changes.directory)) return false;
  if (changes.removed && !is_empty(*changes.removed)) return false;
  const auto& other = changes.while_held;
  if (other && held_in(other->directory, other->token) == nullptr) return false;
  const auto raw = [](const Known& entry) { return entry ? entry->raw : Bytes(); };
  const bool are_as_expected = std::ranges::all_of(changes.names, [&](const Change& change) REQUIRES(mutex_) {
    const auto now = known(*directory, change.name);
    return now && raw(*now) == raw(change.expected);
  });
  if (!are_as_expected) return false;
  const auto number = log();
  if (!number) return false;
  if (changes.removed) {
    auto& removed = directories_.at(*changes.removed);
    removed.state = State::removed;
    removed.removed_from = changes.directory;
  }
  const bool has_given = !directory->given.empty();
  for (const auto& change : changes.names) {
    if (has_given) was_changed(*directory, change.name, change.changed);
    auto& name = at(*directory, change.name.key);
    name.known = change.changed;
    if (name.logged == 0) ++directory->logged;
    name.logged = *number;
  }
  use(*directory);
  make_room(*directory);
  return true;
}

void HeldDirectories::stored(Ino directory, Token tenure, std::span<const std::string> keys, std::uint64_t up_to,
                             std::uint64_t version) {
  const LockAndTell lock(*this);
  auto* found = find(directory);
  if (found == nullptr || found->tenure != tenure) return;
  for (const auto& key : keys) {
    const auto name = found->names.find(key);
    if (name == found->names.end() || name->second.logged == 0 || name->second.logged > up_to) continue;
    name->second.logged = 0;
    name->second.version = version;
    --found->logged;
    if (version == 0) doubt(*found, key);
  }
  if (version == 0) found->read_anew_since = found->doubts;  // whether a read shows them nobody knows
  make_room(*found);
}

void HeldDirectories::changed(const txn::Name& name, Known known, std::uint64_t version) {
  const LockAndTell lock(*this);
  auto* found = find(name.directory);
  if (found == nullptr) return;
  auto& directory = *found;
  const bool is_certain = version != 0 || directory.state != State::held;  // else it is in doubt: below
  // The other name of a rename comes later: what has gone stays in `given`.
  if (is_certain && known && !directory.given.empty()) was_changed(directory, name, known);
  if (directory.state != State::held) return;
  use(directory);
  const auto known_as = directory.names.find(name.key);
  const bool is_in_doubt = known_as != directory.names.end() && known_as->second.in_doubt;
  if (version == 0 || is_in_doubt) {  // a read that was sent before this counts no more
    doubt(directory, name.key);
  } else if (version > directory.since) {
    put(directory, name.key, std::move(known), version);
  }
  make_room(directory);
}

void HeldDirectories::doubt(const txn::Name& name) {
  const LockAndTell lock(*this);
  auto* found = find(name.directory);
  if (found == nullptr || found->state != State::held) return;
  doubt(*found, name.key);
  make_room(*found);
}

std::optional<HeldDirectories::Listed> HeldDirectories::list(Ino ino, Token tenure, const std::string& after,
                                                             std::size_t most) {
  const Lock lock(mutex_);
  auto* directory = held_in(ino, tenure);
  if (directory == nullptr || !directory->is_known_whole || hidden_.contains(ino)) return std::nullopt;
  use(*directory);
  Listed listed;
  auto name = directory->names.upper_bound(after);
  for (; name != directory->names.end() && listed.entries.size() < most; ++name) {
    if (name->second.in_doubt) return std::nullopt;
    if (name->second.known) listed.entries.emplace_back(name->first, name->second.known->record);
  }
  listed.is_all = name == directory->names.end();
  return listed;
}

HeldDirectories::Names HeldDirectories::names_after(Ino ino, Token tenure, const std::string& after, std::size_t most) {
  const Lock lock(mutex_);
  Names names;
  const auto* directory = held_in(ino, tenure);
  if (directory == nullptr) return names;
  auto looks = most + most_missing_passed;
  for (auto name = directory->names.upper_bound(after); name != directory->names.end() && looks > 0; ++name, --looks) {
    if (names.size() == most) break;
    if (name->second.known && !name->second.in_doubt) names.emplace_back(name->first, name->second.known->record);
  }
  return names;
}

std::optional<std::vector<HeldDirectories::Known>> HeldDirectories::find(std::initializer_list<const txn::Name*> names,
                                                                         Token tenure) {
  const Lock lock(mutex_);
  auto* directory = known_in((*names.begin())->directory, tenure);
  if (directory == nullptr) return std::nullopt;
  if (directory->state == State::held) use(*directory);
  std::vector<Known> all;
  for (const auto* name : names) {
    auto one = known(*directory, *name);
    if (!one) return std::nullopt;
    all.push_back(std::move(*one));
  }
  return all;
}

std::map<std::string, HeldDirectories::Known> HeldDirectories::changed_since(std::uint64_t version, Ino ino,
                                                                             Token tenure, const std::string& after,
                                                                             const std::string& last) {
  const Lock lock(mutex_);
  std::map<std::string, Known> changed;
  const auto* directory = known_in(ino, tenure);
  if (directory == nullptr) return changed;
  for (auto at = directory->names.upper_bound(after); at != directory->names.end(); ++at) {
    const auto& [key, name] = *at;
    if (!last.empty() && key > last) break;
    if (name.is_newer_than(version)) changed.emplace(key, name.known);
  }
  return changed;
}

std::optional<HeldDirectories::Known> HeldDirectories::changed_since(std::uint64_t version, const Ticket& read,
                                                                     const std::string& key) {
  const Lock lock(mutex_);
  const auto* directory = known_in(read.directory, read.tenure);
  if (directory == nullptr) return std::nullopt;
  const auto name = directory->names.find(key);
  const bool is_newer = name != directory->names.end() && name->second.is_newer_than(version);
  return is_newer ? std::optional<Known>(name->second.known) : std::nullopt;
}

/// nullopt: memory cannot say.
std::optional<HeldDirectories::Known> HeldDirectories::known(const Directory& directory, const txn::Name& name) const {
  if (is_hidden(name)) return std::nullopt;
  const auto found = directory.names.find(name.key);
  if (found != directory.names.end()) {
    const bool is_in_doubt = found->second.in_doubt && found->second.logged == 0;  // no step changes what is not stored
    return is_in_doubt ? std::nullopt : std::optional<Known>(found->second.known);
  }
  const bool is_known_missing = directory.is_known_whole || name.key <= directory.known_up_to;
  return is_known_missing ? std::optional<Known>(std::in_place) : std::nullopt;
}

}  // namespace lccfs
