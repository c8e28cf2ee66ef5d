// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/operations.h"

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "base/text.h"

namespace lccfs::metrics {
namespace {

constexpr unsigned most_lines_a_second = 5;

std::string duration_text(std::chrono::nanoseconds duration) {
  if (duration < std::chrono::seconds(1))
    return std::to_string(std::chrono::floor<std::chrono::milliseconds>(duration).count()) + " ms";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

}  // namespace

Operations::Operations(Clock& clock, const About& about)
    : clock_(clock), about_(about), lines_(clock, most_lines_a_second) {}

Operations::Running Operations::begin(std::size_t kind, std::string_view subject) {
  begun_and_ended_.add(0, 1);
  const auto now = clock_.elapsed();
  return {now.count(), in_flight_.begin(now, static_cast<unsigned>(kind), subject), static_cast<std::uint32_t>(kind)};
}

std::chrono::nanoseconds Operations::end(const Running& running, Outcome outcome, std::uint64_t bytes) {
  const auto took = clock_.elapsed() - std::chrono::nanoseconds(running.began_ns);
  Kind& kind = kinds_[running.kind];
  kind.took.add(took);
  if (outcome == Outcome::refused) kind.counts.add(refused, 1);
  if (outcome == Outcome::failed) kind.counts.add(failed, 1);
  if (bytes != 0) kind.counts.add(bytes_moved, bytes);
  begun_and_ended_.add(1, 1);
  const bool is_slow =
      about_.slow_after.count() != 0 && took >= about_.slow_after && !about_.kinds[running.kind].waits_for_others;
  if (is_slow) {
    kind.counts.add(slow, 1);
    tell(running.kind, in_flight_.subject(running.place), "took ", took);
  }
  in_flight_.end(running.place);
  return took;
}

std::string Operations::named(std::size_t kind, std::string_view subject) const {
  return std::string(about_.kinds[kind].name).append(" of ").append(subject.empty() ? "an object not noted" : subject);
}

void Operations::tell(std::size_t kind, std::string_view subject, std::string_view what,
                      std::chrono::nanoseconds so_long, const Reason& reason_of) {
  const auto suppressed = lines_.admit();
  if (!suppressed) return;
  std::string line = "slow " + about_.noun + ": " + named(kind, subject);
  line.append(" ").append(what).append(duration_text(so_long));
  if (const std::string reason = reason_of ? reason_of(subject) : ""; !reason.empty()) line += ": " + reason;
  if (*suppressed != 0) line += " (and " + count_text(*suppressed) + " more since the last line)";
  log::warning(line);
}

void Operations::tick(const Reason& reason_of) {
  if (about_.slow_after.count() == 0) return;
  const auto now = clock_.elapsed();
  std::map<std::uint32_t, std::chrono::nanoseconds> hanging;
  in_flight_.look(now - about_.slow_after, [&](const InFlightTable::Seen& seen) {
    if (seen.kind >= about_.kinds.size() || about_.kinds[seen.kind].waits_for_others) return;
    hanging.emplace(seen.place, seen.began);
    const auto told = told_.find(seen.place);
    if (told != told_.end() && told->second == seen.began) return;
    tell(seen.kind, seen.subject, "has not ended after ", now - seen.began, reason_of);
  });
  told_ = std::move(hanging);
}

std::string Operations::oldest_of(const std::function<bool(std::string_view subject)>& is_meant) const {
  const auto now = clock_.elapsed();
  auto oldest = std::chrono::nanoseconds::max();
  std::string found;
  in_flight_.look(now, [&](const InFlightTable::Seen& seen) {
    if (seen.began >= oldest || seen.kind >= about_.kinds.size() || !is_meant(seen.subject)) return;
    oldest = seen.began;
    found = named(seen.kind, seen.subject);
  });
  return found.empty() ? found : found + " is under way for " + duration_text(now - oldest);
}

std::chrono::nanoseconds Operations::age_of_oldest() const {
  const auto now = clock_.elapsed();
  auto oldest = now;
  in_flight_.look(now, [&](const InFlightTable::Seen& seen) {
    if (seen.kind < about_.kinds.size() && !about_.kinds[seen.kind].waits_for_others)
      oldest = std::min(oldest, seen.began);
  });
  return now - oldest;
}

void Operations::write_counts(Exposition& page, const char* suffix, const char* help, Count which) const {
  page.family(about_.family + suffix, Exposition::Type::counter, help);
  for (std::size_t i = 0; i < about_.kinds.size(); ++i)
    page.sample({{"operation", about_.kinds[i].name}}, kinds_[i].counts.sum(which));
}

void Operations::write_bytes(Exposition& page, const char* suffix, const char* help, OperationKind::Moves moves) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < about_.kinds.size(); ++i) {
    if (about_.kinds[i].moves == moves) sum += kinds_[i].counts.sum(bytes_moved);
  }
  page.family(about_.family + suffix, Exposition::Type::counter, help);
  page.sample({}, sum);
}

void Operations::write(Exposition& page) const {
  page.family(about_.family + "_duration_seconds", Exposition::Type::histogram, "How long each took.");
  for (std::size_t i = 0; i < about_.kinds.size(); ++i)
    page.histogram({{"operation", about_.kinds[i].name}}, kinds_[i].took.snapshot());
  write_counts(page, "_errors_total", "Answered with an error that the caller has caused.", refused);
  write_counts(page, "_failures_total", "Answered with an error that no caller has caused.", failed);
  write_counts(page, "_slow_total", "Took longer than the slow limit.", slow);
  write_bytes(page, "_read_bytes_total", "Bytes read.", OperationKind::Moves::out);
  write_bytes(page, "_written_bytes_total", "Bytes written.", OperationKind::Moves::in);
  const std::uint64_t ended = begun_and_ended_.sum(1);  // before the other: never negative
  page.family(about_.family + "_in_flight", Exposition::Type::gauge, "Under way at this moment.");
  page.sample({}, begun_and_ended_.sum(0) - ended);
  page.family(about_.family + "_oldest_seconds", Exposition::Type::gauge,
              "Age of the oldest that is under way, waits for locks left out.");
  page.sample({}, age_of_oldest());
}

}  // namespace lccfs::metrics
