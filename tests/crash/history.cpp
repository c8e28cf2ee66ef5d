// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/history.h"

#include <map>
#include <unordered_set>

#include "crash/world.h"

namespace lccfs::crash {

namespace {

/// What has been decided so far: which calls are done, what others have looked up, which writes have come in part.
struct Progress {
  ModelTree tree;
  std::uint64_t done = 0;
  std::uint64_t in_part = 0;
  std::map<std::size_t, std::vector<ModelTree::Id>> found{};

  bool is_done(std::size_t i) const { return (done >> i & 1) != 0; }
  bool has_come_in_part(std::size_t i) const { return (in_part >> i & 1) != 0; }
  Progress with(std::size_t i) const {
    Progress next = *this;
    next.done |= std::uint64_t{1} << i;
    return next;
  }
};

class Search {
 public:
  Search(const std::vector<Performed>& history, const Tree& tree) : history_(history), tree_(tree) {}

  bool explains(const Progress& now) {
    if (!seen_.insert(text_of(now)).second) return false;  // it did not, when another order came to it
    bool all_done = true;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (now.is_done(i)) continue;
      all_done = false;
      if (may_be_next(i, now) && (continues(i, now) || looks_up(i, now) || comes_in_part(i, now))) return true;
    }
    return all_done && now.tree.lines() == tree_;
  }

 private:
  bool may_be_next(std::size_t candidate, const Progress& now) const {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (i == candidate || now.is_done(i)) continue;
      const bool earlier_of_same = i < candidate && history_[i].client == history_[candidate].client;
      if (earlier_of_same || history_[i].is_before(history_[candidate])) return false;
    }
    return true;
  }

  bool looks_up(std::size_t i, const Progress& now) {
    const auto earlier = now.found.find(i);
    const auto found =
        now.tree.look_up(history_[i].call, earlier == now.found.end() ? std::vector<ModelTree::Id>() : earlier->second);
    if (!found) return false;
    Progress then = now;
    then.found[i].push_back(*found);
    return explains(then);
  }

  bool continues(std::size_t i, const Progress& now) {
    const Performed& one = history_[i];
    const auto found = now.found.find(i);
    Progress then = now.with(i);
    const auto result = found == now.found.end() ? then.tree.perform(one.call)
                                                 : then.tree.perform_on(found->second, one.call, one.result);
    if ((one.is_in_doubt() || result == one.result) && explains(then)) return true;
    if (!one.is_in_doubt()) return false;
    return explains(now.with(i));
  }

  bool comes_in_part(std::size_t i, const Progress& now) {
    if (now.has_come_in_part(i)) return false;
    const auto pieces = pieces_of(history_[i].call, object_size_bytes);
    for (unsigned some = 1; some < 1U << pieces.size(); ++some) {
      Progress then = now;
      then.in_part |= std::uint64_t{1} << i;
      bool changes = false;
      for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
        if ((some >> piece & 1) != 0) changes = then.tree.change_within(pieces[piece]) || changes;
      }
      if (changes && explains(then)) return true;
    }
    return false;
  }

  static std::string text_of(const Progress& now) {
    std::string text = std::to_string(now.done) + " " + std::to_string(now.in_part);
    for (const auto& [call, ids] : now.found) {
      for (const auto id : ids) text += " " + std::to_string(call) + ":" + std::to_string(id);
    }
    return text + now.tree.text();
  }

  const std::vector<Performed>& history_;
  const Tree& tree_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

bool is_explained(const ModelTree& start, const std::vector<Performed>& history, const Tree& tree) {
  return Search(history, tree).explains({start});
}

std::string text_of(const std::vector<Performed>& history) {
  std::string text;
  for (const Performed& one : history) {
    text += "  ";
    text += static_cast<char>('A' + one.client);
    text += ": " + text_of(one.call) + ": " + one.result + "\n";
  }
  return text;
}

}  // namespace lccfs::crash
