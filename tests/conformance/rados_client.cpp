// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/rados_client.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <rados/librados.hpp>
#include <sstream>

#include "conformance/temporary_file.h"
#include "store/rados/capabilities.h"
#include "support/catch.h"

namespace lccfs::conformance {
namespace {

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string in_json(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? std::string("\\\"") : std::string(1, letter);
  return quoted + "\"";
}

struct Key {
  Key(const std::string& client, const std::string& mon, const std::string& osd)
      : keyring(ask_monitors(R"({"prefix": "auth get-or-create", "entity": )" + in_json("client." + client) +
                             R"(, "caps": ["mon", )" + in_json(mon) + R"(, "osd", )" + in_json(osd) + "]}")),
        conf(text_of(std::getenv("LCCFS_TEST_CONF")) + "\n[client." + client + "]\nkeyring = " + keyring.path() +
             "\n") {}
  TemporaryFile keyring, conf;
};

}  // namespace

std::string ask_monitors(const std::string& command) {
  librados::Rados cluster;
  REQUIRE(cluster.init("admin") == 0);
  REQUIRE(cluster.conf_read_file(std::getenv("LCCFS_TEST_CONF")) == 0);
  REQUIRE(cluster.connect() == 0);
  librados::bufferlist answer;
  std::string message;
  REQUIRE(cluster.mon_command(command, {}, &answer, &message) == 0);
  return answer.to_str();
}

int command_as(const VolumeAddress& client, const std::string& command) {
  librados::Rados cluster;
  REQUIRE(cluster.init(client.client_id.c_str()) == 0);
  REQUIRE(cluster.conf_read_file(client.conf_file.c_str()) == 0);
  REQUIRE(cluster.connect() == 0);
  librados::bufferlist answer;
  std::string message;
  return cluster.mon_command(command, {}, &answer, &message);
}

VolumeAddress address_of(const std::string& client, const std::string& mon, const std::string& osd) {
  static std::map<std::string, std::unique_ptr<Key>> keys;
  auto& key = keys[client];
  if (!key) key = std::make_unique<Key>(client, mon, osd);
  VolumeAddress address = address_of_admin();
  address.conf_file = key->conf.path();
  address.client_id = client;
  return address;
}

VolumeAddress address_of_tenant() {
  return address_of("tenant", rados::mon_capability, "allow rw namespace=conformance-*");
}

VolumeAddress address_of_admin() {
  VolumeAddress address;
  address.conf_file = std::getenv("LCCFS_TEST_CONF");
  address.pool = std::getenv("LCCFS_TEST_POOL");
  return address;
}

}  // namespace lccfs::conformance
