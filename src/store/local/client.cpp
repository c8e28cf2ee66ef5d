// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/client.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace lccfs::local {
namespace {

constexpr int enter_attempts = 8;

/// A client's file has this name until it is locked, so that whatever has its final name is alive or dead.
std::string unlocked_name(const std::string& id) { return id + ".new"; }

Result<bool> is_locked(int clients, const std::string& name) {
  const Descriptor file(::openat(clients, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return false;
  if (!file) return std::unexpected(system_error("open the client file " + name));
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;  // shared: those who only look never meet each other
  if (errno == EWOULDBLOCK) return true;
  return std::unexpected(system_error("look at the lock of client " + name));
}

Result<std::vector<std::string>> client_files(int clients) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(
      ::fdopendir(::openat(clients, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ::closedir);
  if (!listing) return std::unexpected(system_error("list the clients"));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with('.') && !name.ends_with(socket_suffix)) names.push_back(name);
  }
  return names;
}

}  // namespace

Result<std::shared_ptr<Client>> Client::enter(int clients) {
  for (int attempt = 1;; ++attempt) {
    LCCFS_TRY(auto identity, make_identity());
    std::shared_ptr<Client> client(new Client(clients, std::move(identity)));
    const auto made = client->make_files();
    if (made) return client;
    const bool taken_for_dead = made.error().code == ErrorCode::not_found;  // before it was locked
    if (!taken_for_dead || attempt == enter_attempts) return std::unexpected(made.error());
  }
}

Result<std::shared_ptr<Client>> Client::look_on(int clients) {
  LCCFS_TRY(auto identity, make_identity());
  return std::shared_ptr<Client>(new Client(clients, std::move(identity)));
}

Result<> Client::make_files() {
  const std::string& id = identity_.id;
  const std::string what = "make the client file " + id;
  lock_ = Descriptor(::openat(clients_, unlocked_name(id).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock_) return std::unexpected(system_error(what));
  if (::flock(lock_.get(), LOCK_EX) != 0) return std::unexpected(system_error(what));
  LCCFS_CHECK(watches_.start(clients_, id));
  if (::renameat(clients_, unlocked_name(id).c_str(), clients_, id.c_str()) != 0)
    return std::unexpected(system_error(what));
  return {};
}

Client::~Client() {
  watches_.stop();
  ::unlinkat(clients_, (identity_.id + socket_suffix).c_str(), 0);
  ::unlinkat(clients_, unlocked_name(identity_.id).c_str(), 0);
  ::unlinkat(clients_, identity_.id.c_str(), 0);
}

bool Client::begin_step() {
  const std::lock_guard lock(mutex_);
  if (barred_) return false;
  ++steps_;
  return true;
}

void Client::end_step() {
  const std::lock_guard lock(mutex_);
  if (--steps_ == 0) all_ended_.notify_all();
}

void Client::bar() {
  {
    const std::lock_guard lock(mutex_);
    if (barred_) return;
    barred_ = true;
  }
  watches_.lose_all(fenced_failure().error());
}

void Client::wait_for_steps() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return steps_ == 0; });
}

std::unexpected<Error> fenced_failure() { return failure(ErrorCode::fenced, "this client was fenced"); }

Result<bool> is_alive(int clients, const std::string& id) { return is_locked(clients, id); }

Result<> kill_client(int clients, const ClientIdentity& identity) {
  const Descriptor file(::openat(clients, identity.id.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  const std::string what = "wait for the end of client " + identity.id;
  if (!file) return std::unexpected(system_error(what));
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK && errno != EINTR) return std::unexpected(system_error(what));
    LCCFS_TRY(const bool signalled, kill_process(identity, file.get()));
    if (!signalled) continue;  // gone since we looked, or not to be seen from here
    while (::flock(file.get(), LOCK_SH) != 0)
      if (errno != EINTR) return std::unexpected(system_error(what));
    return {};
  }
  return failure(ErrorCode::busy, "client " + identity.id + " lives, but its process " + std::to_string(identity.pid) +
                                      " is not to be seen from here (another PID namespace?): end it by hand");
}

Result<bool> is_any_alive(int clients) {
  LCCFS_TRY(const auto names, client_files(clients));
  for (const std::string& name : names) {
    LCCFS_TRY(const bool locked, is_locked(clients, name));
    if (locked) return true;
  }
  return false;
}

Result<> remove_dead_files(int clients) {
  LCCFS_TRY(const auto names, client_files(clients));
  for (const std::string& name : names) {
    LCCFS_TRY(const bool locked, is_locked(clients, name));
    if (locked) continue;
    const std::string id = name.substr(0, name.find('.'));
    // One that is just entering goes on if it was quicker, and enters anew if not.
    if (name == unlocked_name(id) && ::unlinkat(clients, name.c_str(), 0) != 0) continue;
    ::unlinkat(clients, (id + socket_suffix).c_str(), 0);  // before its file: a socket without one would never be found
    ::unlinkat(clients, name.c_str(), 0);
  }
  return {};
}

}  // namespace lccfs::local
