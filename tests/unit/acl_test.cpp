// SPDX-License-Identifier: LGPL-2.1-or-later
// ACLs as values: which bytes are one, and what modes make of them.
#include "fs/acl.h"

#include "support/acls.h"
#include "support/catch.h"
#include "support/hooks.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

const std::string named = "u::rwx,u:7:r-x,u:9:rw-,g::r--,g:4242:-wx,m::rwx,o::--x";

bool is_acl_in_text(const std::string& text) { return decode_acl(encode(acl_of(text))).has_value(); }

}  // namespace

TEST_CASE("an ACL has the bytes that Linux gives it") {
  const std::string bytes(
      "\x02\0\0\0"
      "\x01\0\x06\0\xff\xff\xff\xff"
      "\x02\0\x04\0\x39\x05\x00\x00"
      "\x04\0\x04\0\xff\xff\xff\xff"
      "\x10\0\x04\0\xff\xff\xff\xff"
      "\x20\0\0\0\xff\xff\xff\xff",
      44);
  CHECK(encode(acl_of("u::rw-,u:1337:r--,g::r--,m::r--,o::---")) == bytes);
  CHECK(text_of(need(decode_acl(bytes))) == "u::rw-,u:1337:r--,g::r--,m::r--,o::---");
}

TEST_CASE("an ACL that is decoded and encoded is the same") {
  for (const auto& text : {named, std::string("u::rwx,g::r-x,o::r--"), std::string("u::rwx,g::r-x,m::---,o::r--"),
                           std::string("u::---,u:0:---,u:0:rwx,g::---,m::---,o::---")}) {
    INFO(text);
    CHECK(text_of(need(decode_acl(encode(acl_of(text))))) == text);
  }
}

TEST_CASE("whoever is no named user or group has no number, whatever the bytes say") {
  auto bytes = encode(acl_of("u::rwx,g::r-x,o::r--"));
  bytes[8] = 5;
  CHECK(need(decode_acl(bytes)) == acl_of("u::rwx,g::r-x,o::r--"));
}

TEST_CASE("what Linux takes for no ACL is none") {
  CHECK(is_acl_in_text("u::rwx,g::r-x,o::r--"));
  for (const char* text :
       {"u::rwx,g::r-x", "u::rwx,o::r--", "g::r-x,o::r--", "g::r-x,u::rwx,o::r--", "u::rwx,o::r--,g::r-x",
        "u::rwx,u::rwx,g::r-x,o::r--", "u::rwx,g::r-x,g::r-x,o::r--", "u::rwx,g::r-x,o::r--,o::r--",
        "u::rwx,u:7:rwx,g::r-x,o::r--", "u::rwx,g::r-x,g:7:rwx,o::r--", "u::rwx,g::r-x,m::rwx,m::rwx,o::r--",
        "u::rwx,g::r-x,u:7:rwx,m::rwx,o::r--", "u::rwx,g::r-x,m::rwx,g:7:rwx,o::r--", "u::rwx,g::r-x,o::r--,m::rwx",
        ""}) {
    INFO(text);
    CHECK_FALSE(is_acl_in_text(text));
  }
}

TEST_CASE("any other bytes are refused, and none goes past their end") {
  const auto bytes = encode(acl_of(named));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK(decode_acl(std::string_view(bytes).substr(0, size)).error().code == ErrorCode::invalid);
  }
  CHECK_FALSE(decode_acl(bytes + '\0'));
  const auto changed = [&bytes](std::size_t at, char value) {
    auto copy = bytes;
    copy[at] = value;
    return decode_acl(copy).has_value();
  };
  CHECK_FALSE(changed(0, 1));  // the version
  CHECK_FALSE(changed(3, 1));  // the same
  CHECK_FALSE(changed(4, 3));  // a tag that there is not
  CHECK_FALSE(changed(5, 1));  // the same
  CHECK_FALSE(changed(6, 8));  // a permission that there is not
  CHECK(changed(16, 0x11));    // another user
  auto nobody = bytes;
  for (std::size_t at = 16; at < 20; ++at) nobody[at] = '\xff';
  CHECK_FALSE(decode_acl(nobody));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      auto copy = bytes;
      copy[at] = static_cast<char>(value);
      const auto decoded = decode_acl(copy);
      if (decoded) CHECK(need(decode_acl(encode(*decoded))) == *decoded);
    }
  }
}

TEST_CASE("three entries are no more than a mode, and a mask or a name is") {
  CHECK(is_no_more_than_a_mode(acl_of("u::rwx,g::r-x,o::r--")));
  CHECK_FALSE(is_no_more_than_a_mode(acl_of("u::rwx,g::r-x,m::r-x,o::r--")));
  CHECK_FALSE(is_no_more_than_a_mode(acl_of(named)));
}

TEST_CASE("the mode shows the mask as the group's permissions, and keeps what is no permission") {
  CHECK(mode_with(acl_of("u::rwx,g::r-x,o::--x"), 06022) == 06751);
  CHECK(mode_with(acl_of("u::rw-,g::rwx,m::r--,o::---"), 0777) == 0640);
  CHECK(mode_with(acl_of(named), 01000) == 01771);
}

TEST_CASE("chmod changes owner, mask and others; without a mask the group") {
  CHECK(text_of(with_permissions_of(acl_of(named), 07640)) == "u::rw-,u:7:r-x,u:9:rw-,g::r--,g:4242:-wx,m::r--,o::---");
  CHECK(text_of(with_permissions_of(acl_of("u::---,g::---,o::---"), 0751)) == "u::rwx,g::r-x,o::--x");
  CHECK(mode_with(with_permissions_of(acl_of(named), 0624), 0777) == 0624);
}

TEST_CASE("a new inode gets of the default ACL what was asked for, and no more") {
  CHECK(text_of(inherited(acl_of(named), 0640)) == "u::rw-,u:7:r-x,u:9:rw-,g::r--,g:4242:-wx,m::r--,o::---");
  CHECK(text_of(inherited(acl_of("u::rwx,g::r-x,m::-w-,o::--x"), 0777)) == "u::rwx,g::r-x,m::-w-,o::--x");
  CHECK(text_of(inherited(acl_of("u::r-x,g::rwx,o::rwx"), 0752)) == "u::r-x,g::r-x,o::-w-");
}
