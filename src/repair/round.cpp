// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/round.h"

#include <algorithm>
#include <iterator>

#include "repair/volume_repairs.h"

namespace lccfs::repair {

using check::Finding;
using Kind = Finding::Kind;

unsigned rank(const Finding& finding) {
  if (VolumeRepairs::takes(finding)) return 0;
  switch (finding.kind) {
    case Kind::corrupt:
    case Kind::unsupported:
    case Kind::missing_part:
    case Kind::unknown_part:
    case Kind::denied_attribute:
      return 1;
    case Kind::reverse_key:
      return 2;
    case Kind::stray_reverse_key:
      return 3;
    case Kind::data_without_inode:  // makes inodes that entries may dangle for
      return 4;
    case Kind::dangling_entry:
      return 5;
    case Kind::wrong_type:
      return 6;
    case Kind::no_back_pointer:
      return 7;
    case Kind::several_names:
      return 8;
    case Kind::unmapped_data:
    case Kind::data_past_size:
      return 9;
    case Kind::unreachable:
      return 10;
    case Kind::orphan:
      return 11;
    case Kind::subdirectories:
    case Kind::wrong_links:
      return 12;
    case Kind::unknown_object:
    case Kind::lost_trace:
      return 13;
    case Kind::missing_object:  // these are for VolumeRepairs
    case Kind::number_not_given:
    case Kind::fences_behind:
    case Kind::stray_session:
      return 0;
  }
  return 0;
}

void Round::add(const Finding& finding) {
  by_rank_.at(rank(finding)).push_back(finding);
  if (held_ < room_) {
    ++held_;
    return;
  }
  cut_ = true;
  for (auto last = by_rank_.rbegin(); last != by_rank_.rend(); ++last) {
    if (!last->empty()) return last->pop_back();
  }
}

std::vector<Finding> Round::take() {
  std::vector<Finding> all;
  for (auto& some : by_rank_) std::ranges::move(some, std::back_inserter(all));
  return all;
}

}  // namespace lccfs::repair
