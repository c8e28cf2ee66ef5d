// SPDX-License-Identifier: LGPL-2.1-or-later
// What a pass would do. It decides by the same code as a pass (examine.h), and takes no step.
#include <set>

#include "instance/presence.h"
#include "objects/super.h"
#include "reclaim/collector.h"
#include "reclaim/examine.h"
#include "reclaim/queue_page.h"

namespace lccfs::reclaim {

using Kind = Assessment::Kind;
using format::DecisionRecord;
using format::QueueItem;

namespace {

class DryRun {
 public:
  DryRun(ObjectStore& store, Clock& clock, const CollectorOptions& options)
      : store_(store), clock_(clock), options_(options) {}

  Result<PassReport> run() {
    const auto began = clock_.elapsed();
    LCCFS_TRY(const auto super, objects::read_super(query_));
    LCCFS_CHECK(objects::use_data_pool(store_, super.record));
    object_size_bytes_ = super.record.object_size_bytes;
    uuid_ = super.record.uuid;
    LCCFS_TRY(auto poll, poll_liveness(store_, {}));
    LCCFS_CHECK(store_.sync_fences());
    LCCFS_CHECK(name_the_unheard(poll));
    horizon_.emplace(poll, [this](InstanceId whom) { return has_no_record(whom); });
    for (const auto& member : poll.members) LCCFS_CHECK(unless_damaged(look_at_queue(member)));
    LCCFS_CHECK(count_removable());
    report_.items_seen = report_.items_done + report_.items_left;
    report_.took = clock_.elapsed() - began;
    return std::move(report_);
  }

 private:
  /// A pass fences instances that are dead, or absent for a minute. Here all that do not watch count as expired.
  Result<> name_the_unheard(PollResult& poll) {
    for (auto& member : poll.members) {
      if (member.standing != Member::Standing::silent) continue;
      const OtherInstance other{member.id, member.record.host, member.record.pid};
      const auto presence = presence_of(store_, system_processes(), member.id, member.record);
      if (!presence && presence.error().code == ErrorCode::fenced) return std::unexpected(presence.error());
      if (!presence || *presence == Presence::watching) {  // not known, or there
        report_.silent.push_back(other);
        continue;
      }
      (*presence == Presence::dead ? report_.gone : report_.not_seen).push_back(other);
      member.standing = Member::Standing::expired;
    }
    return {};
  }

  Result<bool> has_no_record(InstanceId whom) {
    const auto key = format::instance_key(whom);
    LCCFS_TRY(const auto super, store_.query({.object = format::super_object, .keys = {key}}));
    return !super.keys.contains(key);
  }

  Result<> look_at_queue(const Member& member) {
    QueuePage page;
    do {
      LCCFS_TRY(page, read_queue_page(query_, member.id, page.last_key));
      report_.damaged.insert(report_.damaged.end(), page.damaged.begin(), page.damaged.end());
      for (const auto& one : page.items) {
        if (is_intent(member, one)) continue;
        const bool due = is_due(member, one, clock_.wall_time(), options_.grace);
        ++(due ? report_.items_done : report_.items_left);
        if (due) LCCFS_CHECK(look_at_item(one.item));
      }
    } while (page.more);
    return {};
  }

  Result<> look_at_item(const QueueItem& item) {
    if (item.kind == QueueItem::Kind::directory) return unless_damaged(look_at_directory(item.ino));
    if (item.kind == QueueItem::Kind::inode) return look_at_inode(item.ino);
    for (const Ino ino : numbers_in(item)) LCCFS_CHECK(look_at_inode(ino));
    return {};
  }

  Result<> look_at_directory(Ino directory) {
    LCCFS_CHECK(look_at_decisions(directory));
    return for_each_detached(query_, directory, [this](const format::DetachedKey& detached) -> Result<> {
      LCCFS_TRY(const auto verdict, horizon_->judge(detached.token));
      return verdict == Horizon::Verdict::not_retired ? Result<>() : look_at_inode(detached.ino);
    });
  }

  /// What has moved, and still stands under its old name.
  Result<> look_at_decisions(Ino directory) {
    const auto look_at = [&](Token token, const std::string& key, const Bytes& value) -> Result<> {
      LCCFS_TRY(const auto verdict, horizon_->judge(token));
      if (verdict == Horizon::Verdict::not_retired) return {};
      LCCFS_TRY(const auto decision, objects::decode_part<DecisionRecord>(format::inode_object(directory), key, value));
      if (decision.kind != DecisionRecord::Kind::committed) return {};
      LCCFS_TRY(const auto old_name, old_name_of(query_, uuid_, token, decision));
      return old_name ? look_at_inode(old_name->record.ino) : Result<>();
    };
    return for_each_decision(query_, directory, [&](Token token, const std::string& key, const Bytes& value) {
      return unless_damaged(look_at(token, key, value));
    });
  }

  /// Damage is reported, and what else there is is looked at.
  Result<> unless_damaged(Result<> done) {
    if (done || !is_damage(done.error())) return done;
    report_.damaged.push_back(done.error().context);
    return {};
  }

  /// As it will be once its marks are settled.
  Result<Assessment> assess(Ino ino) {
    LCCFS_TRY(auto assessment, examine(query_, *horizon_, ino));
    if (assessment.kind != Kind::settle_mark) return assessment;
    for (const auto& marked : assessment.names.marked) LCCFS_CHECK(has_mark(query_, uuid_, marked));
    assessment.kind = kind_once_settled(assessment);
    return assessment;
  }

  Result<> look_at_inode(Ino ino) {
    if (!seen_.insert(ino).second) return {};
    auto assessment = assess(ino);
    if (!assessment) return unless_damaged(std::unexpected(std::move(assessment).error()));
    if (assessment->kind == Kind::lost_parent) report_.damaged.push_back(describe_lost_parent(*assessment).context);
    if (assessment->kind == Kind::trim) ++report_.inodes_corrected;
    if (assessment->kind == Kind::clear_names) report_.names_removed += assessment->names.total();
    if (assessment->kind != Kind::kill && assessment->kind != Kind::reclaim) return {};
    removable_[ino] = std::move(assessment->inode);
    return removable_.size() == format::poll_limit ? count_removable() : Result<>{};
  }

  /// What some client has open would stay. Who is asked for a directory takes it to be dead, and forgets what it knows of
  /// it: so one that a pass would mark first is counted without a question.
  Result<> count_removable() {
    format::LivenessPoll call;
    for (const auto& [ino, inode] : removable_) {
      if (inode.dead() || !inode.is_directory()) call.inodes.push_back(ino);
    }
    PollResult poll;
    if (!call.inodes.empty()) {
      LCCFS_TRY(poll, poll_liveness(store_, call));
    }
    for (const auto& [ino, inode] : removable_) {
      if (poll.is_open(ino)) {
        ++report_.open_elsewhere;
        continue;
      }
      ++report_.inodes_removed;
      report_.data_objects_removed += inode.map.mapped();
      report_.bytes_freed += inode.map.occupied_bytes(object_size_bytes_, inode.size_bytes);
    }
    removable_.clear();
    return {};
  }

  ObjectStore& store_;
  Clock& clock_;
  const CollectorOptions& options_;
  const Query query_ = objects::reader_of(store_);
  std::uint64_t object_size_bytes_ = 0;
  format::VolumeUuid uuid_{};
  PassReport report_;
  std::optional<Horizon> horizon_;
  std::set<Ino> seen_;
  std::map<Ino, Inode> removable_;
};

}  // namespace

Result<PassReport> dry_run(ObjectStore& store, Clock& clock, const CollectorOptions& options) {
  return DryRun(store, clock, options).run();
}

}  // namespace lccfs::reclaim
