// SPDX-License-Identifier: LGPL-2.1-or-later
// What identifies a RADOS client.
#include "store/rados/identity.h"

#include "support/catch.h"

namespace lccfs::rados {
namespace {

Identity at(std::vector<std::string> addresses) { return {4711, std::move(addresses)}; }

TEST_CASE("a client has the addresses that librados says, one or several") {
  CHECK(identity_of(4711, "10.0.0.1:0/4711").addresses == at({"10.0.0.1:0/4711"}).addresses);
  CHECK(identity_of(4711, "[v2:10.0.0.1:0/4711,v1:10.0.0.1:0/4711]").addresses ==
        at({"v2:10.0.0.1:0/4711", "v1:10.0.0.1:0/4711"}).addresses);
}

TEST_CASE("a client may be of this host if its IP addresses are ours") {
  const auto ours = at({"v1:10.0.0.1:0/4711"});
  CHECK(has_our_ip_address(ours, at({"v1:10.0.0.1:0/12345"})));
  CHECK(has_our_ip_address(ours, at({"10.0.0.1:6789/12345"})));
  CHECK_FALSE(has_our_ip_address(ours, at({"v1:10.0.0.11:0/4711"})));
  CHECK_FALSE(has_our_ip_address(ours, at({"v1:10.0.0.1:0/4712", "v1:10.0.0.2:0/4712"})));
  const auto six = at({"v2:[fd00::1]:0/4711", "v1:[fd00::1]:0/4711"});
  CHECK(has_our_ip_address(six, at({"v2:[fd00::1]:0/12345"})));
  CHECK_FALSE(has_our_ip_address(six, at({"v2:[fd00::2]:0/12345"})));
}

/// What is drawn when a client connects, one after the other; more is an error.
Result<Identity> first_of(std::vector<std::string> nonces) {
  return first_that_can_be_fenced([&nonces]() -> Result<Identity> {
    if (nonces.empty()) return failure(ErrorCode::timed_out, "no monitor answered");
    const auto nonce = nonces.front();
    nonces.erase(nonces.begin());
    return at({"v1:10.0.0.1:0/" + nonce});
  });
}

TEST_CASE("a client that others could not fence, for its nonce is short, connects anew") {
  CHECK(first_of({"1000", "4711"})->addresses == at({"v1:10.0.0.1:0/1000"}).addresses);
  CHECK(first_of({"999", "0", "4711", "4712"})->addresses == at({"v1:10.0.0.1:0/4711"}).addresses);
  const auto lost = first_of({"999"});
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::timed_out);
}

TEST_CASE("a client that others could not fence, however often it connects, is told so in one line") {
  const auto refused = first_of(std::vector<std::string>(100, "7"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(refused.error().context ==
        "others could not fence this client if it died: identity of a RADOS client with an address that is none: "
        "v1:10.0.0.1:0/7");
}

}  // namespace
}  // namespace lccfs::rados
