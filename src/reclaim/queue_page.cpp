// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/queue_page.h"

#include "format/object_names.h"

namespace lccfs::reclaim {

using format::QueueItem;

Result<QueuePage> read_queue_page(const Query& query, InstanceId instance, const std::string& after) {
  const auto session = format::session_object(instance);
  QueuePage page;
  LCCFS_TRY(const auto snapshot,
            objects::find_object(query, {.object = session, .ranges = {{"q/", after, keys_at_once}}}));
  if (!snapshot) return page;
  const auto& range = snapshot->ranges.front();
  for (const auto& [key, value] : range.entries) {
    const auto number = format::parse_queue_key(key);
    auto item = format::decode<QueueItem>(value);
    if (number && item) {
      page.items.push_back({*number, *item});
    } else {
      auto& line = page.damaged.emplace_back(session);
      line.append(": ").append(key);
      if (!item) line.append(": ").append(item.error().context);
    }
    page.last_key = key;
  }
  page.more = range.more && !range.entries.empty();
  return page;
}

std::vector<Ino> numbers_in(const QueueItem& range) {
  std::vector<Ino> inodes;
  for (Ino ino = range.ino; ino < range.end; ++ino.value) inodes.push_back(ino);
  return inodes;
}

bool is_intent(const Member& member, const NumberedItem& one) {
  return member.standing != Member::Standing::expired && one.item.kind == QueueItem::Kind::range;
}

bool is_due(const Member& member, const NumberedItem& one, TimeSpec now, std::chrono::seconds grace) {
  if (member.standing == Member::Standing::expired) return true;
  if (member.standing == Member::Standing::silent || is_intent(member, one)) return false;
  if (one.number >= member.lowest_running) return false;
  const auto logged = one.item.time.seconds;
  if (logged > now.seconds) return true;  // by a clock that is ahead: not to be kept for ever
  const auto age_seconds = static_cast<std::uint64_t>(now.seconds) - static_cast<std::uint64_t>(logged);
  return age_seconds >= static_cast<std::uint64_t>(grace.count());
}

}  // namespace lccfs::reclaim
