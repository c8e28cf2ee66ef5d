// SPDX-License-Identifier: LGPL-2.1-or-later
// What is said of a ceph.conf and a keyring that cannot be used. No cluster is asked for it.
#include "store/rados/connection.h"

#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "support/temporary_folder.h"

namespace lccfs::rados {
namespace {

namespace fs = std::filesystem;

class Folder : public test::TemporaryFolder {
 public:
  /// Nobody may come here, too.
  Folder() { fs::permissions(path(), fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add); }
  std::string file(const std::string& name, const std::string& text) const {
    std::string file_path = path() + "/" + name;
    std::ofstream(file_path) << text;
    return file_path;
  }
};

std::string error_of(const std::string& conf_file) {
  VolumeAddress address;
  address.conf_file = conf_file;
  address.pool = "vms";
  StoreOptions options;
  options.connect_timeout = std::chrono::seconds(5);
  const auto opened = Connection::open(address, options);
  REQUIRE_FALSE(opened);
  return opened.error().context;
}

/// Root may read everything.
std::string error_of_nobody(const std::string& conf_file) {
  constexpr uid_t nobody = 65534;
  setfsuid(nobody);
  std::string error = error_of(conf_file);
  setfsuid(geteuid());
  return error;
}

}  // namespace

TEST_CASE("a ceph.conf is not there, may not be read, or is no file: the error says which") {
  const Folder folder;
  CHECK(error_of(folder.path() + "/none").ends_with("/none: no such configuration file; name one with -c"));
  CHECK(error_of(folder.path()).ends_with(": cannot be read as a ceph.conf: Is a directory"));
  const std::string secret = folder.file("secret", "[global]\n");
  fs::permissions(secret, fs::perms::none);
  CHECK(error_of_nobody(secret).ends_with("/secret: cannot be read as a ceph.conf: Permission denied"));
}

TEST_CASE("a keyring that may not be read, or is none, is named as what to check") {
  const Folder folder;
  const std::string keyring = folder.file("keyring", "[client.admin\n");
  const std::string conf = folder.file("ceph.conf", "[global]\nmon_host = 127.0.0.1:1\nkeyring = " + keyring + "\n");
  CHECK(error_of(conf).ends_with("; check mon_host there, and the client's keyring"));
  fs::permissions(keyring, fs::perms::none);
  const std::string refused = error_of_nobody(conf);
  CHECK(refused.starts_with("the key of client.admin cannot be read, or the cluster refuses it"));
  CHECK(refused.ends_with(": check its keyring, and --id"));
}

}  // namespace lccfs::rados
