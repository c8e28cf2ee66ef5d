// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/lock_model.h"

#include <algorithm>

namespace lccfs::crash {

namespace {
std::uint64_t end_of(const LockRequest& request) { return std::min(request.last, LockModel::bytes - 1) + 1; }
}  // namespace

std::string text_of(char client, const LockRequest& request) {
  const char* type = request.type == LockType::none ? "-" : request.type == LockType::shared ? "s" : "x";
  const auto owner = client + std::to_string(request.owner);
  if (request.kind == LockKind::flock) return owner + " flock " + type;
  return owner + " " + type + " " + std::to_string(request.first) + ".." + std::to_string(end_of(request) - 1);
}

void LockModel::begins(char client, const LockRequest& request) {
  const std::lock_guard lock(mutex_);
  const Owner owner{client, request.kind, request.owner};
  auto& held = held_[owner];
  before_[owner] = held;
  for (auto byte = request.first; byte < end_of(request); ++byte) held[byte] = std::min(held[byte], request.type);
}

void LockModel::granted(char client, const LockRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto other = request.type == LockType::none ? std::string() : in_the_way(client, request);
  if (!other.empty()) wrong_ += text_of(client, request) + " was granted beside " + other + "\n";
  auto& held = held_[{client, request.kind, request.owner}];
  for (auto byte = request.first; byte < end_of(request); ++byte) held[byte] = request.type;
}

void LockModel::refused(char client, const LockRequest& request) {
  const std::lock_guard lock(mutex_);
  const Owner owner{client, request.kind, request.owner};
  held_[owner] = before_[owner];
}

void LockModel::expires(char client) {
  const std::lock_guard lock(mutex_);
  expired_.insert(client);
}

bool LockModel::is_blocked(char client, const LockRequest& request) const {
  const std::lock_guard lock(mutex_);
  return !in_the_way(client, request).empty();
}

std::string LockModel::in_the_way(char client, const LockRequest& request) const {
  if (expired_.contains(client)) return {};
  for (const auto& [owner, held] : held_) {
    const auto& [its_client, kind, number] = owner;
    const bool is_own = its_client == client && number == request.owner;
    if (is_own || kind != request.kind || expired_.contains(its_client)) continue;
    for (auto byte = request.first; byte < end_of(request); ++byte) {
      const bool is_exclusive = held[byte] == LockType::exclusive || request.type == LockType::exclusive;
      if (held[byte] != LockType::none && is_exclusive) return its_client + std::to_string(number);
    }
  }
  return {};
}

std::vector<LockRequest> LockModel::owners(char client) const {
  const std::lock_guard lock(mutex_);
  std::vector<LockRequest> all;
  for (const auto& [owner, held] : held_) {
    if (std::get<char>(owner) != client) continue;
    LockRequest request;
    request.kind = std::get<LockKind>(owner);
    request.owner = std::get<std::uint64_t>(owner);
    all.push_back(request);
  }
  return all;
}

void LockModel::wrong(const std::string& what) {
  const std::lock_guard lock(mutex_);
  wrong_ += what + "\n";
}

std::string LockModel::all_wrong() const {
  const std::lock_guard lock(mutex_);
  return wrong_;
}

}  // namespace lccfs::crash
