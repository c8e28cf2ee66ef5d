// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/data_removal.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"
#include "reclaim/recount.h"

namespace lccfs::reclaim {

DataRemoval::DataRemoval(Ino ino, Pass pass, std::shared_ptr<Unanswered> unanswered)
    : ino_(ino), pass_(std::move(pass)), unanswered_(std::move(unanswered)) {}

bool DataRemoval::send(ObjectIndex index, std::uint64_t bytes) {
  if (!pass_.pace.enter([this] { return is_in_vain(); })) return give_up(), false;
  {
    const Lock lock(mutex_);
    if (in_flight_++ == 0) heard_ = pass_.clock.elapsed();
  }
  pass_.store.remove_data(format::data_object(ino_, index),
                          [self = shared_from_this(), index, bytes](Result<> removed) {
                            self->answered(index, bytes, std::move(removed));
                          });
  return true;
}

Result<bool> DataRemoval::wait() {
  const std::stop_callback wake(pass_.stop, [this] {
    const Lock lock(mutex_);
    changed_.notify_all();
  });
  Lock lock(mutex_);
  while (!is_over()) {
    lock.unlock();
    if (pass_.stop.stop_requested() || is_in_vain()) give_up();
    lock.lock();
    pass_.clock.wait_for(changed_, lock, look_every,
                         [this]() REQUIRES(mutex_) { return is_over() || pass_.stop.stop_requested(); });
  }
  if (!result_) return std::unexpected(result_.error());
  return !is_given_up_;
}

std::vector<ObjectIndex> DataRemoval::removed() const {
  const Lock lock(mutex_);
  return removed_;
}

bool DataRemoval::is_in_vain() {
  pass_.each_second();
  const auto now = pass_.clock.elapsed();
  const auto patience = unanswered_->patience();
  const Lock lock(mutex_);
  if (in_flight_ == 0 || std::exchange(answers_seen_, answers_) != answers_) heard_ = now;
  return now - heard_ >= patience;
}

/// What is in flight takes none of the pace from now on.
void DataRemoval::give_up() {
  std::size_t unanswered = 0;
  {
    const Lock lock(mutex_);
    is_given_up_ = true;
    unanswered = in_flight_;
    if (unanswered == 0) return;
    pass_.pace.leave(unanswered);
    unanswered_->add(ino_);
  }
  if (pass_.stop.stop_requested()) return;
  log::warning(std::to_string(unanswered) + " data objects of " + format::inode_object(ino_) +
               ", which was removed, do not answer: they are left for a later pass");
}

void DataRemoval::answered(ObjectIndex index, std::uint64_t bytes, Result<> removed) {
  const Lock lock(mutex_);
  --in_flight_;
  ++answers_;
  if (is_given_up_) {
    if (in_flight_ == 0) unanswered_->answered(ino_);
    return;
  }
  pass_.pace.leave();
  if (removed) removed_.push_back(index);
  if (removed && pass_.tally != nullptr) {
    ++pass_.tally->data_objects_removed;
    pass_.tally->bytes_freed += bytes;
  }
  if (!removed && result_) result_ = std::move(removed);
  if (in_flight_ == 0) changed_.notify_all();
}

}  // namespace lccfs::reclaim
