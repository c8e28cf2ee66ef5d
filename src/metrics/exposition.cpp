// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/exposition.h"

#include <charconv>

#include "base/text.h"

namespace lccfs::metrics {
namespace {

const char* word_for(Exposition::Type type) {
  switch (type) {
    case Exposition::Type::counter:
      return "counter";
    case Exposition::Type::gauge:
      return "gauge";
    case Exposition::Type::histogram:
      return "histogram";
    case Exposition::Type::summary:
      return "summary";
  }
  return "untyped";
}

std::string seconds_text(std::chrono::nanoseconds value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, std::chrono::duration<double>(value).count());
  return {digits, end.ptr};
}

}  // namespace

std::string label_value(std::string_view bytes) {
  std::string value;
  for (const char character : printable(bytes)) {
    if (character == '\\' || character == '"') value.push_back('\\');
    value.push_back(character);
  }
  return value;
}

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  family_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(word_for(type)).append("\n");
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view bound, std::string_view value) {
  text_.append(family_).append(suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_.append(1, before).append(name).append("=\"").append(label_value(text)).append("\"");
    before = ',';
  }
  if (!bound.empty()) text_.append(1, std::exchange(before, ',')).append("le=\"").append(bound).append("\"");
  if (before == ',') text_.append("}");
  text_.append(" ").append(value).append("\n");
}

void Exposition::sample(Labels labels, std::uint64_t value) { line("", labels, "", std::to_string(value)); }

void Exposition::sample(Labels labels, std::chrono::nanoseconds value) { line("", labels, "", seconds_text(value)); }

void Exposition::histogram(Labels labels, const LatencyHistogram::Snapshot& values) {
  for (std::size_t i = 0; i < values.up_to.size(); ++i) {
    const std::string bound = i < latency_bounds.size() ? seconds_text(latency_bounds[i]) : "+Inf";
    line("_bucket", labels, bound, std::to_string(values.up_to[i]));
  }
  summary(labels, values.up_to.back(), values.total);
}

void Exposition::summary(Labels labels, std::uint64_t count, std::chrono::nanoseconds total) {
  line("_sum", labels, "", seconds_text(total));
  line("_count", labels, "", std::to_string(count));
}

}  // namespace lccfs::metrics
