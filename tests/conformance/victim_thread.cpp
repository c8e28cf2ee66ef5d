// SPDX-License-Identifier: LGPL-2.1-or-later
#include <future>
#include <thread>

#include "conformance/victim.h"

namespace lccfs::conformance {
namespace {

class VictimThread : public Victim {
 public:
  explicit VictimThread(std::shared_ptr<ObjectStore> client) : client_(std::move(client)) {
    std::promise<void> ready;
    auto is_ready = ready.get_future();
    thread_ = std::jthread([this, ready = std::move(ready)]() mutable {
      ended_by_ = write_until_stopped(*client_, stop_, [&] { ready.set_value(); });
    });
    is_ready.get();  // throws if the victim ended before it was ready
  }
  ~VictimThread() override { VictimThread::end(); }

  Bytes identity() override { return client_->identity(); }
  void wait_until_over() override {
    if (thread_.joinable()) thread_.join();
    CHECK(ended_by_ == outcome(ErrorCode::fenced));
  }
  void end() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  const std::shared_ptr<ObjectStore> client_;
  std::atomic<bool> stop_{false};
  std::string ended_by_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Victim> start_victim_thread(std::shared_ptr<ObjectStore> client) {
  return std::make_unique<VictimThread>(std::move(client));
}

}  // namespace lccfs::conformance
