// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <filesystem>

namespace lccfs::options {

namespace po = boost::program_options;

namespace {

template <class T>
Result<T> value_of(const Values& values, const std::string& option, Result<T> parse(const std::string&)) {
  auto value = parse(values[option].as<std::string>());
  if (!value) return failure(value.error().code, "--" + option + ": " + value.error().context);
  return value;
}

}  // namespace

Result<Values> parse(const std::vector<std::string>& words, const Description& description) {
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(words).options(description).style(style).run();
    for (const auto& option : parsed.options) {
      if (option.position_key >= 0)
        return failure(ErrorCode::invalid, "unexpected argument '" + option.value.front() + "'");
    }
    Values values;
    po::store(parsed, values);
    return values;
  } catch (const po::error& error) {
    return failure(ErrorCode::invalid, error.what());
  }
}

Result<std::uint64_t> number_of(const Values& values, const std::string& option, std::uint64_t least,
                                std::uint64_t most) {
  LCCFS_TRY(const auto number, value_of(values, option, parse_number));
  if (number >= least && number <= most) return number;
  return failure(ErrorCode::invalid,
                 "--" + option + " must be from " + std::to_string(least) + " to " + std::to_string(most));
}

Result<std::uint64_t> size_of(const Values& values, const std::string& option, std::uint64_t most) {
  LCCFS_TRY(const auto size, value_of(values, option, parse_size));
  if (size <= most) return size;
  return failure(ErrorCode::invalid, "--" + option + " must be at most " + std::to_string(most));
}

Result<std::chrono::nanoseconds> seconds_of(const Values& values, const std::string& option) {
  return value_of(values, option, parse_seconds);
}

std::string absolute_path(const std::string& path) {
  std::error_code ignored;  // no current directory: then the path stays as it is
  std::string result = std::filesystem::absolute(path, ignored).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result.empty() ? path : result;
}

}  // namespace lccfs::options
