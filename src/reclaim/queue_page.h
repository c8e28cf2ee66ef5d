// SPDX-License-Identifier: LGPL-2.1-or-later
// The queue of one instance, read page by page. Blocking reads; any thread.
#pragma once

#include <string>
#include <vector>

#include "instance/liveness_poll.h"
#include "reclaim/traces.h"
#include "txn/volume_txn.h"

namespace lccfs::reclaim {

using txn::NumberedItem;

struct QueuePage {
  std::vector<NumberedItem> items;
  std::vector<std::string> damaged;  ///< one line each: keys that hold no item
  std::string last_key;              ///< where the next page continues
  bool more = false;
};
/// Of the items after `after`. No session object: an empty page.
Result<QueuePage> read_queue_page(const Query& query, InstanceId instance, const std::string& after);

/// All inodes of a range item.
std::vector<Ino> numbers_in(const format::QueueItem& range);

/// A range item of an instance that lives: it stands for inodes to come, and is nothing that waits for a collector.
bool is_intent(const Member& member, const NumberedItem& one);

/// Whether a pass is to handle an item now. The grace period only says how long a collector waits: what is retired, the
/// liveness poll has shown. Items of expired instances do not wait.
bool is_due(const Member& member, const NumberedItem& one, TimeSpec now, std::chrono::seconds grace);

}  // namespace lccfs::reclaim
