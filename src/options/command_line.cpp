// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>

namespace lccfs::options {
namespace {

/// The look of --help.
class Look final : public CLI::Formatter {
 public:
  explicit Look(std::string usage) : usage_(std::move(usage)) { label("Positionals", "Operands"); }
  std::string make_description(const CLI::App*) const override { return ""; }
  std::string make_usage(const CLI::App* app, std::string) const override {
    return "Usage: " + usage_ + "\n" + app->get_description() + "\n\n";
  }
  /// CLI11 has two empty lines between groups.
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    return CLI::Formatter::make_group(std::move(group), positional, std::move(options)).substr(1);
  }

  std::string make_positionals(const CLI::App* app) const override {
    const auto operands = CLI::Formatter::make_positionals(app);
    return operands.empty() ? "" : operands + "\n";
  }

  /// CLI11 repeats here what excludes what.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }

 private:
  const std::string usage_;
};

/// CLI11 itself tells of these with the option's name and words of its own.
std::string describe(const CLI::ArgumentMismatch& error, const CLI::App& app) {
  std::string text = error.what();
  const std::string name = (text.starts_with('-') ? "" : "--") + text.substr(0, text.find_first_of(": "));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return text;
  return name + (option->get_expected_max() == 0 ? " takes no value" : " needs a value: " + option->get_type_name());
}

}  // namespace

CommandLine::CommandLine(const About& about)
    : about_(about), app_(std::make_shared<CLI::App>(about.summary, about.name)) {
  app_->set_help_flag();  // parse() has it after the others
  app_->footer(about.footer);
  app_->allow_extras();  // expect_no_more_words() says what they are
}

CommandLine& CommandLine::add_command(const About& about) {
  CommandLine& command = commands_.emplace_back(about);
  command.parent_ = this;
  app_->add_subcommand(command.app_)->group("Commands, each with its own --help");
  app_->require_subcommand(0, 1);
  return command;
}

void CommandLine::add(CLI::Option* option, Store store, bool repeated) {
  option->group(group_)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  options_.push_back({option, std::move(store), repeated});
}

void CommandLine::flag(const std::string& names, bool& given, const std::string& help) {
  add(
      app_->add_flag(names, help)->disable_flag_override(),
      [&given](const std::string&) -> Result<> { return given = true, Result<>{}; }, false);
}

void CommandLine::option(const std::string& names, const std::string& value_name, Store store, const std::string& help,
                         bool repeated) {
  add(app_->add_option(names, help)->type_name(value_name), std::move(store), repeated);
}

void CommandLine::operand(const std::string& name, Store store, const std::string& help, Operand kind) {
  // CLI11 takes a name without dashes for such a word; an option's own name in errors is what the help shows.
  const bool is_repeated = kind == Operand::repeated;
  CLI::Option* option = app_->add_option(name, help)->type_name("");
  if (is_repeated) option->allow_extra_args();
  add(option, std::move(store), is_repeated);
  if (kind != Operand::needed) return;
  check([option, name]() -> Result<> {  // CLI11's required() would not say which
    return option->count() > 0 ? Result<>{} : failure(ErrorCode::invalid, name + " is missing");
  });
}

void CommandLine::exclude(const std::string& name, std::initializer_list<const char*> others) {
  for (const char* other : others) app_->get_option(name)->excludes(app_->get_option(other));
}

void CommandLine::configurable(Section section, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::ranges::find(options_, app_->get_option(name), &Option::option)->section = section;
  }
}

const CommandLine& CommandLine::given() const {
  const auto command = std::ranges::find_if(commands_, [](const auto& one) { return one.app_->parsed(); });
  return command == commands_.end() ? *this : *command;
}

Result<std::string> CommandLine::parse(std::vector<std::string> words) {
  const auto add_help = [](const CommandLine& line) {
    const bool is_free = line.app_->get_option_no_throw("-h") == nullptr;  // of du it is another one, as everywhere
    line.app_->set_help_flag(is_free ? "-h,--help" : "--help", "show this text")->group("Others");
    line.app_->formatter(std::make_shared<Look>(line.full_name() + " " + line.about_.usage));
  };
  add_help(*this);
  app_->set_version_flag("--version", about_.name + " " LCCFS_VERSION "\n", "show the version")->group("Others");
  std::ranges::for_each(commands_, add_help);
  for (const auto& word : words) {  // CLI11 would take the next word for the value
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      return wrong(word.substr(0, word.size() - 1) + " needs a value");
    }
  }
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::CallForVersion& version) {
    return version.what();
  } catch (const CLI::ArgumentMismatch& error) {
    return given().wrong(describe(error, *given().app_));
  } catch (const CLI::ParseError& error) {
    return given().wrong(error.what());
  }
  LCCFS_CHECK(expect_no_more_words());
  LCCFS_CHECK(given().expect_no_more_words());
  LCCFS_CHECK(given().set_variables());
  return "";
}

std::unexpected<Error> CommandLine::wrong(std::string what) const {
  return failure(ErrorCode::invalid, std::move(what) + " (" + full_name() + " --help)");
}

Result<> CommandLine::expect_no_more_words() const {
  std::vector<std::string> left = app_->remaining();
  std::erase(left, "--");  // after it there are only operands
  const bool wants_command = !commands_.empty() && &given() == this;
  if (left.empty()) return wants_command ? wrong("which command?") : Result<>{};
  const std::string& word = left.front();
  if (word.starts_with('-')) return wrong("there is no option '" + word + "'");
  return wrong((wants_command ? "there is no command '" : "unexpected argument '") + word + "'");
}

const CommandLine::Option* CommandLine::option_for(const Default& entry) const {
  const auto found = std::ranges::find_if(options_, [&entry](const Option& one) {
    return one.section && one.option->get_name() == "--" + entry.key &&
           (!entry.section.empty() || *one.section == Section::of_all);
  });
  return found == options_.end() ? nullptr : &*found;
}

/// What the command line says goes before, and so does what does not go with it.
Result<> CommandLine::set_default(const Default& entry) const {
  if (!entry.section.empty() && entry.section != program_name()) return {};
  const Option* found = option_for(entry);
  if (found == nullptr) {
    const auto knows = [&entry](const CommandLine& command) { return command.option_for(entry) != nullptr; };
    if (parent_ != nullptr && std::ranges::any_of(parent_->commands_, knows)) return {};  // is of other commands
    return failure(ErrorCode::invalid, entry.place + ": there is no key '" + entry.key + "' " +
                                           (entry.section.empty() ? "for all programs" : "in this section") +
                                           "; lccfs.conf(5) lists them");
  }
  const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
  if (is_given(found->option) && !found->repeated) return {};
  if (std::ranges::any_of(found->option->get_excludes(), is_given)) return {};
  // Relative to what? Each program that reads the file was started elsewhere.
  if (found->option->get_type_name() == "FILE" && !entry.value.starts_with('/'))
    return failure(ErrorCode::invalid, entry.place + ": " + entry.key + ": not an absolute path");
  if (const auto stored = found->store(entry.value); !stored)
    return failure(ErrorCode::invalid, entry.place + ": " + entry.key + ": " + stored.error().context);
  return {};
}

Result<> CommandLine::set_variables() const {
  LCCFS_TRY(const auto defaults, read_defaults());
  for (const Default& entry : defaults) LCCFS_CHECK(set_default(entry));
  for (const auto& [option, store, repeated, section] : options_) {
    const std::string name = option->get_name();
    if (option->count() > 1 && !repeated) return wrong(name + " is given more than once");
    const bool is_list = repeated && name.starts_with('-');
    for (const std::string& text : option->results()) {
      // A script's variable that was not set, never what is meant: a volume made without its data pool, say.
      if (text.empty() && !is_list) return wrong(name + " needs a value");
      // CLI11 takes the next word whatever it is.
      const bool is_option = text.starts_with('-') && app_->get_option_no_throw(text) != nullptr;
      if (is_option) return wrong((name + " needs a value before ").append(text));
      if (const auto stored = store(text); !stored) return wrong((name + ": ").append(stored.error().context));
    }
  }
  for (const auto& rule : rules_) {
    if (const auto kept = rule(); !kept) return wrong(kept.error().context);
  }
  return {};
}

std::string_view client_name(std::string_view text) {
  constexpr std::string_view before_name = "client.";
  if (text.starts_with(before_name)) text.remove_prefix(before_name.size());
  return text;
}

namespace {
Result<> set_client(VolumeAddress& address, const std::string& text) {
  address.client_id = client_name(text);
  return address.client_id.empty() ? failure(ErrorCode::invalid, "is empty") : Result<>();
}
}  // namespace

void add_address(CommandLine& line, VolumeAddress& address, std::function<Result<>()> else_where) {
  line.group("Volume: a Ceph pool, or a local directory");
  line.option("-c,--conf", "FILE", path(address.conf_file), "Ceph configuration file (default: /etc/ceph/ceph.conf)");
  line.option("-p,--pool", "POOL", text(address.pool), "pool, by name or number");
  line.option("-n,--namespace", "NAMESPACE", text(address.pool_namespace), "namespace in the pool (default: none)");
  line.option(
      "--id", "CLIENT", [&address](const std::string& name) { return set_client(address, name); },
      "Ceph client name, without \"client.\" (default: admin)");
  line.option("--local", "DIRECTORY", path(address.local_directory),
              "keep the volume in this directory instead, without Ceph");
  line.exclude("--local", {"--conf", "--pool", "--namespace", "--id"});
  line.configurable(CommandLine::Section::of_all, {"--conf", "--id"});
  line.check([&address, else_where = std::move(else_where)]() -> Result<> {
    if (!address.local_directory.empty()) return {};
    if (address.pool.empty() && else_where) LCCFS_CHECK(else_where());
    if (address.pool.empty() && !else_where)
      return failure(ErrorCode::invalid, "which volume? Give -p POOL (with -c CEPH.CONF), or --local DIRECTORY");
    if (address.conf_file.empty()) address.conf_file = default_conf_file;
    return {};
  });
}

std::string absolute_path(const std::string& path) {
  std::error_code ignored;  // no current directory: then the path stays as it is
  std::string result = std::filesystem::absolute(path, ignored).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result.empty() ? path : result;
}

}  // namespace lccfs::options
