// SPDX-License-Identifier: LGPL-2.1-or-later
// Which data requests are with librados, and which wait here.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

namespace lccfs::rados {

/// Bounds the data requests in flight without ever making a caller wait (librados' own bounds do: Connection lifts
/// them). A request is sent if those in flight are below the limits or its own object has none in flight; else it waits
/// in its object's line. With each answer the lines are served in turn. So nobody waits for the answer of another
/// object: one whose OSD lives gets on while thousands of requests hang on one that does not.
///
/// Requests of one object are sent in the order in which they came. Any thread; `send` is called without a lock held,
/// by whoever brings a request or an answer, and may itself do both.
class Admission {
 public:
  struct Limits {
    std::size_t requests = 0;
    std::size_t bytes = 0;
  };
  using Send = std::move_only_function<void()>;

  explicit Admission(Limits limits) : limits_(limits) {}

  void submit(const std::string& object, std::size_t size_bytes, Send send);
  /// To be called once for each request that was sent.
  void answered(const std::string& object, std::size_t size_bytes);

 private:
  struct Request {
    std::size_t size_bytes = 0;
    Send send;
  };
  struct Line {
    std::string object;
    std::list<Request> waiting;
    std::size_t in_flight = 0;
    bool is_sending = false;  ///< somebody sends one of its requests just now, and looks after the line behind that
    bool has_turn = false;    ///< in turns_, as is every line in which something waits while nobody sends
    std::list<Line*>::iterator turn;
  };

  bool has_room() const { return requests_ < limits_.requests && bytes_ < limits_.bytes; }
  void look_after(Line& line, std::unique_lock<std::mutex>& lock);
  void send_first(Line& line, std::unique_lock<std::mutex>& lock);
  void serve_in_turn(std::unique_lock<std::mutex>& lock);

  const Limits limits_;
  std::mutex mutex_;
  std::size_t requests_ = 0;  // in flight, as is bytes_
  std::size_t bytes_ = 0;
  std::unordered_map<std::string, Line> lines_;  // of the objects with requests in flight or waiting
  std::list<Line*> turns_;
};

}  // namespace lccfs::rados
