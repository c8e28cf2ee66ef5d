// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/repairs.h"

#include "repair/outcome.h"

namespace lccfs::repair {

using Kind = check::Finding::Kind;

Result<Repair> Repairs::repair(const Finding& finding) {
  switch (finding.kind) {
    case Kind::corrupt:
    case Kind::missing_part:
    case Kind::unknown_part:
      return repair_part(finding);
    case Kind::unsupported:
      return left("a newer version has written it: use a newer lccfs-fsck");
    case Kind::denied_attribute:
      return repair_flags(finding);
    case Kind::reverse_key:
      return add_reverse_key(finding);
    case Kind::stray_reverse_key:
      return repair_stray_reverse_key(finding);
    case Kind::data_without_inode:
      return make_inode_for_data(finding);
    case Kind::dangling_entry:
      return drop_dangling_entry(finding);
    case Kind::wrong_type:
      return repair_type(finding);
    case Kind::no_back_pointer:
      return add_back_pointer(finding);
    case Kind::several_names:
      return drop_further_name(finding);
    case Kind::unmapped_data:
      return map_data(finding);
    case Kind::data_past_size:
      return cut_tail(finding);
    case Kind::unreachable:
      return reconnect(finding);
    case Kind::orphan:
      return repair_orphan(finding);
    case Kind::subdirectories:
      return count_subdirectories(finding);
    case Kind::wrong_links:
      return count_links(finding);
    case Kind::unknown_object:
      return repair_unknown_object(finding);
    case Kind::lost_trace:
      return log_traces(finding);
    case Kind::missing_object:
    case Kind::number_not_given:
    case Kind::fences_behind:
    case Kind::stray_session:
      return left("it comes with the volume's own objects");
  }
  return left("there is no repair for this");
}

}  // namespace lccfs::repair
