// SPDX-License-Identifier: LGPL-2.1-or-later
// One file of a volume and the clients A, B and C that lock it; what they do is judged by a model of locks. After all,
// a client D finds everything free.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "crash/lock_model.h"
#include "scripted/scripted_store.h"
#include "support/client_clock.h"
#include "support/fake_clock.h"

namespace lccfs::crash {

/// What a client does.
struct LockAct {
  enum class What {
    lock,           ///< or unlock; refused at once, unless it waits
    begin_to_wait,  ///< for the lock
    get_it,         ///< what it waited for
    close_process,  ///< the range locks of that owner go
    close,          ///< the handle; then the file is opened again
    increment,      ///< the number in the file
    die,
  };
  char client = 'A';
  What what = What::lock;
  LockRequest request = {};
};
using LockActs = std::vector<LockAct>;
std::string text_of(const LockAct& act);

/// No wait of the product's own takes the machine's time for long.
class QuickClock final : public test::FakeClock {
 public:
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override;
};

class LockWorld {
 public:
  /// A copy of a volume with that file.
  explicit LockWorld(const FileSystemOptions& options, std::string clients = "ABC");

  /// Waits for its answer.
  void perform(const LockAct& act);
  void perform(const LockActs& acts) {
    for (const auto& act : acts) perform(act);
  }
  /// What becomes of a client's steps; it is called before each.
  void set_script(char client, ScriptedClient::Hook script);
  ScriptedClient& store(char client) { return *party(client).store; }
  const std::string& inode_object() const { return inode_object_; }
  LockModel& model() { return model_; }

  /// With nothing in flight: everybody sees the locks of all others; then all are dropped, and nothing is left of them.
  /// What was wrong, in all.
  std::string conclude();

 private:
  struct Party {
    char name;
    std::shared_ptr<ScriptedClient> store;
    std::unique_ptr<test::ClientClock> clock;
    std::unique_ptr<FileSystem> fs;
    HandleId handle{};
    std::future<Result<>> waits{};
    LockRequest waits_for{};
  };
  Party& party(char name) { return parties_.at(name); }
  void join(char name);
  void judge_fence(const StepInfo& info);
  Result<> await(std::future<Result<>> answer, const std::string& what);
  void note(Party& party, const LockRequest& request, const Result<>& done);
  void lock(Party& party, LockRequest request);
  void close_process(Party& party, std::uint64_t owner);
  void close(Party& party);
  void increment(Party& party);
  void time_passes();
  void let_all_arrive();
  void probe(Party& party, LockRequest request);
  void probe_all();
  void drop_all();
  void take_all();
  void expect_no_keys();
  void end();

  const FileSystemOptions options_;
  QuickClock clock_;
  std::shared_ptr<ScriptedCluster> cluster_;
  std::string inode_object_;
  LockModel model_;
  std::atomic<unsigned> increments_ = 0;
  std::mutex time_mutex_;  // one at a time lets time pass
  bool is_over_ = false;   // nothing is to stay in flight
  std::map<char, Party> parties_;
};

}  // namespace lccfs::crash
