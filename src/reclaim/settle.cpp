// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/settle.h"

#include "reclaim/traces.h"
#include "txn/namespace_txn.h"

namespace lccfs::reclaim {

using format::DecisionRecord;
using format::StateRecord;

namespace {

/// A step that another client may have done, on an object that may be gone.
Result<bool> done_or_needless(const Result<StepResult>& step) {
  if (!step && step.error().code != ErrorCode::not_found) return std::unexpected(step.error());
  return true;
}

Result<bool> has_a_name(Instance& instance, Ino ino) {
  const Query query = instance.reader();
  LCCFS_TRY(const auto traces, read_traces(query, ino));
  if (!traces) return false;
  LCCFS_TRY(const auto names, count_names(query, *traces));
  return names.total() > 0;
}

}  // namespace

Result<bool> settle_seal(Instance& instance, Ino sealed, const StateRecord& seal) {
  const auto unseal = [&] { return done_or_needless(instance.run(txn::unseal(sealed, seal))); };
  const auto mark_dead = [&] { return done_or_needless(instance.run(txn::mark_dead(sealed, seal))); };
  const auto detached = format::detached_key(sealed, seal.token);
  const auto decision = format::decision_key(seal.token);
  const auto parent =
      instance.query({.object = format::inode_object(seal.parent), .ranges = {}, .keys = {detached, decision}});
  if (!parent && parent.error().code != ErrorCode::not_found) return std::unexpected(parent.error());
  if (!parent) {
    LCCFS_TRY(const bool named, has_a_name(instance, sealed));
    return named ? unseal() : mark_dead();
  }
  if (parent->keys.contains(detached)) return mark_dead();
  if (const auto decided = parent->keys.find(decision); decided != parent->keys.end()) {
    LCCFS_TRY(const auto record, format::decode<DecisionRecord>(decided->second));
    return record.kind == DecisionRecord::Kind::committed ? mark_dead() : unseal();
  }
  LCCFS_CHECK(instance.rely_on_directory(seal.parent));
  LCCFS_CHECK(done_or_needless(instance.run(txn::cancel_seal(seal.parent, sealed, seal.token))));
  return false;
}

}  // namespace lccfs::reclaim
