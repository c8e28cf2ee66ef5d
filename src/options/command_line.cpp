// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <filesystem>

namespace lccfs::options {

namespace po = boost::program_options;

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

std::string absolute_path(const std::string& path) {
  std::error_code ignored;  // no current directory: then the path stays as it is
  std::string result = std::filesystem::absolute(path, ignored).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result.empty() ? path : result;
}

}  // namespace lccfs::options
