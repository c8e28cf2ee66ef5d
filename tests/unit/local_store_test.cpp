// SPDX-License-Identifier: LGPL-2.1-or-later
// What is special about the local store: its directory, its limits, and its processes. The port's contract is held by
// the conformance suite.
#include "store/local/local_store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <sstream>

#include "support/catch.h"
#include "support/temporary_folder.h"
#include "unit/local_store_child.h"

namespace lccfs {
namespace {

namespace fs = std::filesystem;

using test::TemporaryFolder;

std::unique_ptr<ObjectStore> open_volume(const std::string& path, bool create = true) {
  StoreOptions options;
  options.create = create;
  auto store = open_local_store(path, options);
  INFO((store ? std::string() : store.error().context));
  REQUIRE(store.has_value());
  return std::move(*store);
}

std::string open_outcome(const std::string& path, bool create) {
  StoreOptions options;
  options.create = create;
  const auto store = open_local_store(path, options);
  return store ? "success" : describe(store.error().code);
}

std::string outcome(ErrorCode code) { return describe(code); }
template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "success" : describe(result.error().code);
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::size_t count_entries(const fs::path& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), {}));
}

MetaTxn set(const std::string& object, const std::string& key, const std::string& value,
            std::vector<Guard> guards = {}) {
  return {object, "set", std::move(guards), {mutation::SetKey{key, value}}};
}

MetaSnapshot look(ObjectStore& store, const std::string& object, const std::string& key) {
  auto found = store.query({.object = object, .payload = true, .xattrs = true, .keys = {key}});
  REQUIRE(found.has_value());
  return std::move(*found);
}

std::string read_data(ObjectStore& store, const std::string& object) {
  std::array<char, 64> buffer{};
  std::promise<Result<std::size_t>> promise;
  store.read_data(object, 0, buffer, [&](Result<std::size_t> size) { promise.set_value(std::move(size)); });
  const auto size = promise.get_future().get();
  REQUIRE(size.has_value());
  return {buffer.data(), *size};
}

// ---- the directory

TEST_CASE("A directory that is missing or empty holds no volume, and stays as it is") {
  const TemporaryFolder directory;
  CHECK(open_outcome(directory.path() + "/none", false) == outcome(ErrorCode::not_found));
  CHECK(open_outcome(directory.path(), false) == outcome(ErrorCode::not_found));
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("A volume is made in a directory that is missing or empty, once") {
  const TemporaryFolder directory;
  for (int time = 0; time < 2; ++time) {
    const auto store = open_volume(directory.path() + "/new");
    CHECK(store->apply(set("Inode.1", "k", "v")).has_value());
  }
  CHECK(open_outcome(directory.path() + "/new", false) == "success");
}

TEST_CASE("A directory with something else in it is left alone") {
  const TemporaryFolder directory;
  write_file(directory.path() + "/letter.txt", "Dear");
  CHECK(open_outcome(directory.path(), true) == outcome(ErrorCode::exists));
  CHECK(open_outcome(directory.path(), false) == outcome(ErrorCode::not_found));
  CHECK(count_entries(directory.path()) == 1);
}

TEST_CASE("Neither a file nor a directory below a missing one becomes a volume") {
  const TemporaryFolder directory;
  write_file(directory.path() + "/file", "");
  CHECK(open_outcome(directory.path() + "/file", true) == outcome(ErrorCode::invalid));
  CHECK(open_outcome(directory.path() + "/a/b", true) == outcome(ErrorCode::not_found));
}

TEST_CASE("Making that was cut short can be done again") {
  const TemporaryFolder directory;
  write_file(directory.path() + "/lccfs-local.new", "LCC");
  CHECK(open_outcome(directory.path(), true) == "success");
}

TEST_CASE("A volume whose data are missing is refused, by who would make it, too") {
  const TemporaryFolder directory;
  open_volume(directory.path());
  const std::string data = directory.path() + "/data";
  fs::rename(data, directory.path() + "/elsewhere");
  for (const bool create : {false, true}) {
    StoreOptions options;
    options.create = create;
    const auto refused = open_local_store(directory.path(), options);
    REQUIRE_FALSE(refused);
    CHECK((refused.error().code == ErrorCode::corrupt && refused.error().context.contains("restore it from a copy")));
    CHECK_FALSE(fs::exists(data));
  }
  SECTION("until they are back") { fs::rename(directory.path() + "/elsewhere", data); }
  SECTION("but where there are no metadata either, making it was cut short") {
    fs::remove_all(directory.path() + "/metadata");
  }
  CHECK(open_outcome(directory.path(), true) == "success");
}

TEST_CASE("A marker tells a newer layout, and damage, from a volume") {
  const TemporaryFolder directory;
  open_volume(directory.path());
  const fs::path marker = directory.path() + "/lccfs-local";
  write_file(marker, "LCCFS local store, layout 2\n");
  CHECK(open_outcome(directory.path(), true) == outcome(ErrorCode::unsupported));
  for (const char* damaged : {"", "LCCFS local store, layout \n", "LCCFS local store, layout 1", "something"}) {
    write_file(marker, damaged);
    CHECK(open_outcome(directory.path(), true) == outcome(ErrorCode::corrupt));
  }
}

TEST_CASE("A directory that another user may change is refused") {
  const TemporaryFolder directory;
  open_volume(directory.path());
  for (const std::string part : {"", "/clients", "/data", "/metadata"}) {
    const std::string path = directory.path() + part;
    INFO(path);
    REQUIRE(chmod(path.c_str(), GENERATE(0757U, 0770U)) == 0);
    CHECK(open_outcome(directory.path(), false) == outcome(ErrorCode::permission_denied));
    REQUIRE(chmod(path.c_str(), 0700) == 0);
    if (geteuid() != 0) continue;
    REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
    CHECK(open_outcome(directory.path(), false) == outcome(ErrorCode::permission_denied));
    CHECK(open_outcome(directory.path(), true) == outcome(ErrorCode::permission_denied));
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
  }
  CHECK(open_outcome(directory.path(), false) == "success");
}

TEST_CASE("A part of a volume that is a symbolic link is refused") {
  const TemporaryFolder directory, elsewhere;
  open_volume(directory.path());
  write_file(elsewhere.path() + "/precious", "mine");
  fs::remove_all(directory.path() + "/clients");
  fs::create_directory_symlink(elsewhere.path(), directory.path() + "/clients");
  CHECK(open_outcome(directory.path(), false) != "success");
  CHECK(count_entries(elsewhere.path()) == 1);
}

TEST_CASE("A local volume has no pools") {
  const TemporaryFolder directory;
  CHECK(outcome(open_volume(directory.path())->use_data_pool("fast")) == outcome(ErrorCode::invalid));
}

TEST_CASE("A path longer than a socket's address serves notifies, too") {
  const TemporaryFolder directory;
  const std::string path = directory.path() + "/" + std::string(200, 'p');
  const auto store = open_volume(path);
  REQUIRE(store->apply(set("Session.1", "k", "v")).has_value());
  class Handler : public WatchHandler {
    void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) override { answer(payload + "!"); }
    void on_lost(Error) override {}
  };
  const auto watch = store->watch("Session.1", std::make_shared<Handler>());
  REQUIRE(watch.has_value());
  const auto reply = store->notify("Session.1", "hear", std::chrono::minutes(1));
  REQUIRE(reply.has_value());
  CHECK(reply->answers == std::vector<Bytes>{"hear!"});
}

// ---- what lasts

TEST_CASE("What was written is there when the volume is opened again, and versions keep rising") {
  const TemporaryFolder directory;
  std::uint64_t version = 0;
  for (int time = 0; time < 3; ++time) {
    const auto store = open_volume(directory.path());
    if (time) CHECK(look(*store, "Inode.1", "k").keys.at("k") == std::to_string(time - 1));
    const auto applied = store->apply(set("Inode.1", "k", std::to_string(time)));
    REQUIRE(applied.has_value());
    CHECK(applied->version > version);
    version = applied->version;
  }
}

TEST_CASE("A client of a process continues when another of the same process has ended") {
  const TemporaryFolder directory;
  const auto stays = open_volume(directory.path());
  CHECK(open_volume(directory.path())->apply(set("Inode.1", "k", "other's")).has_value());
  CHECK(look(*stays, "Inode.1", "k").keys.at("k") == "other's");
  CHECK(stays->apply(set("Inode.1", "k", "v")).has_value());
}

// ---- limits

TEST_CASE("The longest keys of the format fit, and longer ones than fit are refused") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  const std::string object = "Inode.18446744073709551615", name(255, 'n');
  for (const std::string& key : {"n/0123456789abcdef/" + name, "i/18446744073709551615/" + name, "u/" + name}) {
    CHECK(outcome(store->apply(set(object, key, std::string(65537, 'v')))) == "success");
    CHECK(look(*store, object, key).keys.at(key).size() == 65537);
  }
  const std::string fits(511 - object.size() - 1, 'f'), longer = fits + "f";
  CHECK(outcome(store->apply(set(object, fits, "v"))) == "success");
  CHECK(outcome(store->apply(set(object, longer, "v"))) == outcome(ErrorCode::invalid));
  CHECK(outcome(store->apply(set(object, "k", "v", {guard::KeyAbsent{longer}}))) == outcome(ErrorCode::invalid));
  CHECK(outcome(store->query({.object = object, .keys = {longer}})) == outcome(ErrorCode::invalid));
  CHECK(look(*store, object, fits).keys.at(fits) == "v");
}

/// Of this process, while it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit limit{most, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("Any number of writes of one object wait for its sync with few descriptors, be it made anew in between") {
  const bool made_anew = GENERATE(false, true);
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  const DescriptorLimit limit(200);
  constexpr unsigned writes = 20'000;
  constexpr char byte = 'x';
  std::vector<std::future<Result<>>> answers;
  const auto next_answer = [&] {
    auto answer = std::make_shared<std::promise<Result<>>>();
    answers.push_back(answer->get_future());
    return [answer](Result<> changed) { answer->set_value(std::move(changed)); };
  };
  for (unsigned number = 0; number < writes; ++number) {
    store->write_data("Data.3.0", 2 * number, {nullptr, &byte, 1}, next_answer());
    if (made_anew && number % 20 == 0) store->remove_data("Data.3.0", next_answer());
  }
  unsigned refused = 0;
  for (auto& answer : answers) refused += answer.get() ? 0 : 1;
  CHECK(refused == 0);
}

TEST_CASE("A name that no file can have is refused") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("../clients/x"),
                                  std::string("a\0b", 3), std::string(256, 'n')}) {
    CHECK(outcome(store->apply(set(name, "k", "v"))) == outcome(ErrorCode::invalid));
    std::promise<std::string> answer;
    store->remove_data(name, [&](Result<> result) { answer.set_value(outcome(result)); });
    CHECK(answer.get_future().get() == outcome(ErrorCode::invalid));
  }
}

// ---- group commit

TEST_CASE("Transactions that are committed together succeed and fail each on its own") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  constexpr unsigned rounds = 300;
  std::vector<std::future<std::string>> answers;
  const auto send = [&](MetaTxn txn) {
    auto promise = std::make_shared<std::promise<std::string>>();
    answers.push_back(promise->get_future());
    store->apply_async(std::move(txn), [promise](Result<Applied> result) { promise->set_value(outcome(result)); });
  };
  for (unsigned round = 0; round < rounds; ++round) {
    const std::string object = "Inode." + std::to_string(round), number = std::to_string(round);
    send({object, "make", {}, {mutation::CreateExclusive{}, mutation::SetKey{"k", number}}});
    send({object, "refused", {guard::KeyEquals{"k", "no"}}, {mutation::SetKey{"a", "1"}, mutation::SetKey{"k", "1"}}});
    send({object, "more", {guard::KeyEquals{"k", number}}, {mutation::SetKey{"b", number}}});
    send({object, "make", {}, {mutation::CreateExclusive{}, mutation::SetKey{"k", "again"}}});
  }
  for (unsigned round = 0; round < rounds; ++round) {
    CHECK(answers[4 * round].get() == "success");
    CHECK(answers[4 * round + 1].get() == outcome(ErrorCode::guard_failed));
    CHECK(answers[4 * round + 2].get() == "success");
    CHECK(answers[4 * round + 3].get() == outcome(ErrorCode::exists));
    const auto found =
        store->query({.object = "Inode." + std::to_string(round), .ranges = {{.prefix = {}, .after = {}, .limit = 9}}});
    REQUIRE(found.has_value());
    const std::string number = std::to_string(round);
    CHECK(found->ranges[0].entries == std::vector<std::pair<std::string, Bytes>>{{"b", number}, {"k", number}});
  }
}

// ---- other processes

/// local_store_writer, with what it has printed. Ends with the test.
class Writer {
 public:
  explicit Writer(const std::string& directory) {
    std::array<int, 2> output{};
    REQUIRE(pipe2(output.data(), O_CLOEXEC) == 0);
    const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "local_store_writer";
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(output[1], STDOUT_FILENO);
      execl(program.c_str(), program.c_str(), directory.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(output[1]);
    output_ = fdopen(output[0], "r");
    identity_ = line();
  }
  ~Writer() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fclose(output_);
  }

  const Bytes& identity() const { return identity_; }
  pid_t pid() const { return pid_; }
  void read_lines(unsigned count) {
    while (count-- > 0) REQUIRE(note(line()));
  }
  /// Returns when all its threads stand still.
  void stop() {
    int status = 0;
    REQUIRE(kill(pid_, SIGSTOP) == 0);
    REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_);
    REQUIRE(WIFSTOPPED(status));
  }
  /// Kills it, and reads what it had still printed.
  void kill_now() {
    REQUIRE(kill(pid_, SIGKILL) == 0);
    CHECK(wait_for_signal() == SIGKILL);
    while (note(line())) {
    }
  }
  /// The signal that ended it.
  int wait_for_signal() {
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  /// The last number that was acknowledged, by kind (m, d) and writer.
  const std::map<std::pair<char, unsigned>, unsigned>& acknowledged() const { return acknowledged_; }

 private:
  std::string line() {
    std::array<char, 256> buffer{};
    if (!fgets(buffer.data(), buffer.size(), output_)) return {};
    std::string text = buffer.data();
    if (!text.ends_with('\n')) return {};
    text.pop_back();
    return text;
  }
  bool note(const std::string& text) {
    std::istringstream fields(text);
    char kind = 0;
    unsigned writer = 0, number = 0;
    if (!(fields >> kind >> writer >> number)) return false;
    acknowledged_[{kind, writer}] = number;
    return true;
  }

  pid_t pid_ = -1;
  FILE* output_ = nullptr;
  Bytes identity_;
  std::map<std::pair<char, unsigned>, unsigned> acknowledged_;
};

void check_nothing_acknowledged_is_lost(ObjectStore& store, const Writer& writer) {
  for (const auto& [what, number] : writer.acknowledged()) {
    if (what.first == 'd') {
      CHECK(read_data(store, test::writers_data(what.second)) >= test::number_text(number));
      continue;
    }
    const auto found = look(store, test::writers_metadata(what.second), "k");
    CHECK(found.payload >= test::number_text(number));
    CHECK(found.xattrs.at("x") == found.payload);
    CHECK(found.keys.at("k") == found.payload);
  }
}

TEST_CASE("Killed at any moment, a process loses nothing that was acknowledged and leaves no half transaction") {
  const TemporaryFolder directory;
  for (unsigned lines = 1; lines < 40; lines += 3) {
    Writer writer(directory.path());
    writer.read_lines(lines);
    writer.kill_now();
    const auto store = open_volume(directory.path());
    check_nothing_acknowledged_is_lost(*store, writer);
  }
}

TEST_CASE("One process is killed while another one writes: the other continues") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  for (int time = 0; time < 10; ++time) {
    Writer writer(directory.path());
    writer.read_lines(10);
    for (int step = 0; step < 30; ++step) {
      if (step == 15) writer.kill_now();
      CHECK(store->apply(set("Inode.1", "k", std::to_string(step))).has_value());
    }
    check_nothing_acknowledged_is_lost(*store, writer);
  }
}

TEST_CASE("A fence kills the client's process, even one that is stopped in the middle of its steps") {
  const bool stopped = GENERATE(false, true);
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  for (int time = 0; time < 5; ++time) {
    Writer writer(directory.path());
    writer.read_lines(5);
    if (stopped) writer.stop();
    CHECK(store->presence(test::writers_session, writer.identity()).value() == Presence::watching);
    CHECK(outcome(store->fence(writer.identity())) == "success");
    CHECK(store->presence(test::writers_session, writer.identity()).value() == Presence::dead);
    CHECK(writer.wait_for_signal() == SIGKILL);
    CHECK(store->apply(set("Inode.1", "k", "v")).has_value());
  }
}

TEST_CASE("A watcher that died is not waited for") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  Writer writer(directory.path());
  const auto alive = store->notify(test::writers_session, "?", std::chrono::minutes(1));
  REQUIRE(alive.has_value());
  CHECK(alive->answers == std::vector<Bytes>{"here"});
  writer.kill_now();
  const auto dead = store->notify(test::writers_session, "?", std::chrono::hours(1));
  REQUIRE(dead.has_value());
  CHECK(dead->answers.empty());
  CHECK(dead->silent == 0);
  CHECK(store->presence(test::writers_session, writer.identity()).value() == Presence::dead);
}

TEST_CASE("A watcher that is stopped is silent") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  Writer writer(directory.path());
  writer.stop();
  const auto reply = store->notify(test::writers_session, "?", std::chrono::milliseconds(20));
  REQUIRE(reply.has_value());
  CHECK(reply->silent == 1);
  CHECK(store->presence(test::writers_session, writer.identity()).value() == Presence::watching);
}

TEST_CASE("What dead clients have left is cleared away by the next one") {
  const TemporaryFolder directory;
  const fs::path clients = directory.path() + "/clients";
  for (int time = 0; time < 3; ++time) Writer(directory.path()).kill_now();
  const auto store = open_volume(directory.path());
  CHECK(count_entries(clients) == 2);  // its own file and socket
}

TEST_CASE("A fence of a client that is gone kills nobody, whoever has its process number now") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  const Bytes gone = open_volume(directory.path())->identity();  // a client of this very process
  CHECK(outcome(store->fence(gone)) == "success");

  const Writer bystander(directory.path());
  const std::string others_id(32, '0');
  const std::string reused = others_id + " " + std::to_string(bystander.pid()) + " 1";
  CHECK(outcome(store->fence(reused)) == "success");
  CHECK(store->presence(test::writers_session, bystander.identity()).value() == Presence::watching);
}

TEST_CASE("A fence ends no process that does not hold the client's file") {
  const TemporaryFolder directory, elsewhere;
  const auto store = open_volume(directory.path());
  Writer bystander(elsewhere.path());
  const std::string named = directory.path() + "/clients/" + bystander.identity().substr(0, 32);
  const int file = ::open(named.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::flock(file, LOCK_EX) == 0);  // by this process, and not by the one that the identity names
  CHECK(outcome(store->fence(bystander.identity())) == outcome(ErrorCode::permission_denied));
  ::close(file);
  bystander.read_lines(100);  // more than a pipe may hold of a dead one
  CHECK(::kill(bystander.pid(), 0) == 0);
}

TEST_CASE("A client that lives, but whose file is gone, is fenced") {
  const TemporaryFolder directory;
  const auto store = open_volume(directory.path());
  REQUIRE(store->apply(set("Inode.1", "k", "before")).has_value());
  const std::string id = store->identity().substr(0, 32);
  fs::remove(fs::path(directory.path()) / "clients" / id);  // as dead as it can look
  const auto other = open_volume(directory.path());
  CHECK(outcome(store->apply(set("Inode.1", "k", "after"))) == outcome(ErrorCode::fenced));
  CHECK(outcome(store->query({.object = "Inode.1"})) == outcome(ErrorCode::fenced));
  CHECK(look(*other, "Inode.1", "k").keys.at("k") == "before");
}

}  // namespace
}  // namespace lccfs
