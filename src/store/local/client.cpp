// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/client.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lccfs::local {
namespace {

Result<bool> is_locked(const Descriptor& file, const std::string& id) {
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;  // shared: those that only look never meet each other
  if (errno == EWOULDBLOCK) return true;
  return std::unexpected(system_error("look at the lock of client " + id));
}

}  // namespace

Result<std::shared_ptr<Client>> Client::enter(int clients) {
  LCCFS_TRY(auto client, look_on(clients));
  const std::string& id = client->identity_.id;
  client->lock_ = Descriptor(::openat(clients, id.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!client->lock_ || ::flock(client->lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return std::unexpected(system_error("make the client file " + id));
  LCCFS_CHECK(client->watches_.start(clients, id));
  return client;
}

Result<std::shared_ptr<Client>> Client::look_on(int clients) {
  LCCFS_TRY(auto identity, make_identity());
  return std::shared_ptr<Client>(new Client(clients, std::move(identity)));
}

Client::~Client() {
  watches_.stop();
  ::unlinkat(clients_, (identity_.id + socket_suffix).c_str(), 0);
  ::unlinkat(clients_, identity_.id.c_str(), 0);
}

bool Client::has_its_file() const {
  struct stat status {};
  return ::fstat(lock_.get(), &status) == 0 && status.st_nlink != 0;
}

Step Client::begin_step() {
  const Lock lock(mutex_);
  if (barred_) return {};
  ++steps_;
  return {this, {shared_from_this()}};
}

void EndStep::operator()(Client* of_step) const {
  const Lock lock(of_step->mutex_);
  if (--of_step->steps_ == 0) of_step->all_ended_.notify_all();
}

void Client::bar() {
  {
    const Lock lock(mutex_);
    if (barred_) return;
    barred_ = true;
  }
  watches_.lose_all(fenced_failure().error());
}

void Client::wait_for_steps() {
  Lock lock(mutex_);
  lock.wait(all_ended_, [this]() REQUIRES(mutex_) { return steps_ == 0; });
}

std::unexpected<Error> fenced_failure() { return failure(ErrorCode::fenced, "this client was fenced"); }

Result<bool> is_alive(int clients, const std::string& id) {
  const Descriptor file(::openat(clients, id.c_str(), O_RDONLY | O_CLOEXEC));
  if (file) return is_locked(file, id);
  return errno == ENOENT ? Result<bool>(false) : std::unexpected(system_error("open the client file " + id));
}

Result<> kill_client(int clients, const ClientIdentity& identity) {
  const Descriptor file(::openat(clients, identity.id.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  if (!file) return std::unexpected(system_error("open the client file " + identity.id));
  LCCFS_TRY(bool alive, is_locked(file, identity.id));
  if (!alive) return {};
  LCCFS_TRY(const bool killed, kill_holder(identity.pid, file.get()));
  while (killed && ::flock(file.get(), LOCK_SH) != 0)
    if (errno != EINTR) return std::unexpected(system_error("wait for the end of client " + identity.id));
  LCCFS_TRY(alive, is_locked(file, identity.id));  // else it may have ended by itself
  if (!alive) return {};
  return failure(
      ErrorCode::permission_denied,
      "client " + identity.id + " lives, but process " + std::to_string(identity.pid) +
          " does not hold its lock, or is not to be seen from here (another PID namespace?): end it by hand");
}

Result<std::set<std::string>> living_clients(int clients) {
  LCCFS_TRY(const auto names, names_in(clients, ".", "list the clients"));
  std::set<std::string> living;
  for (const std::string& name : names) {
    if (name.ends_with(socket_suffix)) continue;
    LCCFS_TRY(const bool alive, is_alive(clients, name));
    if (alive) living.insert(name);
  }
  return living;
}

Result<> remove_dead_files(int clients, const std::set<std::string>& living) {
  LCCFS_TRY(const auto names, names_in(clients, ".", "list the clients"));
  for (const std::string& name : names)
    if (!living.contains(name.substr(0, name.find('.')))) ::unlinkat(clients, name.c_str(), 0);
  return {};
}

}  // namespace lccfs::local
