// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/identity.h"

#include <cerrno>
#include <charconv>
#include <sstream>

#include "store/rados/errors.h"

namespace lccfs::rados {
namespace {

/// The blocklist has no "for ever". Nobody's request stays on its way for ten years.
constexpr std::uint32_t blocklist_seconds = 10U * 365 * 24 * 3600;

/// "a:0/1", or "[v2:a:0/1,v1:a:0/1]" (an IPv6 address has brackets of its own, behind its type).
std::vector<std::string> split_addresses(std::string text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<std::string> addresses;
  std::istringstream list(text);
  for (std::string address; std::getline(list, address, ',');) addresses.push_back(address);
  return addresses;
}

/// For a shell: the addresses are what somebody wrote into the volume.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string commands_for(const std::vector<std::string>& addresses) {
  std::string commands;
  for (const std::string& address : addresses) {
    if (!commands.empty()) commands += " && ";
    commands += "ceph osd blocklist add " + quoted(address) + " " + std::to_string(blocklist_seconds);
  }
  return commands;
}

}  // namespace

Identity identity_of(librados::Rados& cluster) {
  return Identity{cluster.get_instance_id(), split_addresses(cluster.get_addrs())};
}

Bytes encode_identity(const Identity& identity) {
  Bytes bytes = std::to_string(identity.instance_id);
  for (const std::string& address : identity.addresses) bytes += " " + address;
  return bytes;
}

Result<Identity> parse_identity(const Bytes& bytes) {
  std::istringstream words(bytes);
  Identity identity;
  if (!(words >> identity.instance_id)) return failure(ErrorCode::corrupt, "not the identity of a RADOS client");
  for (std::string address; words >> address;) identity.addresses.push_back(address);
  if (identity.addresses.empty()) return failure(ErrorCode::corrupt, "identity of a RADOS client without an address");
  return identity;
}

Result<> fence(Connection& connection, const Bytes& identity) {
  LCCFS_TRY(const Identity client, parse_identity(identity));
  for (const std::string& address : client.addresses) {
    const int status = connection.cluster().blocklist_add(address, blocklist_seconds);
    if (status == -EACCES || status == -EPERM)
      return failure(ErrorCode::permission_denied,
                     "our key may not; somebody who may should run: " + commands_for(client.addresses));
    if (status < 0) return std::unexpected(to_error(status, "fence of " + address, Effect::writes));
  }
  return sync_fences(connection);
}

Result<> sync_fences(Connection& connection) {
  const int status = connection.cluster().wait_for_latest_osdmap();
  if (status < 0) return std::unexpected(to_error(status, "wait for the latest OSD map", Effect::reads));
  return {};
}

}  // namespace lccfs::rados
