// SPDX-License-Identifier: LGPL-2.1-or-later
// Instruments, and the text that Prometheus reads of them.
#include <thread>
#include <vector>

#include "metrics/collector_counts.h"
#include "metrics/directories.h"
#include "metrics/exposition.h"
#include "metrics/in_flight_table.h"
#include "metrics/operations.h"
#include "metrics/rate_limit.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/log_lines.h"

using namespace lccfs;
using namespace lccfs::metrics;
using namespace std::chrono_literals;

namespace {

constexpr std::array<OperationKind, 3> some_kinds = {
    {{"open"}, {"read", OperationKind::Moves::out}, {"wait", OperationKind::Moves::nothing, true}}};
enum SomeKind : std::size_t { open_kind, read_kind, wait_kind };

struct Measured {
  test::FakeClock clock;
  Operations operations{
      clock, {.family = "x", .noun = "operation", .kinds = some_kinds, .slow_after = std::chrono::seconds(2)}};

  Measured() { clock.advance(1h); }
  void run(std::size_t kind, std::chrono::nanoseconds took, metrics::Outcome outcome = metrics::Outcome::done,
           std::uint64_t bytes = 0) {
    const auto running = operations.begin(kind, "inode 7");
    clock.advance(took);
    operations.end(running, outcome, bytes);
  }
  std::string page() const {
    Exposition page;
    operations.write(page);
    return page.text();
  }
  bool says(const std::string& line) const { return page().find("\n" + line + "\n") != std::string::npos; }
};

std::string page_of(const Directories& directories) {
  Exposition page;
  directories.write(page);
  return page.text();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("an exposition has help, type and samples of each family") {
  Exposition page;
  page.family("a_total", Exposition::Type::counter, "What it is.");
  page.sample({{"x", "1"}, {"y", "2"}}, std::uint64_t{18});
  page.family("b_seconds", Exposition::Type::gauge, "Another.");
  page.sample({}, std::chrono::nanoseconds(1'500'000'000));
  CHECK(page.text() ==
        "# HELP a_total What it is.\n# TYPE a_total counter\na_total{x=\"1\",y=\"2\"} 18\n"
        "# HELP b_seconds Another.\n# TYPE b_seconds gauge\nb_seconds 1.5\n");
}

TEST_CASE("a label's value holds any bytes") {
  CHECK(label_value("plain name") == "plain name");
  CHECK(label_value("\"quoted\"") == "\\\"quoted\\\"");
  CHECK(label_value("a\\b") == "a\\\\b");
  CHECK(label_value("two\nlines") == "two\\\\x0alines");
  CHECK(label_value("\xff\xc3\xa9") == "\\\\xff\xc3\xa9");
}

TEST_CASE("a histogram counts in the first bucket whose end is not passed, and all in the last") {
  LatencyHistogram histogram;
  histogram.add(50us);
  histogram.add(51us);
  histogram.add(1h);
  histogram.add(-1ns);  // a clock that steps back
  const auto seen = histogram.snapshot();
  CHECK(seen.up_to[0] == 2);
  CHECK(seen.up_to[1] == 3);
  CHECK(seen.up_to[latency_bounds.size() - 1] == 3);
  CHECK(seen.up_to[latency_bounds.size()] == 4);
  CHECK(seen.total == 1h + 101us);
}

TEST_CASE("counts of many threads are all there") {
  constexpr std::size_t threads = 12, each = 20'000;
  LatencyHistogram histogram;
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < threads; ++i)
      running.emplace_back([&histogram] {
        for (std::size_t n = 0; n < each; ++n) histogram.add(1ms);
      });
  }
  CHECK(histogram.snapshot().up_to.back() == threads * each);
}

TEST_CASE("a rate limit lets some of each second through, and counts the rest") {
  test::FakeClock clock;
  RateLimit limit(clock, 2);
  CHECK(limit.admit() == 0U);
  CHECK(limit.admit() == 0U);
  CHECK_FALSE(limit.admit());
  CHECK_FALSE(limit.admit());
  clock.advance(999ms);
  CHECK_FALSE(limit.admit());
  clock.advance(1ms);
  CHECK(limit.admit() == 3U);
  CHECK(limit.admit() == 0U);
}

TEST_CASE("what is in flight is seen with its subject until it ends") {
  InFlightTable table;
  std::vector<std::string> seen;
  const auto look = [&](std::chrono::nanoseconds before) {
    seen.clear();
    table.look(before, [&seen](const InFlightTable::Seen& one) { seen.push_back(one.subject); });
  };
  const auto first = table.begin(1s, 0, "inode 7");
  const auto second = table.begin(2s, 1, std::string(InFlightTable::longest_subject + 10, 'x'));
  look(1s);
  CHECK(seen == std::vector<std::string>{"inode 7"});
  look(5s);
  CHECK(seen.size() == 2);
  CHECK(table.subject(second) == std::string(InFlightTable::longest_subject, 'x'));
  table.end(first);
  table.end(second);
  look(5s);
  CHECK(seen.empty());
}

TEST_CASE("a place shows nothing of the longer subject that it had before") {
  InFlightTable table;
  for (const std::size_t size : {112U, 104U, 41U, 40U, 39U, 8U, 7U, 1U, 0U}) {
    const auto place = table.begin(1s, 0, std::string(size, 'x'));
    CHECK(table.subject(place) == std::string(size, 'x'));
    table.end(place);
  }
}

TEST_CASE("what finds no place in the table is counted all the same") {
  InFlightTable table;
  std::uint32_t last = 0;
  for (unsigned i = 0; i < 2 * InFlightTable::places && last != InFlightTable::no_place; ++i)
    last = table.begin(1s, 0, "x");
  CHECK(last == InFlightTable::no_place);
  CHECK(table.subject(last).empty());
  table.end(last);
}

TEST_CASE("a place shows no subject of another use, whatever threads do") {
  InFlightTable table;
  std::jthread user([&table](const std::stop_token& stop) {
    for (std::int64_t now = 1; !stop.stop_requested(); ++now) {
      const bool even = now % 2 == 0;
      table.end(table.begin(std::chrono::nanoseconds(now), even ? 2 : 1,
                            std::string(InFlightTable::longest_subject, even ? 'b' : 'a')));
    }
  });
  std::size_t wrong = 0;
  for (int i = 0; i < 300; ++i) {
    table.look(1h, [&wrong](const InFlightTable::Seen& one) {
      if (one.subject != std::string(InFlightTable::longest_subject, one.began.count() % 2 == 0 ? 'b' : 'a')) ++wrong;
    });
  }
  CHECK(wrong == 0);
}

TEST_CASE("operations are counted by kind, with errors, bytes and what is in flight") {
  Measured measured;
  measured.run(open_kind, 1ms);
  measured.run(open_kind, 1ms, metrics::Outcome::refused);
  measured.run(read_kind, 3s, metrics::Outcome::failed);
  measured.run(read_kind, 1ms, metrics::Outcome::done, 4096);
  const auto running = measured.operations.begin(read_kind, "inode 8");
  measured.clock.advance(500ms);
  CHECK(measured.says("x_duration_seconds_count{operation=\"open\"} 2"));
  CHECK(measured.says("x_duration_seconds_bucket{operation=\"read\",le=\"0.001\"} 1"));
  CHECK(measured.says("x_duration_seconds_bucket{operation=\"read\",le=\"+Inf\"} 2"));
  CHECK(measured.says("x_errors_total{operation=\"open\"} 1"));
  CHECK(measured.says("x_failures_total{operation=\"read\"} 1"));
  CHECK(measured.says("x_slow_total{operation=\"read\"} 1"));
  CHECK(measured.says("x_read_bytes_total 4096"));
  CHECK(measured.says("x_in_flight 1"));
  CHECK(measured.says("x_oldest_seconds 0.5"));
  measured.operations.end(running, metrics::Outcome::done);
  CHECK(measured.says("x_in_flight 0"));
  CHECK(measured.says("x_oldest_seconds 0"));
}

TEST_CASE("a slow operation is told once while it hangs, and once when it has ended") {
  const test::LogLines lines;
  Measured measured;
  const auto running = measured.operations.begin(read_kind, "inode 7");
  measured.clock.advance(1s);
  measured.operations.tick();
  CHECK(lines.all().empty());
  measured.clock.advance(2s);
  measured.operations.tick();
  measured.operations.tick();
  measured.clock.advance(1s);
  measured.operations.end(running, metrics::Outcome::done);
  measured.operations.tick();
  CHECK(lines.all() == std::vector<std::string>{"slow operation: read of inode 7 has not ended after 3.0 s",
                                                "slow operation: read of inode 7 took 4.0 s"});
}

TEST_CASE("the line about one that hangs says what it waits for, where that is known") {
  const test::LogLines lines;
  Measured measured;
  const auto known = measured.operations.begin(read_kind, "inode 7");
  measured.clock.advance(1ms);
  const auto unknown = measured.operations.begin(open_kind, "inode 8");
  measured.clock.advance(3s);
  measured.operations.tick([](std::string_view subject) { return subject == "inode 7" ? "the weather" : ""; });
  CHECK(lines.all() ==
        std::vector<std::string>{"slow operation: read of inode 7 has not ended after 3.0 s: the weather",
                                 "slow operation: open of inode 8 has not ended after 3.0 s"});
  measured.operations.end(known, metrics::Outcome::done);
  measured.operations.end(unknown, metrics::Outcome::done);
}

TEST_CASE("the oldest of some is known, and for how long it is under way") {
  Measured measured;
  const auto is_seven = [](std::string_view subject) { return subject == "inode 7"; };
  CHECK(measured.operations.oldest_of(is_seven).empty());
  const auto other = measured.operations.begin(open_kind, "inode 8");
  measured.clock.advance(1s);
  const auto oldest = measured.operations.begin(read_kind, "inode 7");
  measured.clock.advance(1s);
  const auto newer = measured.operations.begin(open_kind, "inode 7");
  measured.clock.advance(500ms);
  CHECK(measured.operations.oldest_of(is_seven) == "read of inode 7 is under way for 1.5 s");
  measured.operations.end(oldest, metrics::Outcome::done);
  CHECK(measured.operations.oldest_of(is_seven) == "open of inode 7 is under way for 500 ms");
  measured.operations.end(newer, metrics::Outcome::done);
  measured.operations.end(other, metrics::Outcome::done);
}

TEST_CASE("what waits for others is never slow") {
  const test::LogLines lines;
  Measured measured;
  const auto running = measured.operations.begin(wait_kind, "inode 7");
  measured.clock.advance(1h);
  measured.operations.tick();
  CHECK(measured.says("x_oldest_seconds 0"));
  measured.operations.end(running, metrics::Outcome::done);
  CHECK(lines.all().empty());
  CHECK(measured.says("x_slow_total{operation=\"wait\"} 0"));
}

TEST_CASE("of many slow operations the log has some a second, and how many it has not") {
  const test::LogLines lines;
  Measured measured;
  std::vector<Operations::Running> running;
  for (int i = 0; i < 30; ++i) running.push_back(measured.operations.begin(open_kind, "inode 7"));
  measured.clock.advance(2s);
  for (const auto& one : running) measured.operations.end(one, metrics::Outcome::done);
  CHECK(lines.all().size() == 5);
  measured.run(open_kind, 5s);
  CHECK(lines.all().back() == "slow operation: open of inode 7 took 5.0 s (and 25 more since the last line)");
  CHECK(measured.says("x_slow_total{operation=\"open\"} 31"));
}

TEST_CASE("directories have at most so many labels, and the others share one") {
  Directories directories;
  std::vector<DirectoryTag> tags;
  for (unsigned i = 0; i < Directories::most_labels + 5; ++i) tags.push_back(directories.add("vm" + std::to_string(i)));
  CHECK(Directories::is_own(tags[Directories::most_labels - 1]));
  CHECK(tags[Directories::most_labels] == other_directories);
  for (const DirectoryTag tag : tags) directories.count(tag, Directories::Work::read, 1ms, 10);
  const std::string page = page_of(directories);
  CHECK(count_of(page, "lccfs_directory_read_bytes_total{") == Directories::most_labels + 2);
  CHECK(count_of(page, "lccfs_directory_read_bytes_total{directory=\"other\"} 50\n") == 1);
  CHECK(count_of(page, "lccfs_directory_read_bytes_total{directory=\"vm0\"} 10\n") == 1);
}

TEST_CASE("what was remembered of a directory that is gone counts among the others") {
  Directories directories;
  const auto old_one = directories.add("old");
  directories.count(old_one, Directories::Work::write, 1ms, 10);
  directories.drop(old_one);
  const auto new_one = directories.add("new");
  CHECK(new_one != old_one);
  directories.count(old_one, Directories::Work::write, 1ms, 3);
  directories.count(new_one, Directories::Work::write, 1ms, 4);
  const std::string page = page_of(directories);
  CHECK(page.find("\"old\"") == std::string::npos);
  CHECK(page.find("lccfs_directory_written_bytes_total{directory=\"new\"} 4\n") != std::string::npos);
  CHECK(page.find("lccfs_directory_written_bytes_total{directory=\"other\"} 3\n") != std::string::npos);
}

TEST_CASE("no two directories have the same label, whatever they are called") {
  Directories directories;
  const auto first = directories.add("vm");
  directories.add("vm");  // made anew elsewhere, before the kernel has forgotten the first
  directories.add("other");
  directories.add("\xff");
  directories.add("\\xff");
  const auto renamed = directories.add("before");
  directories.name(renamed, "after");
  directories.count(first, Directories::Work::read, 1ms, 7);
  const std::string page = page_of(directories);
  for (const char* name : {"/", "other", "vm", "/other", "\\\\xff", "\\\\x5cxff", "after"}) {
    INFO(name);
    CHECK(count_of(page, std::string("lccfs_directory_read_bytes_total{directory=\"") + name + "\"}") == 1);
  }
  CHECK(page.find("before") == std::string::npos);
  CHECK(page.find("lccfs_directory_read_bytes_total{directory=\"other\"} 7\n") != std::string::npos);
}

TEST_CASE("a collector's passes add up, and what they leave is the last one's") {
  CollectorCounts counts;
  counts.removed({.inodes = 1, .data_objects = 1, .bytes = 2});
  counts.removed({.inodes = 1, .data_objects = 2, .bytes = 3});
  counts.passed({.items_left = 4, .silent_clients = 5, .damaged_objects = 6}, 1'000);
  counts.removed({.inodes = 8, .data_objects = 18, .bytes = 28});
  counts.failed();
  counts.removed({.inodes = 2, .data_objects = 2, .bytes = 2});
  counts.passed({.items_left = 7}, 2'000);
  Exposition page;
  counts.write(page);
  for (const char* line : {"passes_total 2", "failures_total 1", "removed_inodes_total 11", "removed_objects_total 22",
                           "removed_bytes_total 33", "backlog_items 7", "silent_clients 0", "damaged_objects 0",
                           "last_pass_timestamp_seconds 2000"}) {
    INFO(line);
    CHECK(page.text().find(std::string("\nlccfs_collector_") + line + "\n") != std::string::npos);
  }
  counts.passed({.silent_clients = 5, .damaged_objects = 6}, 3'000);
  Exposition later;
  counts.write(later);
  CHECK(later.text().find("\nlccfs_collector_silent_clients 5\n") != std::string::npos);
  CHECK(later.text().find("\nlccfs_collector_damaged_objects 6\n") != std::string::npos);
  counts.left_to_another();
  Exposition left;
  counts.write(left);
  for (const char* line : {"passes_total 3", "backlog_items 0", "silent_clients 0", "damaged_objects 0"}) {
    INFO(line);
    CHECK(left.text().find(std::string("\nlccfs_collector_") + line + "\n") != std::string::npos);
  }
  counts.passed({.items_left = 8, .refused = 1}, 4'000);  // failed, and what it leaves is known
  Exposition refused;
  counts.write(refused);
  for (const char* line :
       {"passes_total 3", "failures_total 2", "backlog_items 8", "last_pass_timestamp_seconds 3000"}) {
    INFO(line);
    CHECK(refused.text().find(std::string("\nlccfs_collector_") + line + "\n") != std::string::npos);
  }
}
