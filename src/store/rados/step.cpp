// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/step.h"

namespace lccfs::rados {

void RequestsInFlight::drop_request() {
  if (requests_.fetch_sub(1) == 1) requests_.notify_all();
}

void RequestsInFlight::wait_for_none() {
  for (auto count = requests_.load(); count != 0; count = requests_.load()) requests_.wait(count);
}

void Step::completed(librados::completion_t, void* step) {
  Step* const self = static_cast<Step*>(step);
  self->end(self->completion_->get_return_value(), self->completion_->get_version64());
}

void Step::end(int status, std::uint64_t version) {
  std::unique_ptr<Step> owner(this);
  RequestsInFlight& in_flight = in_flight_;
  const bool is_waited_for = at_the_end_ == AtTheEnd::is_waited_for;
  completion_->release();
  finish(status, version);
  owner.reset();
  if (is_waited_for) in_flight.drop_request();
}

}  // namespace lccfs::rados
