// SPDX-License-Identifier: LGPL-2.1-or-later
// Which data requests are with librados, and which wait here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>

#include "base/mutex.h"

namespace lccfs::rados {

/// Bounds the data requests in flight without ever making a caller wait (librados' own bounds do: Connection lifts
/// them). What may not be sent yet waits in its object's line. Objects have places (placement groups): mostly it is
/// these that do not answer, with all their objects. A request is sent if
///  - all that is in flight is below `common`, of which one place may have no more than `place` and one object no more
///    than `object`: what hangs leaves room. Or else
///  - its place has less than `share` in flight, and its object less than `part` of that: so when the common room is
///    full, be it of what hangs for ever, every place that answers continues, and an object that hangs alone does not keep
///    the others of its place waiting; but never beyond `ceiling`, the last `reserve` of which is for places that answer,
///    which are those to which less than `share` has been sent since their last answer.
/// A dead place takes up its share and no more, however many of its objects are asked for: it takes
/// (ceiling - reserve - common) / share dead places until others have to have answered lately to continue.
///
/// Room that becomes free goes to the places in turn, and in each to its objects in turn. Requests of one object are
/// sent in the order in which they came. Any thread; `send` is called without a lock held, by the thread that brings a
/// request or an answer, and may itself do both.
class Admission {
 public:
  struct Amount {
    std::size_t requests = 0;
    std::size_t bytes = 0;
    bool is_below(const Amount& limit) const { return requests < limit.requests && bytes < limit.bytes; }
    Amount& operator+=(const Amount& more);
    Amount& operator-=(const Amount& less);
  };
  /// The last request that a limit lets in may pass it.
  struct Limits {
    Amount common, place, object;
    Amount share, part;
    Amount ceiling, reserve;
  };
  using PlaceId = std::uint64_t;
  using Send = std::move_only_function<void()>;

  explicit Admission(const Limits& limits) : limits_(limits) {}

  void submit(const std::string& object, PlaceId place, std::size_t size_bytes, Send send);
  /// To be called once for each request that was sent.
  void answered(const std::string& object, std::size_t size_bytes);
  /// From then on nothing is sent any more, and no `send` runs.
  void end();

 private:
  struct Place;
  struct Request {
    std::size_t size_bytes = 0;
    Send send;
  };
  /// Of one object.
  struct Line {
    Line(const std::string& its_object, Place& its_place) : object(its_object), place(its_place) {}
    const std::string object;
    Place& place;
    std::list<Request> waiting;
    Amount in_flight;
    bool is_sending = false;  ///< a thread sends one of its requests just now, and looks after the line after that
    bool has_turn = false;    ///< among its place's: something waits, no thread sends, and it has less than `object`
    std::list<Line*>::iterator turn;
  };
  struct Place {
    Amount in_flight;
    Amount unheard;        ///< what was sent to it since its last answer
    bool answers = false;  ///< it has done so, and `unheard` is below `share`
    std::list<Line*> turns;
    bool has_turn = false;  ///< in turns_: one of its lines has one, and it has less than `place`
    std::list<Place*>::iterator turn;
  };

  bool goes_at_once(const Line& line) const REQUIRES(mutex_);
  void send_off(Line& line, Request request) REQUIRES(mutex_);  // not held during its `send`
  void note_sent(Line& line, const Amount& request) REQUIRES(mutex_);
  void note_answered(Line& line, const Amount& request) REQUIRES(mutex_);
  void look_after(Line& line) REQUIRES(mutex_);
  void look_after(Place& place) REQUIRES(mutex_);
  void serve(Place& near) REQUIRES(mutex_);
  Line* next(Place& near) REQUIRES(mutex_);
  Line* next_in_share(Place& place) REQUIRES(mutex_);
  bool is_below_ceiling(const Place& place) const REQUIRES(mutex_);

  const Limits limits_;
  Mutex mutex_;
  Amount in_flight_ GUARDED_BY(mutex_);
  Amount doubtful_ GUARDED_BY(mutex_);                              // of it, what is with places that do not answer
  std::unordered_map<std::string, Line> lines_ GUARDED_BY(mutex_);  // of the objects with requests in flight or waiting
  // All there ever were: as many as the pool has placement groups.
  std::unordered_map<PlaceId, Place> places_ GUARDED_BY(mutex_);
  std::list<Place*> turns_ GUARDED_BY(mutex_);
  std::condition_variable sent_;
  std::size_t sending_ GUARDED_BY(mutex_) = 0;
  bool is_ended_ GUARDED_BY(mutex_) = false;
  bool held_back_ GUARDED_BY(mutex_) = false;  // some request may wait for the ceiling alone, or for nothing
};

/// The common room is as large as librados' own bounds. The ceiling leaves shares for about 200 dead placement groups.
inline constexpr std::size_t mib = 1U << 20;
inline constexpr Admission::Limits most_in_flight = {
    .common = {.requests = 1024, .bytes = 100 * mib},
    .place = {.requests = 256, .bytes = 25 * mib},
    .object = {.requests = 128, .bytes = 8 * mib},
    .share = {.requests = 32, .bytes = 4 * mib},
    .part = {.requests = 16, .bytes = 2 * mib},
    .ceiling = {.requests = 16384, .bytes = 1024 * mib},
    .reserve = {.requests = 2048, .bytes = 128 * mib},
};

}  // namespace lccfs::rados
