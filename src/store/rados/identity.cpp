// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/identity.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <sstream>

namespace lccfs::rados {
namespace {

constexpr unsigned most_connects = 5;

/// "a:0/1", or "[v2:a:0/1,v1:a:0/1]" (an IPv6 address has brackets of its own, after its type).
std::vector<std::string> split_addresses(std::string text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<std::string> addresses;
  std::istringstream list(text);
  for (std::string address; std::getline(list, address, ',');) addresses.push_back(address);
  return addresses;
}

bool is_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool leading_zero = text.size() > 1 && text.front() == '0';
  return error == std::errc{} && stop == end && !leading_zero && number >= least && number <= most;
}

bool is_ip_address(std::string_view text) {
  const bool six = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string plain(six ? text.substr(1, text.size() - 2) : text);
  in6_addr parsed{};
  return plain.size() == std::strlen(plain.c_str()) && inet_pton(six ? AF_INET6 : AF_INET, plain.c_str(), &parsed) == 1;
}

/// Of "IP:port/nonce", with or without a protocol.
std::string_view ip_of(std::string_view address) {
  address = without_protocol(address);
  return address.substr(0, address.rfind(':'));
}

/// "IP:port/nonce". What capabilities.h lets a key bar, and nothing else.
bool is_address_of_one_client(std::string_view text) {
  text = without_protocol(text);
  const auto slash = text.rfind('/');
  if (slash == std::string_view::npos) return false;
  const auto colon = text.rfind(':', slash);
  if (colon == std::string_view::npos) return false;
  return is_ip_address(text.substr(0, colon)) && is_number(text.substr(colon + 1, slash - colon - 1), 0, 65'535) &&
         is_number(text.substr(slash + 1), 1000, std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

Identity identity_of(std::uint64_t instance_id, const std::string& addresses) {
  return Identity{instance_id, split_addresses(addresses)};
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
  for (const std::string& address : identity.addresses) {
    if (!is_address_of_one_client(address))
      return failure(ErrorCode::corrupt, "identity of a RADOS client with an address that is none: " + address);
  }
  return identity;
}

Result<Identity> first_that_can_be_fenced(const std::function<Result<Identity>()>& connect) {
  for (unsigned tries = 1;; ++tries) {
    LCCFS_TRY(auto identity, connect());
    const auto as_others_read_it = parse_identity(encode_identity(identity));
    if (as_others_read_it) return identity;
    if (tries == most_connects)
      return failure(ErrorCode::unsupported,
                     "others could not fence this client if it died: " + as_others_read_it.error().context);
  }
}

bool has_our_ip_address(const Identity& ours, const Identity& theirs) {
  return std::ranges::all_of(theirs.addresses, [&ours](const std::string& address) {
    return std::ranges::find(ours.addresses, ip_of(address), &ip_of) != ours.addresses.end();
  });
}

std::string_view without_protocol(std::string_view address) {
  for (const std::string_view protocol : {"v1:", "v2:", "any:"}) {
    if (address.starts_with(protocol)) return address.substr(protocol.size());
  }
  return address;
}

std::string commands_for(const Identity& client) {
  std::string commands;
  for (const std::string& address : client.addresses) {
    if (!commands.empty()) commands += " && ";
    commands += "ceph osd blocklist add '" + address + "' " + std::to_string(blocklist_seconds);
  }
  return commands;
}

}  // namespace lccfs::rados
