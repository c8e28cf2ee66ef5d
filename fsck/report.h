// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs-fsck prints, and its exit status. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "check/check.h"
#include "check/finding.h"
#include "lccfs/volume_address.h"
#include "repair/repair.h"

namespace lccfs::fsck {

// As fsck(8) has them; added up.
inline constexpr int exit_clean = 0;
inline constexpr int exit_corrected = 1;
inline constexpr int exit_left = 4;
inline constexpr int exit_operational = 8;
inline constexpr int exit_usage = 16;

struct Summary {
  check::CheckReport check;
  std::uint64_t repaired = 0;
  std::uint64_t left = 0;
  bool complete = false;  ///< otherwise something came in between, and said so on standard error
  std::chrono::nanoseconds took{0};
};
int exit_status(const Summary& summary);

/// For the progress bar. The store counts the objects of the whole pool: of a volume in a namespace of its own nobody
/// knows how many there are.
std::uint64_t objects_expected(const VolumeAddress& address, const check::Progress& progress);

class Report {
 public:
  virtual ~Report() = default;
  virtual void found(const check::Finding& finding) = 0;
  virtual void dealt_with(const check::Finding& finding, const repair::Repair& repair) = 0;
  virtual void end(const Summary& summary) = 0;
};

/// A line each.
std::unique_ptr<Report> text_report(std::ostream& out);
/// One document, written as it grows.
std::unique_ptr<Report> json_report(std::ostream& out);

}  // namespace lccfs::fsck
