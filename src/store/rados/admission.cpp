// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/admission.h"

#include <utility>

namespace lccfs::rados {

Admission::Amount& Admission::Amount::operator+=(const Amount& more) {
  requests += more.requests;
  bytes += more.bytes;
  return *this;
}

Admission::Amount& Admission::Amount::operator-=(const Amount& less) {
  requests -= less.requests;
  bytes -= less.bytes;
  return *this;
}

void Admission::submit(const std::string& object, PlaceId place, std::size_t size_bytes, Send send) {
  const Lock lock(mutex_);
  Line& line = lines_.try_emplace(object, object, places_[place]).first->second;
  Place& near = line.place;  // it stays, a line may go
  if (goes_at_once(line)) {
    send_off(line, {size_bytes, std::move(send)});
  } else {
    line.waiting.push_back({size_bytes, std::move(send)});
    look_after(line);
  }
  serve(near);
}

/// Nearly always so: nothing waits anywhere.
bool Admission::goes_at_once(const Line& line) const {
  if (is_ended_) return false;
  return turns_.empty() && line.waiting.empty() && !line.is_sending && in_flight_.is_below(limits_.common) &&
         line.place.in_flight.is_below(limits_.place) && line.in_flight.is_below(limits_.object);
}

void Admission::answered(const std::string& object, std::size_t size_bytes) {
  const Lock lock(mutex_);
  Line& line = lines_.find(object)->second;
  Place& near = line.place;
  note_answered(line, {1, size_bytes});
  look_after(line);
  serve(near);
}

void Admission::end() {
  Lock lock(mutex_);
  is_ended_ = true;
  lock.wait(sent_, [this]() REQUIRES(mutex_) { return sending_ == 0; });
}

void Admission::send_off(Line& line, Request request) {
  note_sent(line, {1, request.size_bytes});
  line.is_sending = true;
  ++sending_;
  mutex_.unlock();
  request.send();
  request.send = nullptr;
  mutex_.lock();
  if (--sending_ == 0 && is_ended_) sent_.notify_all();
  line.is_sending = false;
  look_after(line);
}

void Admission::note_sent(Line& line, const Amount& request) {
  Place& place = line.place;
  in_flight_ += request;
  line.in_flight += request;
  place.in_flight += request;
  place.unheard += request;
  if (!place.answers) {
    doubtful_ += request;
  } else if (!place.unheard.is_below(limits_.share)) {
    place.answers = false;
    doubtful_ += place.in_flight;
  }
}

void Admission::note_answered(Line& line, const Amount& request) {
  Place& place = line.place;
  if (!place.answers) doubtful_ -= place.in_flight;
  in_flight_ -= request;
  line.in_flight -= request;
  place.in_flight -= request;
  place.unheard = {};
  place.answers = true;
}

/// Gives a line its turn, at the end, if it may have one. A line without requests goes.
void Admission::look_after(Line& line) {
  Place& place = line.place;
  const bool takes_turns = !line.waiting.empty() && !line.is_sending && line.in_flight.is_below(limits_.object);
  if (takes_turns && !line.has_turn) line.turn = place.turns.insert(place.turns.end(), &line);
  if (!takes_turns && line.has_turn) place.turns.erase(line.turn);
  line.has_turn = takes_turns;
  if (line.waiting.empty() && line.in_flight.requests == 0 && !line.is_sending) lines_.erase(lines_.find(line.object));
  look_after(place);
}

void Admission::look_after(Place& place) {
  const bool takes_turns = !place.turns.empty() && place.in_flight.is_below(limits_.place);
  if (takes_turns && !place.has_turn) place.turn = turns_.insert(turns_.end(), &place);
  if (!takes_turns && place.has_turn) turns_.erase(place.turn);
  place.has_turn = takes_turns;
}

/// `near` is where something has changed.
void Admission::serve(Place& near) {
  while (Line* const line = is_ended_ ? nullptr : next(near)) {
    Place& place = line->place;
    place.turns.erase(line->turn);
    line->has_turn = false;
    if (std::exchange(place.has_turn, false)) turns_.erase(place.turn);
    look_after(place);  // at the end
    Request request = std::move(line->waiting.front());
    line->waiting.pop_front();
    send_off(*line, std::move(request));
    // Meanwhile all that its object had in flight may have been answered, and others may have taken that room: no answer
    // would bring on the rest of its line.
    if (&place != &near && next_in_share(place) != nullptr) held_back_ = true;
  }
}

Admission::Line* Admission::next(Place& near) {
  if (in_flight_.is_below(limits_.common)) return turns_.empty() ? nullptr : turns_.front()->turns.front();
  if (!held_back_) return next_in_share(near);
  held_back_ = false;
  for (Place* const place : turns_) {
    if (Line* const line = next_in_share(*place)) {
      held_back_ = true;  // perhaps others, too
      return line;
    }
  }
  return nullptr;
}

Admission::Line* Admission::next_in_share(Place& place) {
  if (!place.in_flight.is_below(limits_.share)) return nullptr;
  for (Line* const line : place.turns) {  // those that have a part are few: all of them have less than a share
    if (!line->in_flight.is_below(limits_.part)) continue;
    if (is_below_ceiling(place)) return line;
    held_back_ = true;
    return nullptr;
  }
  return nullptr;
}

bool Admission::is_below_ceiling(const Place& place) const {
  if (!in_flight_.is_below(limits_.ceiling)) return false;
  return place.answers || doubtful_.is_below({limits_.ceiling.requests - limits_.reserve.requests,
                                              limits_.ceiling.bytes - limits_.reserve.bytes});
}

}  // namespace lccfs::rados
