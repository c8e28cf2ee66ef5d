// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/admission.h"

#include <utility>

namespace lccfs::rados {

void Admission::submit(const std::string& object, std::size_t size_bytes, Send send) {
  std::unique_lock lock(mutex_);
  Line& line = lines_.try_emplace(object).first->second;
  line.object = object;
  line.waiting.push_back({size_bytes, std::move(send)});
  look_after(line, lock);
  serve_in_turn(lock);
}

void Admission::answered(const std::string& object, std::size_t size_bytes) {
  std::unique_lock lock(mutex_);
  --requests_;
  bytes_ -= size_bytes;
  Line& line = lines_.find(object)->second;
  --line.in_flight;
  look_after(line, lock);
  serve_in_turn(lock);
}

/// Sends what waits for nothing but its own object; the rest of the line gets its turn. A line without requests goes.
void Admission::look_after(Line& line, std::unique_lock<std::mutex>& lock) {
  if (line.is_sending) return;
  while (!line.waiting.empty() && line.in_flight == 0) send_first(line, lock);
  if (!line.waiting.empty() && !line.has_turn) {
    line.turn = turns_.insert(turns_.end(), &line);
    line.has_turn = true;
  }
  if (line.waiting.empty() && line.in_flight == 0) lines_.erase(lines_.find(line.object));
}

void Admission::send_first(Line& line, std::unique_lock<std::mutex>& lock) {
  if (line.has_turn) turns_.erase(line.turn);
  line.has_turn = false;
  Request request = std::move(line.waiting.front());
  line.waiting.pop_front();
  ++line.in_flight;
  ++requests_;
  bytes_ += request.size_bytes;
  line.is_sending = true;
  lock.unlock();
  request.send();
  request.send = nullptr;
  lock.lock();
  line.is_sending = false;
}

void Admission::serve_in_turn(std::unique_lock<std::mutex>& lock) {
  while (has_room() && !turns_.empty()) {
    Line& line = *turns_.front();
    send_first(line, lock);
    look_after(line, lock);
  }
}

}  // namespace lccfs::rados
