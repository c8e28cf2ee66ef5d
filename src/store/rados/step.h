// SPDX-License-Identifier: LGPL-2.1-or-later
// What every request in flight shares: its completion, and its place among the client's own steps.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <rados/librados.hpp>
#include <string>

namespace lccfs::rados {

/// Counts requests in flight, and knows which objects have a write of ours under way. Any thread.
///
/// Why: RADOS lets a read overtake an earlier write that waits for a degraded object, unless it is told to keep the
/// order, which costs. So a read asks for order only where a write of ours is under way. Objects share slots; a
/// write whose outcome stays unknown holds its slot for good.
class RequestsInFlight {
 public:
  void add_request() { requests_.fetch_add(1); }
  void drop_request();
  void wait_for_none();

  void add_write(const std::string& object) { slot(object).fetch_add(1); }
  void drop_write(const std::string& object) { slot(object).fetch_sub(1); }
  bool has_write(const std::string& object) { return slot(object).load() != 0; }

 private:
  std::atomic<std::size_t>& slot(const std::string& object) {
    return writes_[std::hash<std::string>{}(object) % writes_.size()];
  }

  std::atomic<std::size_t> requests_{0};
  std::array<std::atomic<std::size_t>, 1024> writes_{};
};

/// A request from its submission to its answer; owns itself meanwhile.
class Step {
 public:
  /// Whether the end of the connection waits for the answer, or drops it with the request: nothing is called then, and
  /// the step stays in memory (librados forgets it).
  enum class AtTheEnd { is_waited_for, is_dropped };
  explicit Step(RequestsInFlight& in_flight, AtTheEnd at_the_end = AtTheEnd::is_waited_for)
      : in_flight_(in_flight), at_the_end_(at_the_end) {}
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// `send(completion)` hands the request to librados and answers its status.
  template <class Send>
  static void submit(std::unique_ptr<Step> step, Send send) {
    Step* const raw = step.release();  // from here on the completion's
    if (raw->at_the_end_ == AtTheEnd::is_waited_for) raw->in_flight_.add_request();
    raw->completion_ = librados::Rados::aio_create_completion(raw, &Step::completed);
    if (const int status = send(raw->completion_); status < 0) raw->end(status, 0);
  }

 protected:
  /// `status` as librados has it: negative is an error, positive a length or a passed comparison.
  virtual void finish(int status, std::uint64_t version) = 0;
  RequestsInFlight& in_flight() { return in_flight_; }

 private:
  static void completed(librados::completion_t, void* step);
  void end(int status, std::uint64_t version);

  RequestsInFlight& in_flight_;
  const AtTheEnd at_the_end_;
  librados::AioCompletion* completion_ = nullptr;
};

}  // namespace lccfs::rados
