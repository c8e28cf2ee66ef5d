// SPDX-License-Identifier: LGPL-2.1-or-later
// What the monitors' answer says of clients that are barred.
#include "store/rados/identity.h"
#include "support/catch.h"

namespace lccfs::rados {

TEST_CASE("an entry of the blocklist counts only if it stays for long") {
  const std::string list = R"([{"addr":"10.0.0.1:0/12345","until":"2036-11-26T10:00:00.000000+0000"},
                               {"addr":"10.0.0.2:0/12345","until":"2026-11-28T11:00:00.000000+0000"},
                               {"addr":7}, "text"])";
  CHECK(is_barred_beyond(list, "10.0.0.1:0/12345", "2027-11-28"));
  CHECK_FALSE(is_barred_beyond(list, "10.0.0.2:0/12345", "2027-11-28"));
  CHECK_FALSE(is_barred_beyond(list, "10.0.0.1:0/1234", "2027-11-28"));
  CHECK_FALSE(is_barred_beyond(list, "10.0.0.3:0/12345", "2027-11-28"));
  CHECK(is_barred_beyond(list + "[]", "10.0.0.1:0/12345", "2027-11-28"));
  CHECK(is_barred_beyond(R"({"blocklist": )" + list + "}", "10.0.0.1:0/12345", "2027-11-28"));
  CHECK(is_barred_beyond(R"([{"addr": "a", "until": "2036-11-26T10"}][])", "a", "2027-11-28"));
  for (const char* wrong :
       {"", "[", "{}", R"([{"addr":"a","until":7}])", R"([{"addr":"a"},{"until":"2036"}])", R"("a")"}) {
    CHECK_FALSE(is_barred_beyond(wrong, "a", "2027-11-28"));
  }
}

}  // namespace lccfs::rados
