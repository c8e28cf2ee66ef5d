// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/metrics_page.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/text.h"

namespace lccfs::cli {
namespace {

constexpr std::size_t most_shown_bytes = 200;

/// Takes off the front what comes before the character, and that; nullopt: it does not come.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const auto taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

/// The same of a value in quotation marks, of which the first is gone.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  while (!text.empty()) {
    const char character = text.front();
    text.remove_prefix(1);
    if (character == '"') return value;
    if (character != '\\') {
      value.push_back(character);
    } else if (!text.empty()) {
      value.push_back(text.front() == 'n' ? '\n' : text.front());
      text.remove_prefix(1);
    }
  }
  return std::nullopt;
}

std::optional<Labels> take_labels(std::string_view& text) {
  Labels labels;
  while (!text.starts_with('}')) {
    const auto name = take_until(text, '=');
    if (!name || !text.starts_with('"')) return std::nullopt;
    text.remove_prefix(1);
    auto value = take_quoted(text);
    if (!value) return std::nullopt;
    labels[std::string(*name)] = std::move(*value);
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  text.remove_prefix(1);
  return labels;
}

bool has(const Labels& labels, const Labels& wanted) {
  return std::ranges::all_of(wanted, [&labels](const auto& one) {
    const auto found = labels.find(one.first);
    return found != labels.end() && found->second == one.second;
  });
}

}  // namespace

Result<MetricsPage> MetricsPage::parse(std::string_view text) {
  MetricsPage page;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.starts_with('#')) continue;
    const auto wrong = [shown = line.substr(0, most_shown_bytes)] {
      return failure(ErrorCode::io, "this is no line of metrics: " + printable(shown));
    };
    const std::size_t name_size = std::min(line.find_first_of("{ "), line.size());
    const std::string name(line.substr(0, name_size));
    line.remove_prefix(name_size);
    Sample sample;
    if (line.starts_with('{')) {
      line.remove_prefix(1);
      auto labels = take_labels(line);
      if (!labels) return wrong();
      sample.labels = std::move(*labels);
    }
    if (!line.starts_with(' ')) return wrong();
    line.remove_prefix(1);
    if (std::from_chars(line.data(), line.data() + line.size(), sample.value).ec != std::errc()) return wrong();
    page.samples_[name].push_back(std::move(sample));
  }
  return page;
}

double MetricsPage::sum(std::string_view name, const Labels& with) const {
  const auto found = samples_.find(name);
  if (found == samples_.end()) return 0;
  double sum = 0;
  for (const Sample& sample : found->second) {
    if (has(sample.labels, with)) sum += sample.value;
  }
  return sum;
}

std::string MetricsPage::label(std::string_view name, std::string_view label) const {
  const auto values = values_of(name, label);
  return values.empty() ? "" : values.front();
}

std::vector<std::string> MetricsPage::values_of(std::string_view name, std::string_view label) const {
  std::set<std::string> values;
  if (const auto found = samples_.find(name); found != samples_.end()) {
    for (const Sample& sample : found->second) {
      if (const auto one = sample.labels.find(label); one != sample.labels.end()) values.insert(one->second);
    }
  }
  return {values.begin(), values.end()};
}

}  // namespace lccfs::cli
