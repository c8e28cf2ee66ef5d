// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/diagnosis.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lccfs::cli {

namespace {

using Verdict = Check::Verdict;

constexpr int status_of_failures = 1;
constexpr int status_of_warnings = 3;
constexpr const char* no_colour = "\x1b[0m";

struct Words {
  const char* word;
  const char* colour;
};
constexpr Words words_of(Verdict verdict) {
  if (verdict == Verdict::ok) return {"ok", "\x1b[32m"};
  return verdict == Verdict::warn ? Words{"warn", "\x1b[33m"} : Words{"FAIL", "\x1b[31m"};
}

std::atomic<bool> end_is_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
void note_end(int) { end_is_wanted = true; }
constexpr int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

void handle_with(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;  // without SA_RESTART: a call that waits returns
  for (const int signal : end_signals) sigaction(signal, &action, nullptr);
}

}  // namespace

Interruption::Interruption() { handle_with(note_end); }
Interruption::~Interruption() { end(); }
void Interruption::end() { handle_with(SIG_DFL); }
bool Interruption::is_wanted() { return end_is_wanted; }

void Diagnosis::add(Check check) {
  checks_.push_back(std::move(check));
  if (look_ == Look::none) return;
  const auto& [verdict, name, seen, advice] = checks_.back();
  const auto [word, colour] = words_of(verdict);
  const std::string padding(6 - std::string_view(word).size(), ' ');
  if (look_ == Look::colours) {
    out_ << colour << word << no_colour << padding;
  } else {
    out_ << word << padding;
  }
  out_ << name << ": " << printable(seen) << (advice.empty() ? "" : "; " + printable(advice)) << std::endl;
}

void Diagnosis::run(const std::string& name, const std::string& advice,
                    const std::function<Result<std::string>()>& check) {
  if (Interruption::is_wanted()) return;
  const auto seen = check();
  if (seen) return ok(name, *seen);
  const bool says_more = seen.error().code == ErrorCode::timed_out;  // than that somebody has ended it
  if (says_more || !Interruption::is_wanted()) fail(name, seen.error().context, advice);
}

std::uint64_t Diagnosis::count(Verdict verdict) const {
  return static_cast<std::uint64_t>(std::ranges::count(checks_, verdict, &Check::verdict));
}

std::string Diagnosis::end() const {
  if (look_ != Look::none) {
    return std::to_string(count(Verdict::ok)) + " ok, " + std::to_string(count(Verdict::warn)) + " warnings, " +
           std::to_string(count(Verdict::fail)) + " failures\n";
  }
  nlohmann::ordered_json json = {{"ok", count(Verdict::ok)},
                                 {"warnings", count(Verdict::warn)},
                                 {"failures", count(Verdict::fail)},
                                 {"checks", nlohmann::ordered_json::array()}};
  for (const auto& check : checks_) {
    json["checks"].push_back({{"verdict", words_of(check.verdict).word},
                              {"name", check.name},
                              {"seen", printable(check.seen)},
                              {"advice", printable(check.advice)}});
  }
  return json_page(json);
}

int Diagnosis::exit_status() const {
  if (count(Verdict::fail) != 0) return status_of_failures;
  return count(Verdict::warn) != 0 ? status_of_warnings : EXIT_SUCCESS;
}

}  // namespace lccfs::cli
