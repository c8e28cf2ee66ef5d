// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/examine.h"

#include <set>

namespace lccfs::reclaim {

namespace {

using Kind = Assessment::Kind;

/// All the traces whose steps must be over before anything is decided. not_over wins over over_since_now.
Result<Horizon::Verdict> judge_traces(Horizon& horizon, const Traces& inode) {
  std::vector<Token> tokens;
  for (const auto& pointer : inode.pointers) tokens.push_back(pointer.token);
  if (inode.sealed()) tokens.push_back(inode.state.token);
  if (inode.dead()) {
    for (const auto& [instance, number] : inode.step_numbers) tokens.push_back({instance, number});
  }
  auto all = Horizon::Verdict::over;
  for (const Token token : tokens) {
    LCCFS_TRY(const auto verdict, horizon.judge(token));
    if (verdict == Horizon::Verdict::not_over) return verdict;
    if (verdict == Horizon::Verdict::over_since_now) all = verdict;
  }
  return all;
}

Kind kind_of(const Assessment& assessment) {
  const auto& inode = assessment.inode;
  const bool named = assessment.names.total() > 0;
  if (inode.dead()) {
    if (named) return Kind::clear_names;
    // A dead directory's own d/ and x/ keys are handled first: the item that leads to them is in the queue.
    return inode.has_detached || inode.has_decisions ? Kind::wait : Kind::reclaim;
  }
  if (!named) return Kind::kill;
  return trim_of(assessment).needed() ? Kind::trim : Kind::right;
}

}  // namespace

Result<Assessment> examine(const Query& query, Horizon& horizon, Ino ino) {
  for (;;) {
    LCCFS_TRY(auto traces, read_traces(query, ino));
    Assessment assessment;
    if (!traces) {
      assessment.kind = Kind::gone;
      return assessment;
    }
    assessment.inode = std::move(*traces);
    // The root has no name, and needs none.
    if (ino == root_ino) {
      assessment.kind = Kind::right;
      return assessment;
    }
    LCCFS_TRY(const auto verdict, judge_traces(horizon, assessment.inode));
    if (verdict == Horizon::Verdict::over_since_now) continue;
    if (verdict == Horizon::Verdict::not_over) return assessment;
    if (assessment.inode.sealed()) {
      assessment.kind = Kind::settle_seal;
      return assessment;
    }
    LCCFS_TRY(assessment.names, count_names(query, assessment.inode));
    assessment.kind = kind_of(assessment);
    return assessment;
  }
}

Trim trim_of(const Assessment& assessment) {
  Trim trim;
  std::set<Ino> kept;
  for (const auto& pointer : assessment.inode.pointers) {
    const bool needed = assessment.names.by_parent.contains(pointer.parent) && kept.insert(pointer.parent).second;
    if (!needed) trim.drop.push_back(pointer);
  }
  const auto links = static_cast<std::uint32_t>(assessment.names.total());
  if (!assessment.inode.is_directory() && assessment.inode.attr.nlink != links) {
    trim.attr = assessment.inode.attr;
    trim.attr->nlink = links;
  }
  return trim;
}

}  // namespace lccfs::reclaim
