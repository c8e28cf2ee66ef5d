// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/receiver.h"

#include <poll.h>

#include <utility>

#include "base/blocking.h"
#include "base/log.h"

namespace lccfs::fuse {

namespace {
/// From then on work goes to the pool, whose threads are more.
constexpr std::size_t most_blocked = 64;
constexpr std::chrono::seconds blocks_unannounced_after{1};
}  // namespace

void Receiver::run(std::function<bool()> receive) {
  receive_ = std::move(receive);
  turn_ = 1;
  receive_as(1);
  ended_.wait(false);
}

void Receiver::receive_as(std::uint64_t turn) {
  bool goes_on = true;
  while (turn_ == turn && goes_on) goes_on = receive_();
  if (turn_ != turn) {
    --blocked_;
  } else {
    ended_ = true;
    ended_.notify_all();
  }
}

bool Receiver::may_serve_here(int fd) const {
  pollfd requests{.fd = fd, .events = POLLIN, .revents = 0};
  return blocked_ < most_blocked && poll(&requests, 1, 0) == 0;
}

void Receiver::serve(std::move_only_function<void()> work) {
  auto turn = turn_.load();
  since_ = clock_.elapsed();
  served_ = turn;
  {
    const BeforeBlocking before([this, turn] { hand_over(turn); });
    work();
    work = nullptr;
  }
  served_.compare_exchange_strong(turn, 0);
}

void Receiver::hand_over(std::uint64_t turn) {
  auto expected = turn;
  ++blocked_;
  if (turn_.compare_exchange_strong(expected, turn + 1)) {
    threads_.post([this, turn] { receive_as(turn + 1); });
  } else {
    --blocked_;
  }
}

void Receiver::look() {
  const auto turn = served_.load();
  if (turn == 0 || turn != turn_ || clock_.elapsed() - since_.load() < blocks_unannounced_after) return;
  log::warning("a request holds up those behind it; another thread receives them");
  hand_over(turn);
}

}  // namespace lccfs::fuse
