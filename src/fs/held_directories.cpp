// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/held_directories.h"

#include <algorithm>
#include <utility>

namespace lccfs {

namespace {
/// Names and directories. A name takes about 200 bytes.
constexpr std::size_t most_known = 300'000;
}  // namespace

bool HeldDirectories::begin(Ino directory, Token tenure) {
  const Lock lock(mutex_);
  const bool is_new = directories_.try_emplace(directory, Directory{.tenure = tenure, .used = ++uses_}).second;
  if (is_new) make_room();
  return is_new;
}

bool HeldDirectories::take_effect(Ino directory, Token tenure, std::uint64_t version) {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.tenure != tenure) return false;
  found->second.state = State::held;
  found->second.since = version;
  return true;
}

void HeldDirectories::born(Ino directory, Token tenure, std::uint64_t version) {
  const Lock lock(mutex_);
  directories_.insert_or_assign(
      directory,
      Directory{.tenure = tenure, .state = State::held, .since = version, .is_known_whole = true, .used = ++uses_});
  make_room();
}

std::optional<Token> HeldDirectories::leave(Ino directory) {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return std::nullopt;
  if (found->second.state == State::is_being_taken) {
    erase(found);
    return std::nullopt;
  }
  names_ -= found->second.names.size();
  found->second.names.clear();
  found->second.state = State::leaving;
  return found->second.tenure;
}

void HeldDirectories::end(Ino directory, Token tenure) {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found != directories_.end() && found->second.tenure == tenure) erase(found);
}

void HeldDirectories::end(Ino directory) {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found != directories_.end()) erase(found);
}

void HeldDirectories::erase(std::unordered_map<Ino, Directory>::iterator directory) {
  names_ -= directory->second.names.size();
  directories_.erase(directory);
}

/// Those that were not used for long are forgotten. Their leases stay, until somebody meets them.
void HeldDirectories::make_room() {
  while (names_ + directories_.size() > most_known) {
    const auto used = [](const auto& one) { return one.second.used; };
    erase(std::ranges::min_element(directories_, {}, used));
  }
}

std::optional<Token> HeldDirectories::tenure_of(Ino directory) const {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.state == State::is_being_taken) return std::nullopt;
  return found->second.tenure;
}

bool HeldDirectories::knows_of(Ino directory, Token tenure) const {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  return found != directories_.end() && found->second.tenure == tenure;
}

// ---- names

HeldDirectories::Directory* HeldDirectories::held(Ino directory) {
  const auto found = directories_.find(directory);
  const bool is_held = found != directories_.end() && found->second.state == State::held;
  return is_held ? &found->second : nullptr;
}

std::optional<HeldDirectories::Ticket> HeldDirectories::begin_read(Ino directory) const {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.state != State::held) return std::nullopt;
  return Ticket{directory, found->second.tenure, found->second.doubts};
}

HeldDirectories::NameKnown& HeldDirectories::at(Directory& directory, const std::string& key) {
  const auto [name, is_new] = directory.names.try_emplace(key);
  if (is_new) ++names_;
  return name->second;
}

void HeldDirectories::put(Directory& directory, const std::string& key, Known known, std::uint64_t version) {
  auto& name = at(directory, key);
  if (name.in_doubt || name.version > version) return;
  name.known = std::move(known);
  name.version = version;
}

void HeldDirectories::doubt(Directory& directory, const std::string& key) {
  at(directory, key).in_doubt = ++directory.doubts;
}

void HeldDirectories::keep(const Ticket& ticket, const txn::Name& name, Known known, std::uint64_t version) {
  const Lock lock(mutex_);
  auto* directory = held(ticket.directory);
  if (directory == nullptr || directory->tenure != ticket.tenure) return;
  if (known && known->record.mark) return doubt(*directory, name.key);
  const auto found = directory->names.find(name.key);
  if (found != directory->names.end() && found->second.in_doubt) {
    if (*found->second.in_doubt > ticket.doubts) return;
    found->second.in_doubt.reset();
    found->second.version = 0;
  }
  put(*directory, name.key, std::move(known), version);
  make_room();
}

void HeldDirectories::keep_range(const Ticket& ticket, const std::string& after, const std::string& last) {
  const Lock lock(mutex_);
  auto* directory = held(ticket.directory);
  if (directory == nullptr || directory->tenure != ticket.tenure || after > directory->known_up_to) return;
  if (last.empty()) directory->is_known_whole = true;
  directory->known_up_to = std::max(directory->known_up_to, last);
}

void HeldDirectories::changed(const txn::Name& name, Known known, std::uint64_t version) {
  const Lock lock(mutex_);
  auto* directory = held(name.directory);
  if (directory == nullptr) return;
  if (version == 0) return doubt(*directory, name.key);
  if (version > directory->since) put(*directory, name.key, std::move(known), version);
  make_room();
}

void HeldDirectories::doubt(const txn::Name& name) {
  const Lock lock(mutex_);
  if (auto* directory = held(name.directory)) doubt(*directory, name.key);
}

std::optional<std::vector<HeldDirectories::Known>> HeldDirectories::find(
    std::initializer_list<const txn::Name*> names) {
  const Lock lock(mutex_);
  auto* directory = held((*names.begin())->directory);
  if (directory == nullptr) return std::nullopt;
  directory->used = ++uses_;
  std::vector<Known> all;
  for (const auto* name : names) {
    const auto found = directory->names.find(name->key);
    if (found != directory->names.end()) {
      if (found->second.in_doubt) return std::nullopt;
      all.push_back(found->second.known);
    } else if (directory->is_known_whole || name->key <= directory->known_up_to) {
      all.emplace_back(std::nullopt);
    } else {
      return std::nullopt;
    }
  }
  return all;
}

}  // namespace lccfs
