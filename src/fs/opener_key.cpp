// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/opener_key.h"

#include <algorithm>
#include <utility>

namespace lccfs {

namespace {
/// What is open for less pays nothing; nor does what is closed for less, and opened again.
constexpr std::chrono::seconds written_after{1};
constexpr std::chrono::seconds first_retry{1};
constexpr std::chrono::seconds longest_retry{8};
}  // namespace

OpenerKey::OpenerKey(Instance& instance) : instance_(instance), clock_(instance.clock()) {}

bool OpenerKey::is_used() const { return !instance_.read_only() && instance_.super().has(format::feature::openers); }

void OpenerKey::opened() {
  const Lock lock(mutex_);
  if (handles_++ == 0) since_ = clock_.elapsed();
}

void OpenerKey::closed() {
  const Lock lock(mutex_);
  if (--handles_ == 0) since_ = clock_.elapsed();
}

bool OpenerKey::is_open() const {
  const Lock lock(mutex_);
  return handles_ != 0;
}

OpenerKey::Todo OpenerKey::begin(bool lease_held) {
  if (!is_used() || instance_.fenced()) return Todo::nothing;
  const auto now = clock_.elapsed();
  const Lock lock(mutex_);
  const bool is_settled = handles_ != 0 ? is_known_ || lease_held : !may_stand_;
  if (is_settled || is_under_way_ || is_released_with_ || now - since_ < written_after || now < not_before_) {
    return Todo::nothing;
  }
  is_under_way_ = true;
  is_forgotten_ = false;
  if (handles_ == 0) return Todo::remove;
  return stands_ ? Todo::introduce : Todo::add;
}

void OpenerKey::added(bool well) {
  const Lock lock(mutex_);
  may_stand_ = true;  // also where the outcome is not known
  stands_ = well;
}

void OpenerKey::ended(Todo what, bool well) {
  const Lock lock(mutex_);
  is_under_way_ = false;
  pause_ =
      well ? std::chrono::nanoseconds(0) : std::clamp<std::chrono::nanoseconds>(2 * pause_, first_retry, longest_retry);
  not_before_ = clock_.elapsed() + pause_;
  if (what == Todo::remove) {
    may_stand_ = !well;
    stands_ = false;
  }
  is_known_ = what == Todo::introduce && well && !is_forgotten_;
}

bool OpenerKey::is_needed() const {
  const Lock lock(mutex_);
  return is_under_way_ || may_stand_;
}

bool OpenerKey::begin_release() {
  if (!is_used()) return false;
  const Lock lock(mutex_);
  is_released_with_ = handles_ != 0 && !is_under_way_;
  return is_released_with_;
}

void OpenerKey::end_release(bool well) {
  const Lock lock(mutex_);
  if (!std::exchange(is_released_with_, false)) return;
  may_stand_ = true;
  stands_ = is_known_ = well;
}

void OpenerKey::is_forgotten() {
  const Lock lock(mutex_);
  is_known_ = false;
  is_forgotten_ = true;
}

void OpenerKey::may_stand() {
  const Lock lock(mutex_);
  may_stand_ = true;
}

}  // namespace lccfs
