// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/text.h"

#include <random>

#include "support/catch.h"

using namespace lccfs;
using namespace std::string_literals;

TEST_CASE("words of a list have commas between them") {
  std::string list;
  for (const auto* word : {"one", "two", "three"}) add_word(list, word);
  CHECK(list == "one, two, three");
}

TEST_CASE("text of all languages is printed as it is") {
  for (const std::string text : {"", "plain", "a\\b \"c\" 'd'", "Grüße", "日本語", "𝄞 🙂", "\xc2\xa0"})
    CHECK(printable(text) == text);
}

TEST_CASE("what steers a terminal or ends a line is printed by its bytes") {
  CHECK(printable("a\x1b[2Jb") == "a\\x1b[2Jb");
  CHECK(printable("a\nb\rc\td") == "a\\x0ab\\x0dc\\x09d");
  CHECK(printable("a\0b"s) == "a\\x00b");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");             // C1: CSI in one character
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // right to left
  CHECK(printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");  // line separator
}

TEST_CASE("what is no UTF-8 is printed by its bytes, and what is beside it as it is") {
  CHECK(printable("a\xff\xfe"
                  "b") == "a\\xff\\xfeb");
  CHECK(printable("\xc3") == "\\xc3");                             // cut
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");                    // cut
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // '/' in two bytes
  CHECK(printable("\xe0\x80\x9b") == "\\xe0\\x80\\x9b");           // CSI in three
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // past the last character
  CHECK(printable("\xc3(\xc3\xbc)") == "\\xc3(\xc3\xbc)");
}

TEST_CASE("certain bytes alone are escaped on request") {
  CHECK(escaped("a/b\\x2f\n\xff", "/\\") == "a\\x2fb\\x5cx2f\n\xff");
  CHECK(escaped("a\0b"s, {"\0", 1}) == "a\\x00b");
}

TEST_CASE("whatever bytes come in: one line without control characters, and twice is once") {
  std::mt19937 random(1);  // NOLINT: the same bytes in every run
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string text = printable(bytes);
    for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 && c != '\x7f'));
    CHECK(text.find("\xc2\x9b") == std::string::npos);
    CHECK(printable(text) == text);
  }
}
