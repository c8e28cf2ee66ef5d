// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/progress.h"

#include <vector>

#include "support/catch.h"
#include "support/fake_clock.h"

using namespace std::chrono_literals;

namespace lccfs {
namespace {

TEST_CASE("the progress line has the rate and the time left, where they are known") {
  CHECK(options::progress_line({600, 1200}, 2s) ==
        "[###############...............]  50%, 600 of 1200 objects, 300/s, 2 s left");
  CHECK(options::progress_line({1, 1000}, 10s).ends_with(" 0/s, 2 h 46 min left"));
  CHECK(options::progress_line({100, 1000}, 10s).ends_with(" 10/s, 1 min 30 s left"));
  CHECK(options::progress_line({0, 1200}, 2s) == "[..............................]   0%, 0 of 1200 objects");
  CHECK(options::progress_line({600, 0}, 2s) == "600 objects, 300/s");
  CHECK(options::progress_line({1300, 1200}, 2s) == "1300 objects, 650/s");
}

TEST_CASE("the bar is shown a few times a second, makes room for lines, and starts anew with another run") {
  test::FakeClock clock;
  std::vector<std::string> written;
  options::ProgressBar bar(clock, [&](const std::string& text) { written.push_back(text); });
  bar.clear();
  CHECK(written.empty());
  for (unsigned i = 0; i < 100; ++i) {
    bar.show({i, 100});
    clock.advance(10ms);
  }
  CHECK(written.size() == 5);
  written.clear();
  bar.clear();
  bar.clear();
  CHECK(written == std::vector<std::string>{"\r\x1b[K"});
  clock.advance(9s);
  bar.show({100, 100});
  CHECK(written.back().find(", 10/s") != std::string::npos);
  clock.advance(1s);
  bar.show({1, 100});
  CHECK(written.back().find("/s") == std::string::npos);
}

TEST_CASE("without a terminal there is no bar") {
  test::FakeClock clock;
  options::ProgressBar bar(clock, nullptr);
  bar.show({1, 2});
  bar.clear();
}

}  // namespace
}  // namespace lccfs
