// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/catch.h"

using namespace lccfs;
using namespace std::chrono_literals;

namespace {

Result<VolumeAddress> parse_address(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line({.name = "program", .usage = "VOLUME", .summary = "Works.", .footer = ""});
  options::add_address(line, address);
  LCCFS_CHECK(line.parse(words));
  return address;
}

}  // namespace

TEST_CASE("a size is a number with a suffix for a power of 1024") {
  struct Row {
    const char* text;
    std::uint64_t size_bytes;
  };
  for (const Row& row : {Row{"0", 0}, Row{"65536", 65536}, Row{"64K", 65536}, Row{"4M", 4U << 20}, Row{"1G", 1U << 30},
                         Row{"2T", 2ULL << 40}, Row{"18446744073709551615", UINT64_MAX}}) {
    INFO(row.text);
    const auto size = options::parse_size(row.text);
    REQUIRE(size);
    CHECK(*size == row.size_bytes);
  }
}

TEST_CASE("what is not a size is refused") {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "4m", "4MB", "4MiB", "0x10", "1.5M", "18446744073709551616",
                           "18446744073709551615K", "99999999999T"}) {
    INFO(text);
    const auto size = options::parse_size(text);
    REQUIRE_FALSE(size);
    CHECK(size.error().code == ErrorCode::invalid);
  }
}

TEST_CASE("a number is whole, and has no suffix") {
  CHECK(*options::parse_number("0") == 0);
  CHECK(*options::parse_number("18446744073709551615") == UINT64_MAX);
  for (const char* text : {"", "4K", "-1", "1.0", " 1", "18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(options::parse_number(text));
  }
}

TEST_CASE("seconds may have decimals") {
  CHECK(*options::parse_seconds("0") == 0ns);
  CHECK(*options::parse_seconds("1") == 1s);
  CHECK(*options::parse_seconds("0.5") == 500ms);
  CHECK(*options::parse_seconds("1.000000001") == 1s + 1ns);
}

TEST_CASE("what is not a number of seconds is refused") {
  for (const char* text : {"", ".", "1.", ".5", "-1", "1s", "1.2.3", "0.0000000001", "nan", "1e3", "9999999999"}) {
    INFO(text);
    CHECK_FALSE(options::parse_seconds(text));
  }
}

namespace {

/// A line with an option of every kind, parsed: what it prints, or its error.
struct Line {
  std::uint64_t jobs = 7;
  std::uint32_t bytes = 0;
  std::optional<std::chrono::nanoseconds> pause;
  std::string level = "low", label, all;
  bool fast = false;
  std::string said;

  explicit Line(const std::vector<std::string>& words) {
    options::CommandLine line({.name = "lccfs-gc", .usage = "[OPTION]...", .summary = "Works.", .footer = "Examples:"});
    line.group("Work");
    line.option("-j,--jobs", "JOBS", options::number(jobs, 1, 9), "how many");
    line.option("--bytes", "SIZE", options::size(bytes, 7168), "how large");
    line.option("--pause", "SECONDS", options::seconds(pause), "how long");
    line.option("--level", "LEVEL", options::choice(level, {{"low", "l"}, {"high", "h"}}), "low or high");
    line.option("--label", "TEXT", options::text(label), "any");
    const auto add = [this](const std::string& text) -> Result<> { return all += text, Result<>{}; };
    line.option("-o,--more", "LIST", add, "more", true);
    line.flag("-f,--fast", fast, "hurry");
    line.exclude("--fast", {"--pause"});
    line.configurable(options::CommandLine::Section::of_program, {"--jobs", "--pause", "--more"});
    line.configurable(options::CommandLine::Section::of_all, {"--label"});
    line.check(
        [this]() -> Result<> { return label == "bad" ? failure(ErrorCode::invalid, "the label is bad") : Result<>{}; });
    const auto parsed = line.parse(words);
    said = parsed ? *parsed : parsed.error().context;
    CHECK((parsed || parsed.error().code == ErrorCode::invalid));
  }
};

std::string error_of(const std::vector<std::string>& words) {
  std::string said = Line(words).said;
  constexpr std::string_view hint = " (lccfs-gc --help)";
  REQUIRE(said.ends_with(hint));
  return said.substr(0, said.size() - hint.size());
}

}  // namespace

TEST_CASE("options set their variables, and leave those alone that are not given") {
  const Line none({});
  CHECK((none.jobs == 7 && none.bytes == 0 && !none.pause && none.level == "low" && !none.fast && none.said.empty()));
  const Line all({"-j9", "--bytes=7K", "--pause", "0.5", "--level", "high", "--label", "a b", "-o", "x", "-o", "y"});
  CHECK((all.jobs == 9 && all.bytes == 7168 && all.pause == 500ms && all.level == "h" && all.label == "a b"));
  CHECK((all.all == "xy" && all.said.empty()));
  CHECK(Line({"-fj", "1"}).fast);
  CHECK(Line({"--label", "-1"}).label == "-1");
  const Line words_without_any({"-o", ""});  // of a list there may be none
  CHECK((words_without_any.said.empty() && words_without_any.all.empty()));
}

TEST_CASE("a bad value is refused by the name of its option, with what may be given") {
  CHECK(error_of({"-j", "7K"}) == "--jobs: '7K' is not a number, or too big");
  CHECK(error_of({"--jobs", "10"}) == "--jobs: 10 is not from 1 to 9");
  CHECK(error_of({"-j", "-1"}) == "--jobs: '-1' is not a number, or too big");
  CHECK(error_of({"--bytes", "7169"}) == "--bytes: 7169 is more than 7168");
  CHECK(error_of({"--pause", "soon"}).starts_with("--pause: 'soon' is not a number"));
  CHECK(error_of({"--level", "loud"}) == "--level: 'loud' is not one of low, high");
  CHECK(error_of({"--label", "bad"}) == "the label is bad");
}

TEST_CASE("wrong words are named") {
  CHECK(error_of({"now"}) == "unexpected argument 'now'");
  CHECK(error_of({""}) == "unexpected argument ''");
  CHECK(error_of({"--job", "1"}) == "there is no option '--job'");
  CHECK(error_of({"-x"}) == "there is no option '-x'");
  CHECK(error_of({"--jobs"}) == "--jobs needs a value: JOBS");
  CHECK(error_of({"--label="}) == "--label needs a value");
  CHECK(error_of({"--label", ""}) == "--label needs a value");
  CHECK(error_of({"-j", "--fast"}) == "--jobs needs a value before --fast");
  CHECK(error_of({"--fast=yes"}) == "--fast takes no value");
  CHECK(error_of({"--label", "a", "--label", "b"}) == "--label is given more than once");
  CHECK(error_of({"-ff"}) == "--fast is given more than once");
  CHECK(error_of({"--pause", "1", "-f"}).find("--pause") != std::string::npos);
}

TEST_CASE("help and version are texts to print, whatever else is wrong") {
  const std::string help = Line({"-j", "many", "--help"}).said;
  CHECK(help ==
        "Usage: lccfs-gc [OPTION]...\n"
        "Works.\n"
        "\n"
        "Work:\n"
        "  -j,--jobs JOBS              how many\n"
        "  --bytes SIZE                how large\n"
        "  --pause SECONDS             how long\n"
        "  --level LEVEL               low or high\n"
        "  --label TEXT                any\n"
        "  -o,--more LIST              more\n"
        "  -f,--fast                   hurry\n"
        "\n"
        "Others:\n"
        "  -h,--help                   show this text\n"
        "  --version                   show the version\n"
        "\n"
        "Examples:\n");
  CHECK(Line({"-h"}).said == help);
  CHECK(Line({"--version"}).said.starts_with("lccfs-gc 0."));
}

TEST_CASE("a program has commands with options of their own") {
  const auto said = [](const std::vector<std::string>& words) {
    options::CommandLine program({.name = "p", .usage = "COMMAND", .summary = "Works.", .footer = ""});
    bool fast = false;
    auto& walk = program.add_command({.name = "walk", .usage = "[--fast]", .summary = "Walks.", .footer = ""});
    walk.group("Walk");
    walk.flag("--fast", fast, "runs");
    program.add_command({.name = "sit", .usage = "", .summary = "Sits.", .footer = ""});
    const auto text = program.parse(words);
    return text ? program.command() + (fast ? " fast" : "") + *text : text.error().context;
  };
  CHECK(said({"walk"}) == "walk");
  CHECK(said({"walk", "--fast"}) == "walk fast");
  CHECK(said({"sit"}) == "sit");
  CHECK(said({}) == "which command? (p --help)");
  CHECK(said({"run"}) == "there is no command 'run' (p --help)");
  CHECK(said({"--fast", "walk"}) == "there is no option '--fast' (p --help)");
  CHECK(said({"sit", "--fast"}) == "there is no option '--fast' (p sit --help)");
  CHECK(said({"walk", "sit"}) == "unexpected argument 'sit' (p walk --help)");
  CHECK(said({"walk", "--help"}).starts_with("walkUsage: p walk [--fast]\nWalks.\n"));
  const std::string help = said({"--help"});
  CHECK(help.find("  walk ") < help.find("  sit "));
}

TEST_CASE("a command runs with what its options have set, and answers the status or the error") {
  struct Walk {
    std::uint64_t steps = 3;
  };
  const auto run = [](const std::vector<std::string>& words) {
    options::CommandLine program({.name = "p", .usage = "COMMAND", .summary = "Works.", .footer = ""});
    auto& line = program.add_command({.name = "walk", .usage = "", .summary = "Walks.", .footer = ""});
    auto& walk = line.runs(+[](const Walk& given) -> Result<int> { return static_cast<int>(given.steps); });
    line.option("--steps", "NUMBER", options::number(walk.steps, 0, 9), "how many");
    program.add_command({.name = "sit", .usage = "", .summary = "Sits.", .footer = ""})
        .runs(+[](const Walk&) -> Result<int> { return failure(ErrorCode::io, "no chair"); });
    REQUIRE(program.parse(words));
    return program.run();
  };
  CHECK(*run({"walk"}) == 3);
  CHECK(*run({"walk", "--steps", "5"}) == 5);
  CHECK(run({"sit"}).error().context == "no chair");
}

TEST_CASE("a command takes words in their order, and any number of the last") {
  const auto said = [](const std::vector<std::string>& words) {
    options::CommandLine program({.name = "p", .usage = "COMMAND", .summary = "Works.", .footer = ""});
    std::string first;
    std::vector<std::string> others;
    bool fast = false;
    auto& walk = program.add_command({.name = "walk", .usage = "HOW [WHERE]...", .summary = "Walks.", .footer = ""});
    walk.group("Walk");
    walk.operand("HOW", options::choice<std::string>(first, {{"slowly", "slow"}, {"well", "well"}}), "the gait");
    walk.operand("WHERE", options::text_list(others), "places", options::CommandLine::Operand::repeated);
    walk.flag("--fast", fast, "runs");
    const auto text = program.parse(words);
    if (!text) return text.error().context;
    for (const auto& one : others) first += " " + one;
    return first + *text;
  };
  CHECK(said({"walk"}).empty());
  CHECK(said({"walk", "slowly"}) == "slow");
  CHECK(said({"walk", "well", "a", "--fast", "/b", "c:1"}) == "well a /b c:1");
  CHECK(said({"walk", "backwards", "a"}) == "HOW: 'backwards' is not one of slowly, well (p walk --help)");
  CHECK(said({"walk", "well", "--nonsense"}) == "there is no option '--nonsense' (p walk --help)");
  CHECK(said({"walk", ""}) == "HOW needs a value (p walk --help)");
  CHECK(said({"walk", "well", "a", ""}) == "WHERE needs a value (p walk --help)");
}

TEST_CASE("an address is a pool with its cluster, or a directory") {
  const auto full = parse_address({"-c", "/x/rados.conf", "-p", "1", "-n", "nova", "--id", "client.vm"});
  REQUIRE(full);
  CHECK(full->conf_file == "/x/rados.conf");
  CHECK(full->pool == "1");
  CHECK(full->pool_namespace == "nova");
  CHECK(full->client_id == "vm");
  CHECK(full->local_directory.empty());

  const auto short_one = parse_address({"--pool=vms"});
  REQUIRE(short_one);
  CHECK(short_one->conf_file == "/etc/ceph/ceph.conf");
  CHECK(short_one->client_id == "admin");

  const auto local = parse_address({"--local", "/srv//volume/"});
  REQUIRE(local);
  CHECK(local->local_directory == "/srv/volume");
  CHECK(local->pool.empty());
}

TEST_CASE("relative paths in an address are made absolute") {
  CHECK(parse_address({"--local", "volume"})->local_directory.front() == '/');
  CHECK(parse_address({"-p", "x", "-c", "ceph.conf"})->conf_file.front() == '/');
}

TEST_CASE("an address that is none is refused with one line") {
  const std::vector<std::vector<std::string>> table = {
      {},
      {"-c", "/etc/ceph/ceph.conf"},
      {"-p"},
      {"-p", ""},
      {"-p", "a", "-n", ""},
      {"-p", "a", "-c", ""},
      {"--local", ""},
      {"--local", "/a", "-p", "b"},
      {"--local", "/a", "-c", "/b"},
      {"--local", "/a", "-n", "b"},
      {"--local", "/a", "--id", "b"},
      {"-p", "a", "-p", "b"},
      {"-p", "a", "--id", "client."},
      {"-p", "a", "b"},
      {"-p", "a", "--unknown"},
      {"--poo", "a"},
  };
  for (const auto& words : table) {
    INFO(words.size() << " words, the last: " << (words.empty() ? "" : words.back()));
    const auto address = parse_address(words);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::invalid);
    CHECK_FALSE(address.error().context.empty());
    CHECK(address.error().context.find('\n') == std::string::npos);
  }
}

namespace {

/// A file of defaults, for as long as it lives.
class DefaultsFile {
 public:
  explicit DefaultsFile(const std::string& text) {
    std::ofstream(path_) << text;
    setenv("LCCFS_CONFIG", path_.c_str(), 1);
  }
  ~DefaultsFile() {
    setenv("LCCFS_CONFIG", "", 1);
    std::filesystem::remove(path_);
  }
  DefaultsFile(const DefaultsFile&) = delete;
  DefaultsFile& operator=(const DefaultsFile&) = delete;
  std::string place(unsigned line) const { return path_ + ":" + std::to_string(line) + ": "; }

 private:
  const std::string path_ = std::filesystem::temp_directory_path() / ("lccfs-defaults-" + std::to_string(getpid()));
};

}  // namespace

TEST_CASE("the file of defaults sets what the command line does not") {
  const DefaultsFile file(
      "# for all\n"
      "label = some words = and more \r\n"
      "\n"
      "[lccfs]\n"
      "label=of another program\n"
      "[lccfs-gc]\n"
      "  jobs =5\n"
      "pause = 2.5\n"
      "; commas\n"
      "more = a,b\n"
      "[lccfs-fsck]\n"
      "what-this-program-does-not-know = 1\n");
  const Line none({});
  CHECK((none.said.empty() && none.jobs == 5 && none.pause == 2500ms && none.all == "a,b"));
  CHECK(none.label == "some words = and more");
  CHECK(Line({"-j", "3"}).jobs == 3);
  CHECK(Line({"--more", ",c"}).all == "a,b,c");  // those that may be given several times: after what is in the file
  const Line fast({"--fast"});
  CHECK((fast.fast && !fast.pause && fast.said.empty()));  // with which --pause does not go
  CHECK(Line({"--label", "bad"}).said.starts_with("the label is bad"));
}

TEST_CASE("a section's own value goes before the one for all programs") {
  const DefaultsFile file("label = all\n[lccfs-gc]\nlabel = own\n");
  CHECK(Line({}).label == "own");
}

TEST_CASE("a bad line of the file of defaults is an error of one line, with file and line") {
  struct Row {
    const char* text;
    unsigned line;
    const char* says;
  };
  for (const Row& row :
       {Row{"\n[lccfs-gc]\njob = 3\n", 3, "there is no key 'job' in this section; lccfs.conf(5) lists them"},
        Row{"[lccfs-gc]\nbytes = 3\n", 2, "there is no key 'bytes' in this section; lccfs.conf(5) lists them"},
        Row{"[lccfs-gc]\nfast = yes\n", 2, "there is no key 'fast' in this section; lccfs.conf(5) lists them"},
        Row{"jobs = 3\n", 1, "there is no key 'jobs' for all programs; lccfs.conf(5) lists them"},
        Row{"[lccfs-gc]\njobs = 10\n", 2, "jobs: 10 is not from 1 to 9"},
        Row{"[lccfs-gc]\njobs\n", 2, "not of the form KEY = VALUE: jobs"},
        Row{"[lccfs-gc]\n= 3\n", 2, "not of the form KEY = VALUE: = 3"},
        Row{"[lccfs-gc]\njobs =\n", 2, "jobs needs a value"}, Row{"[lccfs-gc\n", 1, "a section is [PROGRAM]"},
        Row{"[ceph]\n", 1, "there is no section [ceph]; lccfs.conf(5) lists them"}}) {
    INFO(row.text);
    const DefaultsFile file(row.text);
    CHECK(Line({}).said == file.place(row.line) + row.says);
  }
  const DefaultsFile twice("label = a\nlabel = b\n");
  CHECK(Line({}).said ==
        twice.place(2) + "label is given a second time, after " + twice.place(1).substr(0, twice.place(1).size() - 2));
  CHECK(Line({"--help"}).said.starts_with("Usage:"));
}

TEST_CASE("a file of defaults that is named must be there, and a file") {
  for (const char* path : {"/nowhere/lccfs.conf", "/"}) {
    INFO(path);
    setenv("LCCFS_CONFIG", path, 1);
    CHECK(Line({}).said.starts_with(std::string(path) + ": cannot be read"));
  }
  setenv("LCCFS_CONFIG", "", 1);
  CHECK(Line({}).said.empty());
}

TEST_CASE("conf and id are defaults for all programs, and nothing to a local volume") {
  const DefaultsFile file("conf = /x/ceph.conf\nid = nova\n");
  CHECK(parse_address({"-p", "a"})->conf_file == "/x/ceph.conf");
  CHECK(parse_address({"-p", "a"})->client_id == "nova");
  CHECK(parse_address({"-p", "a", "--id", "b"})->client_id == "b");
  const auto local = parse_address({"--local", "/v"});
  REQUIRE(local);
  CHECK(local->conf_file.empty());
}

TEST_CASE("a file that a default names has an absolute path, wherever the program was started") {
  const DefaultsFile file("conf = ceph.conf\n");
  const auto address = parse_address({"-p", "a"});
  REQUIRE_FALSE(address);
  CHECK(address.error().context == file.place(1) + "conf: not an absolute path");
  CHECK(parse_address({"-p", "a", "-c", "ceph.conf"})->conf_file.ends_with("/ceph.conf"));
}

TEST_CASE("a command leaves out defaults that only other commands of its program know") {
  const auto said = [](const std::vector<std::string>& words) {
    options::CommandLine program({.name = "lccfs", .usage = "COMMAND", .summary = "Works.", .footer = ""});
    VolumeAddress address;
    options::add_address(program.add_command({.name = "df", .usage = "VOLUME", .summary = "Shows.", .footer = ""}),
                         address);
    program.add_command({.name = "top", .usage = "", .summary = "Shows.", .footer = ""});
    const auto text = program.parse(words);
    return text ? address.client_id : text.error().context;
  };
  for (const std::string section : {"", "[lccfs]\n"}) {
    INFO(section);
    const DefaultsFile file(section + "id = nova\n");
    CHECK(said({"df", "-p", "a"}) == "nova");
    CHECK(said({"top"}) == VolumeAddress().client_id);
  }
  const DefaultsFile wrong("[lccfs]\nnonsense = 1\n");
  CHECK(said({"top"}) == wrong.place(2) + "there is no key 'nonsense' in this section; lccfs.conf(5) lists them");
}

TEST_CASE("a word without an option's name is needed where a command wants one") {
  const auto said = [](const std::vector<std::string>& words) {
    options::CommandLine program({.name = "p", .usage = "COMMAND", .summary = "Works.", .footer = ""});
    std::string name;
    auto& call = program.add_command({.name = "call", .usage = "NAME", .summary = "Calls.", .footer = ""});
    call.operand("NAME", options::text(name), "whom", options::CommandLine::Operand::needed);
    const auto text = program.parse(words);
    return text ? name : text.error().context;
  };
  CHECK(said({"call", "me"}) == "me");
  CHECK(said({"call"}) == "NAME is missing (p call --help)");
  CHECK(said({"call", "me", "too"}) == "unexpected argument 'too' (p call --help)");
}

TEST_CASE("words without a name are taken in their order, and -h may be another option") {
  std::string first, second;
  bool human = false;
  const auto parse = [&](const std::vector<std::string>& words) {
    options::CommandLine line({.name = "program", .usage = "FIRST [SECOND]", .summary = "Works.", .footer = ""});
    line.group("Words");
    line.operand("FIRST", options::text(first), "the first");
    line.operand("SECOND", options::text(second), "the second");
    line.flag("-h,--human", human, "for people");
    const auto parsed = line.parse(words);
    return parsed ? *parsed : parsed.error().context;
  };
  CHECK(parse({"one", "-h", "--", "-two"}).empty());
  CHECK((first == "one" && second == "-two" && human));
  CHECK(parse({"one", "two", "three"}) == "unexpected argument 'three' (program --help)");
  const auto help = parse({"--help"});
  CHECK(help.contains("\n\nOperands:\n  FIRST "));
  CHECK(help.contains("  --help  "));
}

TEST_CASE("a volume may be named by something else than its address") {
  VolumeAddress address;
  const auto parse = [&address](const std::vector<std::string>& words) {
    address = {};
    options::CommandLine line({.name = "program", .usage = "VOLUME", .summary = "Works.", .footer = ""});
    bool has_path = false;
    options::add_address(line, address, [&has_path]() -> Result<> {
      return has_path ? Result<>{} : failure(ErrorCode::invalid, "which volume?");
    });
    line.group("Place");
    line.flag("--path", has_path, "instead of a volume");
    return line.parse(words).has_value();
  };
  CHECK((parse({"--id", "client.x", "--path"}) && address.pool.empty() && address.client_id == "x"));
  CHECK(address.conf_file == "/etc/ceph/ceph.conf");
  CHECK_FALSE(parse({"--id", "client.x"}));
  CHECK((parse({"-p", "given"}) && address.pool == "given"));
  CHECK((parse({"--local", "/v"}) && address.pool.empty()));
}
