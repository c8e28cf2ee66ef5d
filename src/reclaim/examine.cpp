// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/examine.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace lccfs::reclaim {

Horizon::Horizon(const PollResult& poll, Resolve resolve) : resolve_(std::move(resolve)) {
  for (const auto& member : poll.members) {
    if (member.standing == Member::Standing::expired) {
      expired_.insert(member.id);
    } else {
      lowest_running_[member.id] = member.lowest_running;
    }
  }
}

Result<Horizon::Verdict> Horizon::judge(Token token) {
  if (const auto living = lowest_running_.find(token.instance); living != lowest_running_.end()) {
    return token.number < living->second ? Verdict::retired : Verdict::not_retired;
  }
  {
    const Lock lock(mutex_);
    if (expired_.contains(token.instance)) return Verdict::retired;
  }
  LCCFS_TRY(const bool expired, resolve_(token.instance));
  if (!expired) return Verdict::not_retired;
  const Lock lock(mutex_);
  expired_.insert(token.instance);
  return Verdict::retired_since_now;
}

namespace {

using Kind = Assessment::Kind;

/// not_retired wins over retired_since_now.
Result<Horizon::Verdict> judge(Horizon& horizon, const std::vector<Token>& tokens) {
  auto all = Horizon::Verdict::retired;
  for (const Token token : tokens) {
    LCCFS_TRY(const auto verdict, horizon.judge(token));
    if (verdict == Horizon::Verdict::not_retired) return verdict;
    if (verdict == Horizon::Verdict::retired_since_now) all = verdict;
  }
  return all;
}

/// All the traces in it whose steps must be retired before anything is decided.
std::vector<Token> traces_of(const Inode& inode) {
  std::vector<Token> tokens;
  tokens.reserve(inode.pointers.size());
  for (const auto& pointer : inode.pointers) tokens.push_back(pointer.token);
  if (inode.sealed()) tokens.push_back(inode.state.token);
  if (inode.dead()) {
    for (const auto& [instance, number] : inode.step_numbers) tokens.push_back({instance, number});
  }
  return tokens;
}

/// The one that is kept of several to one directory. An older one to the root may lead to that which was lost.
std::map<Ino, Token> youngest_of(const std::vector<objects::BackPointer>& pointers) {
  std::map<Ino, Token> youngest;
  for (const auto& pointer : pointers) {
    auto& token = youngest[pointer.parent];
    token = std::max(token, pointer.token);
  }
  return youngest;
}

/// Of what is linked and unlinked all the time some trace is never retired, and each link leaves one more. One that is
/// retired is nobody's to take back. The first one stays: a directory needs it.
Result<std::vector<objects::BackPointer>> doubles_of(Horizon& horizon, const Inode& inode) {
  std::vector<objects::BackPointer> retired;
  for (const auto& pointer : inode.pointers) {
    LCCFS_TRY(const auto verdict, horizon.judge(pointer.token));
    if (verdict != Horizon::Verdict::retired) continue;
    retired.push_back(pointer);
  }
  const auto youngest = youngest_of(retired);
  std::erase_if(retired, [&](const objects::BackPointer& pointer) {
    return pointer.key.empty() || pointer.token == youngest.at(pointer.parent);
  });
  return retired;
}

Kind kind_of(const Assessment& assessment) {
  if (!assessment.names.marked.empty()) return Kind::settle_mark;
  return kind_once_settled(assessment);
}

/// Rule 4: an answer that rests on two reads, and is followed by no step that guards the first of them.
Result<bool> is_unchanged(const Query& query, const Inode& inode) {
  LCCFS_TRY(const auto again, read_traces(query, inode.ino));
  return again && again->version == inode.version;
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
    LCCFS_TRY(const auto verdict, judge(horizon, traces_of(assessment.inode)));
    if (verdict == Horizon::Verdict::retired_since_now) continue;
    if (verdict == Horizon::Verdict::not_retired) {
      LCCFS_TRY(assessment.doubles, doubles_of(horizon, assessment.inode));
      return assessment;
    }
    if (assessment.inode.sealed()) {
      assessment.kind = Kind::settle_seal;
      return assessment;
    }
    LCCFS_TRY(assessment.names, count_names(query, assessment.inode));
    // An instance that has removed a name, and is still running that operation, corrects the link count by one: it must
    // not do so after us. And a move that is under way is its owner's.
    LCCFS_TRY(const auto removals, judge(horizon, assessment.names.removals));
    if (removals == Horizon::Verdict::retired_since_now) continue;
    if (removals == Horizon::Verdict::not_retired) return assessment;
    assessment.kind = kind_of(assessment);
    if (assessment.kind == Kind::lost_parent) {
      LCCFS_TRY(const bool unchanged, is_unchanged(query, assessment.inode));
      if (!unchanged) continue;
    }
    return assessment;
  }
}

Kind kind_once_settled(const Assessment& assessment) {
  const auto& inode = assessment.inode;
  const bool named = assessment.names.total() > 0;
  if (inode.dead()) {
    if (named) return Kind::clear_names;
    // A dead directory's own d/ and x/ keys are handled first: the item that leads to them is in the queue.
    return inode.has_detached || inode.has_decisions ? Kind::wait : Kind::reclaim;
  }
  // Directories go last (round.h): one that is not there while something needs it was lost by the store.
  const bool parent_is_lost = inode.pointers.empty() || !assessment.names.missing_parents.empty();
  if (!named) return parent_is_lost ? Kind::lost_parent : Kind::kill;
  return trim_of(assessment).needed() ? Kind::trim : Kind::right;
}

Error describe_lost_parent(const Assessment& assessment) {
  const auto object = format::inode_object(assessment.inode.ino);
  const auto& missing = assessment.names.missing_parents;
  if (missing.empty()) return {ErrorCode::corrupt, object + ": it has no name, and no back-pointer to where one was"};
  const auto what = missing.front() == root_ino ? " was lost" : " is not there";
  return {ErrorCode::corrupt, object + ": its directory " + format::inode_object(missing.front()) + what};
}

Trim trim_of(const Assessment& assessment) {
  Trim trim;
  std::set<Ino> kept;
  const auto youngest = youngest_of(assessment.inode.pointers);
  for (const auto& pointer : assessment.inode.pointers) {
    const bool needed = assessment.names.by_parent.contains(pointer.parent) &&
                        pointer.token == youngest.at(pointer.parent) && kept.insert(pointer.parent).second;
    if (!needed) {
      trim.drop.push_back(pointer);
    } else if (assessment.inode.is_directory() && !pointer.key.empty() && kept.size() == 1) {
      trim.drop.push_back(pointer);
      trim.first = {pointer.parent, pointer.token};
    }
  }
  const auto links = static_cast<std::uint32_t>(assessment.names.total());
  if (!assessment.inode.is_directory() && assessment.inode.attr.nlink != links) {
    trim.attr = assessment.inode.attr;
    trim.attr->nlink = links;
  }
  return trim;
}

}  // namespace lccfs::reclaim
