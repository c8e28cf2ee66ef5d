// SPDX-License-Identifier: LGPL-2.1-or-later
// What the command lines of all programs have in common. Errors are usage errors: one line, for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "lccfs/result.h"
#include "lccfs/volume_address.h"
#include "options/defaults.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lccfs::options {

/// Takes the text of an option's value, or says in a few words what is wrong with it.
using Store = std::function<Result<>(const std::string& text)>;

/// The options of a program, or of one of its commands, each bound to a variable that keeps its value where the option
/// is not given. By CLI11, which only this class's own file includes: it takes seconds to compile.
class CommandLine {
 public:
  struct About {
    std::string name;     ///< "lccfs-gc"; of a command: "mkfs"
    std::string usage;    ///< the words after it
    std::string summary;  ///< one line
    std::string footer;   ///< examples, and what else ends the help
  };
  explicit CommandLine(const About& about);

  /// Lives as long as the program's. A program with commands takes no words but theirs.
  CommandLine& add_command(const About& about);
  /// What a command does, and the variables of its options: these live as long as the program's command line. Answers
  /// the status to exit with, {} where all is done.
  template <class Variables>
  Variables& runs(Result<int> (*does)(const Variables&)) {
    const auto variables = std::make_shared<Variables>();
    run_ = [does, variables] { return does(*variables); };
    return *variables;
  }

  /// The title in the help of the options that follow.
  void group(std::string title) { group_ = std::move(title); }
  /// `names`: "-j,--jobs" or "--jobs". Options are given once, but those that may be `repeated`: these are lists. Of a
  /// list nothing may be given; any other value that is empty, and any such operand, is refused.
  void flag(const std::string& names, bool& given, const std::string& help);
  void option(const std::string& names, const std::string& value_name, Store store, const std::string& help,
              bool repeated = false);
  /// A word that is no option, in the order of these calls; `name` is what the help shows, in capitals. Repeated: any
  /// number of them, the last operand.
  enum class Operand { optional, needed, repeated };
  void operand(const std::string& name, Store store, const std::string& help, Operand kind = Operand::optional);
  void exclude(const std::string& name, std::initializer_list<const char*> others);
  /// The file of defaults (lccfs.conf(5)) may set these options: in the section of the program, or for all programs. The
  /// value of one whose value is a FILE is an absolute path there.
  enum class Section { of_program, of_all };
  void configurable(Section section, std::initializer_list<const char*> names);
  /// What must be true of all values together: called in this order, when they are set.
  void check(std::function<Result<>()> rule) { rules_.push_back(std::move(rule)); }

  /// Of the words after the program's name: sets the variables. The text is what is to be printed instead of any work,
  /// that of --help or of --version; mostly it is empty. Errors name the option, and the command with help.
  Result<std::string> parse(std::vector<std::string> words);
  /// The name of the command that was given, or empty.
  std::string command() const { return given().parent_ == nullptr ? "" : given().about_.name; }
  /// Runs it.
  Result<int> run() const { return given().run_(); }

 private:
  struct Option {
    CLI::Option* option;
    Store store;
    bool repeated;
    std::optional<Section> section = std::nullopt;  ///< nullopt: the file of defaults does not have it
  };

  void add(CLI::Option* option, Store store, bool repeated);
  const CommandLine& given() const;
  std::unexpected<Error> wrong(std::string what) const;
  Result<> expect_no_more_words() const;
  Result<> set_variables() const;
  const Option* option_for(const Default& entry) const;
  Result<> set_default(const Default& entry) const;
  const std::string& program_name() const { return parent_ == nullptr ? about_.name : parent_->about_.name; }
  std::string full_name() const { return (parent_ == nullptr ? "" : parent_->about_.name + " ") + about_.name; }

  const About about_;
  const std::shared_ptr<CLI::App> app_;
  const CommandLine* parent_ = nullptr;
  std::string group_;
  std::vector<Option> options_;
  std::vector<std::function<Result<>()>> rules_;
  std::function<Result<int>()> run_;
  std::list<CommandLine> commands_;
};

/// The one that a program uses without -c.
inline constexpr const char* default_conf_file = "/etc/ceph/ceph.conf";
/// Of a Ceph client, which may be told as "client.NAME", too.
std::string_view client_name(std::string_view text);

/// -c, -p, -n, --id and --local. Relative paths are made absolute: programs change their directory. `else_where`: what
/// may name the volume where neither a pool nor a directory is given; the error says that this is missing, too. The
/// address then has neither.
void add_address(CommandLine& line, VolumeAddress& address, std::function<Result<>()> else_where = nullptr);

std::string absolute_path(const std::string& path);

/// "65536", "64K", "4M", "1G", "2T": powers of 1024.
Result<std::uint64_t> parse_size(const std::string& text);
/// "0", "65536": whole, and without any suffix.
Result<std::uint64_t> parse_number(const std::string& text);
Result<std::uint64_t> parse_number(const std::string& text, std::uint64_t least, std::uint64_t most);
/// Seconds with at most nine decimals: "1", "0.5".
Result<std::chrono::nanoseconds> parse_seconds(const std::string& text);

// What sets a variable of any type that takes such a value: an optional tells whether the option was given.

template <class T>
Store text(T& variable) {
  return [&variable](const std::string& text) -> Result<> { return variable = text, Result<>{}; };
}
/// All that are given.
inline Store text_list(std::vector<std::string>& list) {
  return [&list](const std::string& text) -> Result<> { return list.push_back(text), Result<>{}; };
}
template <class T>
Store path(T& variable) {
  return [&variable](const std::string& text) -> Result<> { return variable = absolute_path(text), Result<>{}; };
}
template <class T>
Store number(T& variable, std::uint64_t least, std::uint64_t most) {
  return [&variable, least, most](const std::string& text) -> Result<> {
    LCCFS_TRY(const std::uint64_t value, parse_number(text, least, most));
    variable = static_cast<T>(value);
    return {};
  };
}
template <class T>
Store size(T& variable, std::uint64_t most) {
  return [&variable, most](const std::string& text) -> Result<> {
    LCCFS_TRY(const std::uint64_t value, parse_size(text));
    if (value > most) return failure(ErrorCode::invalid, text + " is more than " + std::to_string(most));
    variable = static_cast<T>(value);
    return {};
  };
}
/// Longer than 0.
template <class T>
Store seconds(T& variable) {
  return [&variable](const std::string& text) -> Result<> {
    LCCFS_TRY(const auto duration, parse_seconds(text));
    if (duration.count() == 0) return failure(ErrorCode::invalid, "it must be longer than 0");
    variable = duration;
    return {};
  };
}
/// One of these words.
template <class T>
Store choice(T& variable, std::vector<std::pair<std::string, T>> values) {
  return [&variable, values = std::move(values)](const std::string& text) -> Result<> {
    std::string words;
    for (const auto& [word, value] : values) {
      if (word == text) return variable = value, Result<>{};
      add_word(words, word);
    }
    return failure(ErrorCode::invalid, "'" + text + "' is not one of " + words);
  };
}

}  // namespace lccfs::options
