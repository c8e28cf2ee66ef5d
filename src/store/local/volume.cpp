// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/volume.h"

#include <sys/stat.h>

#include <utility>

#include "base/log.h"
#include "store/local/watch_table.h"

namespace lccfs::local {
namespace {

struct OpenVolumes {
  struct Open {
    std::unique_ptr<Volume> volume;
    std::size_t users = 0;
  };
  Mutex mutex;  // held over opening and closing, so that no directory is ever open twice
  std::map<std::pair<dev_t, ino_t>, Open> by_directory GUARDED_BY(mutex);

  std::shared_ptr<Volume> use(std::pair<dev_t, ino_t> key, Open& open) REQUIRES(mutex) {
    ++open.users;
    return {open.volume.get(), [this, key](Volume*) {
              const Lock lock(mutex);
              const auto found = by_directory.find(key);
              if (--found->second.users == 0) by_directory.erase(found);
            }};
  }
};

OpenVolumes& open_volumes() {
  static OpenVolumes volumes;
  return volumes;
}

}  // namespace

Result<std::shared_ptr<Volume>> Volume::open(const std::string& path, bool create) {
  LCCFS_TRY(auto directory, open_directory(path, create));
  struct stat status {};
  if (::fstat(directory.root.get(), &status) != 0) return std::unexpected(system_error(path));
  const std::pair key{status.st_dev, status.st_ino};
  OpenVolumes& volumes = open_volumes();
  const Lock lock(volumes.mutex);
  if (const auto found = volumes.by_directory.find(key); found != volumes.by_directory.end())
    return volumes.use(key, found->second);
  Descriptor onlooker;
  if (directory.read_only) {
    LCCFS_TRY(onlooker, show_onlooker(directory));
    LCCFS_TRY(const auto living, living_clients(directory.clients.get()));
    if (!living.empty())
      return failure(ErrorCode::busy,
                     path + ": it can only be read here, and is in use: it can be read so while nobody uses it");
  }
  LCCFS_TRY(auto environment,
            Environment::open(directory.metadata_path, {.create = create, .read_only = directory.read_only}));
  std::unique_ptr<Volume> volume(new Volume(std::move(directory), std::move(onlooker), std::move(environment)));
  return volumes.use(key, volumes.by_directory[key] = {std::move(volume), 0});
}

Volume::Volume(Directory directory, Descriptor onlooker, std::unique_ptr<Environment> environment)
    : directory_(std::move(directory)),
      onlooker_(std::move(onlooker)),
      environment_(std::move(environment)),
      committer_(*environment_),
      data_(directory_.data.get()) {}

Result<std::shared_ptr<Client>> Volume::enter() {
  const int files = directory_.clients.get();
  if (read_only()) return Client::look_on(files);
  LCCFS_TRY(const auto transaction, environment_->begin_write());
  LCCFS_CHECK(clear_away(*transaction, {}));
  LCCFS_TRY(auto client, Client::enter(files));
  LCCFS_CHECK(expect_no_onlooker(directory_));
  LCCFS_CHECK(transaction->commit());
  const Lock lock(mutex_);
  clients_.emplace(client->identity().id, client);
  return client;
}

/// What dead clients have left, and the watches of one that has ended or is fenced.
Result<> Volume::clear_away(WriteTransaction& transaction, const std::string& ended_client) {
  LCCFS_TRY(auto living, living_clients(directory_.clients.get()));
  LCCFS_CHECK(remove_dead_files(directory_.clients.get(), living));
  living.erase(ended_client);
  return remove_watches_but(transaction, living);
}

Result<> Volume::clear_away(const std::string& ended_client) {
  LCCFS_TRY(const auto transaction, environment_->begin_write());
  LCCFS_CHECK(clear_away(*transaction, ended_client));
  return transaction->commit();
}

void Volume::leave(const Client& client) {
  if (read_only()) return;
  const std::string& id = client.identity().id;
  // Watches that stay are cleared away by the next client that enters.
  if (const auto left = clear_away(id); !left) log::warning("leave the volume: " + left.error().context);
  const Lock lock(mutex_);
  clients_.erase(id);
}

std::shared_ptr<Client> Volume::sibling(const std::string& id) {
  const Lock lock(mutex_);
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second;
}

Result<> Volume::fence(const ClientIdentity& identity) {
  if (const auto client = sibling(identity.id)) {
    client->bar();
    client->wait_for_steps();
  } else {
    // First the kill: a client that is stopped in a commit holds the lock that the table below needs.
    LCCFS_CHECK(kill_client(directory_.clients.get(), identity));
    environment_->drop_dead_readers();
  }
  return clear_away(identity.id);
}

}  // namespace lccfs::local
