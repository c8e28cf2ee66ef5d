// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs doctor finds: a line for each check, with what to change where it is not right. One thread.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "lccfs/result.h"

namespace lccfs::cli {

struct Check {
  enum class Verdict { ok, warn, fail };
  Verdict verdict = Verdict::ok;
  std::string name;
  std::string seen;    ///< in a few words
  std::string advice;  ///< what to change; empty where it is right
};

class Diagnosis {
 public:
  enum class Look { plain, colours, none };  ///< none: all at the end, as JSON
  Diagnosis(std::ostream& out, Look look) : out_(out), look_(look) {}

  void add(Check check);
  void ok(const std::string& name, const std::string& seen) { add({Check::Verdict::ok, name, seen, ""}); }
  void warn(const std::string& name, const std::string& seen, const std::string& advice) {
    add({Check::Verdict::warn, name, seen, advice});
  }
  void fail(const std::string& name, const std::string& seen, const std::string& advice) {
    add({Check::Verdict::fail, name, seen, advice});
  }
  /// Runs it, unless somebody wants to end: what it answers is what was seen, an error is a FAIL.
  void run(const std::string& name, const std::string& advice, const std::function<Result<std::string>()>& check);

  const std::vector<Check>& checks() const { return checks_; }
  /// With a line end: for people how many there are of which kind, else JSON with all of them.
  std::string end() const;
  /// 0: all is right, 1: something FAILs, 3: there are warnings.
  int exit_status() const;

 private:
  std::uint64_t count(Check::Verdict verdict) const;

  std::ostream& out_;
  const Look look_;
  std::vector<Check> checks_;
};

/// While it is there, SIGINT, SIGTERM and SIGHUP only say that somebody wants to end.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  static bool is_wanted();  ///< any thread
  /// As before there was one: also for a child, between fork and exec.
  static void end();
};

}  // namespace lccfs::cli
