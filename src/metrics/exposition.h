// SPDX-License-Identifier: LGPL-2.1-or-later
// Prometheus' text format, version 0.0.4. (prometheus-cpp, which Debian has, takes a mutex for each observation of a
// histogram; without its instruments nothing is left of it but what stands here.)
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/latency_histogram.h"

namespace lccfs::metrics {

/// One thread.
class Exposition {
 public:
  enum class Type { counter, gauge, histogram, summary };
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  /// The samples that follow are of it. `help`: one line.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, std::chrono::nanoseconds value);  ///< in seconds
  void histogram(Labels labels, const LatencyHistogram::Snapshot& values);
  /// A summary without quantiles.
  void summary(Labels labels, std::uint64_t count, std::chrono::nanoseconds total);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view bound, std::string_view value);

  std::string family_, text_;
};

/// As the value of a label, whatever bytes it holds: what is no UTF-8, and what would break a line, is \xNN there.
std::string label_value(std::string_view bytes);

}  // namespace lccfs::metrics
