// SPDX-License-Identifier: LGPL-2.1-or-later
// Directory items: the d/, x/ and l/ keys of a directory, page by page, many directories at once.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "reclaim/round.h"
#include "reclaim/settle.h"
#include "txn/reclaim_txn.h"

namespace lccfs::reclaim {

namespace {
constexpr std::size_t directories_at_once = 64;
}  // namespace

/// Where this round is in one directory.
struct Round::Directory {
  Ino ino;
  std::string after;                    // the last d/ key that was read
  bool read_all = false;                // there is no further page, or no directory
  bool something_left = false;          // some key is to be looked at in a later pass
  std::map<std::string, Ino> detached;  // d/ keys of this page that are retired
  std::vector<std::string> finished;    // x/ and l/ keys that are retired
};

/// One key of a directory, sorted by what is to become of it. l/ keys of expired instances have no use any more; those
/// of others keep nothing waiting.
Result<> Round::sort_key(Directory& directory, const std::string& key, const Bytes& value) {
  const auto is_retired = [&](Token token) -> Result<bool> {
    LCCFS_TRY(const auto verdict, horizon_->judge(token));
    return verdict != Horizon::Verdict::not_retired;  // the key names its step: it cannot come to mean another
  };
  if (const auto stepper = format::parse_step_number_key(key)) {
    LCCFS_TRY(const bool retired, is_retired({*stepper, std::numeric_limits<std::uint64_t>::max()}));
    if (retired) directory.finished.push_back(key);
    return {};
  }
  const auto detached = format::parse_detached_key(key);
  const auto decision = format::parse_decision_key(key);
  if (!detached && !decision) {
    return failure(ErrorCode::corrupt,
                   format::inode_object(directory.ino) + ": key " + key + " is unknown to the format");
  }
  LCCFS_TRY(const bool retired, is_retired(detached ? detached->token : *decision));
  if (!retired) {
    directory.something_left = true;
  } else if (detached) {
    directory.detached[key] = detached->ino;
  } else {
    LCCFS_TRY(const bool has_moved, finish_decided(directory.ino, *decision, key, value));
    if (has_moved) {
      directory.finished.push_back(key);
    } else {
      directory.something_left = true;
    }
  }
  return {};
}

/// What a retired decision has left to do. false: left for a later pass.
Result<bool> Round::finish_decided(Ino directory, Token token, const std::string& key, const Bytes& value) {
  LCCFS_TRY(const auto decision,
            objects::decode_part<format::DecisionRecord>(format::inode_object(directory), key, value));
  if (decision.kind != format::DecisionRecord::Kind::committed) return true;
  return finish_move(instance_, reader_, token, decision);
}

Result<> Round::read_page(Directory& directory) {
  MetaRead read{.object = format::inode_object(directory.ino), .ranges = {{"d/", directory.after, keys_at_once}}};
  const bool first = directory.after.empty();
  if (first) read.ranges.insert(read.ranges.end(), {{"x/", "", keys_at_once}, {"l/", "", keys_at_once}});
  directory.detached.clear();
  directory.finished.clear();
  directory.read_all = true;
  const auto page = objects::read_object(reader_, std::move(read));
  if (!page && page.error().code == ErrorCode::not_found) return {};
  if (!page) {
    directory.something_left = true;
    return std::unexpected(page.error());
  }
  for (const auto& range : page->ranges) {
    for (const auto& [key, value] : range.entries) {
      const auto sorted = sort_key(directory, key, value);
      if (sorted) continue;
      directory.something_left = true;
      if (!leaves(sorted.error())) return sorted;
    }
  }
  const auto& keys = page->ranges.front();
  directory.read_all = !keys.more || keys.entries.empty();
  if (!keys.entries.empty()) directory.after = keys.entries.back().first;
  if (first) directory.something_left = directory.something_left || page->ranges[1].more;  // x/; more l/ keys can wait
  return {};
}

/// One key of an instance leads to a file that is left: the last, as with items. (Of a directory each may be what a seal
/// asks for.)
Result<> Round::drop_keys(Directory& directory, const std::set<Ino>& dealt_with) {
  auto keys = std::move(directory.finished);
  std::map<std::pair<Ino, InstanceId>, std::uint64_t> last;
  for (const auto& [key, ino] : directory.detached) {
    const auto token = format::parse_detached_key(key)->token;
    auto& number = last[{ino, token.instance}];
    number = std::max(number, token.number);
  }
  for (const auto& [key, ino] : directory.detached) {
    const auto token = format::parse_detached_key(key)->token;
    const bool is_double = files_left_.contains(ino) && token.number != last.at({ino, token.instance});
    if (dealt_with.contains(ino) || is_double) {
      keys.push_back(key);
    } else {
      directory.something_left = true;
    }
  }
  if (keys.empty()) return {};
  const auto removed = recount_.paced(txn::remove_traces(directory.ino, keys));
  if (!removed && removed.error().code != ErrorCode::not_found) {
    directory.something_left = true;
    return std::unexpected(removed.error());
  }
  const Lock lock(mutex_);
  did_something_ = true;
  return {};
}

/// Young directories first: they are likely to be below the older ones, whose removal waits for theirs.
Result<std::set<Ino>> Round::handle_directories(const std::vector<Ino>& inodes, TimeSpec logged) {
  const std::set<Ino, std::greater<>> distinct(inodes.begin(), inodes.end());
  std::vector<Directory> waiting;
  for (const Ino ino : distinct) {
    Directory directory;
    directory.ino = ino;
    waiting.push_back(std::move(directory));
  }
  std::set<Ino> quiet;
  for (std::size_t begin = 0; begin < waiting.size() && !stop_.stop_requested();) {
    const auto end = std::min(waiting.size(), begin + directories_at_once);
    const auto count = end - begin;
    LCCFS_CHECK(in_parallel(count, [&](std::size_t i) { return read_page(waiting[begin + i]); }));
    std::vector<Ino> detached;
    for (std::size_t i = begin; i < end; ++i) {
      for (const auto& [key, ino] : waiting[i].detached) detached.push_back(ino);
    }
    LCCFS_TRY(const auto dealt_with, handle_inodes(detached, logged, Numbers::of_inodes));
    LCCFS_CHECK(in_parallel(count, [&](std::size_t i) { return drop_keys(waiting[begin + i], dealt_with); }));
    if (stop_.stop_requested()) break;
    for (std::size_t i = begin; i < end; ++i) {
      if (waiting[i].read_all && !waiting[i].something_left) quiet.insert(waiting[i].ino);
    }
    const auto first_unfinished = std::stable_partition(waiting.begin() + static_cast<std::ptrdiff_t>(begin),
                                                        waiting.begin() + static_cast<std::ptrdiff_t>(end),
                                                        [](const Directory& directory) { return directory.read_all; });
    begin = static_cast<std::size_t>(first_unfinished - waiting.begin());
  }
  return quiet;
}

}  // namespace lccfs::reclaim
