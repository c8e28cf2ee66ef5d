// SPDX-License-Identifier: LGPL-2.1-or-later
// How a pass reads inodes and queues: an object that does not answer keeps waiting what needs it, and nothing else.
#pragma once

#include <memory>
#include <stop_token>

#include "instance/instance.h"
#include "reclaim/unanswered.h"

namespace lccfs::reclaim {

/// Reads for an instance; the call itself waits for the answer. `interrupted`: given up, as it is to stop, or the object
/// does not answer (unanswered.h). Any thread.
objects::Query patient_reader(Instance& instance, std::shared_ptr<Unanswered> unanswered, std::stop_token stop);

}  // namespace lccfs::reclaim
