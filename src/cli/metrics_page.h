// SPDX-License-Identifier: LGPL-2.1-or-later
// What an endpoint serves (docs/METRICS.md), read back. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lccfs/result.h"

namespace lccfs::cli {

using Labels = std::map<std::string, std::string, std::less<>>;

class MetricsPage {
 public:
  /// io: these are no metrics.
  static Result<MetricsPage> parse(std::string_view text);

  /// The sum of the samples of that name that have all these labels; 0: there is none.
  double sum(std::string_view name, const Labels& with = {}) const;
  /// The label's value in the first sample of that name, or empty.
  std::string label(std::string_view name, std::string_view label) const;
  /// All values of that label, each once, in order.
  std::vector<std::string> values_of(std::string_view name, std::string_view label) const;

 private:
  struct Sample {
    Labels labels;
    double value = 0;
  };
  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
};

}  // namespace lccfs::cli
