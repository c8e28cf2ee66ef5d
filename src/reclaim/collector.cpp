// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/collector.h"

#include <set>
#include <string>

#include "reclaim/round.h"

namespace lccfs::reclaim {

namespace {
/// Each round finds what the last has left it: a tree so deep takes another pass.
constexpr unsigned most_rounds = 64;

/// Nothing was done, and another client may be able to. Nobody is, about one that watches and says nothing.
bool was_in_vain(const PassReport& report) {
  return (report.is_for_others || report.refused != 0) && !did_something(report);
}
}  // namespace

bool did_something(const PassReport& report) {
  return report.items_done + report.inodes_removed + report.data_objects_removed + report.names_removed +
             report.inodes_corrected + report.instances_removed + report.gone.size() !=
         0;
}

Collector::Collector(Instance& instance, const CollectorOptions& options)
    : instance_(instance), options_(options), unanswered_(std::make_shared<Unanswered>()) {}

bool Collector::another_is_at_work(std::chrono::nanoseconds interval) const {
  const auto last = instance_.last_poll();
  return last && instance_.clock().elapsed() - *last < interval;
}

Result<PassReport> Collector::pass(const std::stop_token& stop, const OnGarbageRemoved& on_removed) {
  const auto began = instance_.clock().elapsed();
  PassReport report;
  Tally tally;
  tally.on_removed = on_removed;
  const auto done = run_rounds(tally, report, stop);
  tally.tell();  // no other thread is at work any more: all of it is told now, whatever has failed
  got_nowhere_ = true;
  if (!done) return std::unexpected(done.error());
  report.items_seen = report.items_done + report.items_left;
  report.inodes_removed = tally.inodes_removed;
  report.data_objects_removed = tally.data_objects_removed;
  report.bytes_freed = tally.bytes_freed;
  report.names_removed = tally.names_removed;
  report.inodes_corrected = tally.inodes_corrected;
  report.refused = tally.refusals.count();
  report.refusal = tally.refusals.first();
  report.took = instance_.clock().elapsed() - began;
  got_nowhere_ = was_in_vain(report);
  return report;
}

Result<> Collector::run_rounds(Tally& tally, PassReport& report, const std::stop_token& stop) {
  const auto turn = got_nowhere_ ? Instance::Turn::leaves : Instance::Turn::takes;
  Pace pace(instance_.clock(), options_.jobs, options_.operations_per_second, stop);
  const Recount recount(instance_, pace, tally, unanswered_, stop);
  std::set<std::string> damage_told;
  bool more = true;
  for (unsigned rounds = 0; more && rounds < most_rounds && !stop.stop_requested(); ++rounds) {
    const auto round = Round(instance_, options_, recount, report, damage_told, turn, stop).run();
    if (!round && round.error().code == ErrorCode::interrupted) break;  // a read was given up, as the pass is to stop
    LCCFS_TRY(more, round);
  }
  return {};
}

}  // namespace lccfs::reclaim
