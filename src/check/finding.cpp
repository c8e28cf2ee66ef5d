// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/finding.h"

#include "base/text.h"

namespace lccfs::check {

namespace {
using Kind = Finding::Kind;
}

const char* describe(Finding::Kind kind) {
  switch (kind) {
    case Kind::corrupt:
      return "corrupt";
    case Kind::unsupported:
      return "newer version";
    case Kind::missing_part:
      return "missing part";
    case Kind::unknown_part:
      return "unknown part";
    case Kind::unknown_object:
      return "unknown object";
    case Kind::missing_object:
      return "missing object";
    case Kind::number_not_given:
      return "number not handed out";
    case Kind::fences_behind:
      return "fence counter behind";
    case Kind::dangling_entry:
      return "dangling entry";
    case Kind::wrong_type:
      return "wrong type";
    case Kind::reverse_key:
      return "reverse key";
    case Kind::stray_reverse_key:
      return "stray reverse key";
    case Kind::subdirectories:
      return "number of subdirectories";
    case Kind::several_names:
      return "directory with several names";
    case Kind::unreachable:
      return "unreachable";
    case Kind::no_back_pointer:
      return "no back-pointer";
    case Kind::orphan:
      return "orphan";
    case Kind::wrong_links:
      return "wrong links";
    case Kind::lost_trace:
      return "lost trace";
    case Kind::stray_session:
      return "stray session";
    case Kind::data_without_inode:
      return "data without inode";
    case Kind::unmapped_data:
      return "unmapped data";
    case Kind::data_past_size:
      return "data past the size";
    case Kind::denied_attribute:
      return "denied attribute";
  }
  return "?";
}

std::string text_of(const Finding& finding) {
  return printable(std::string(describe(finding.kind)) + ": " + finding.object + ": " + finding.text);
}

}  // namespace lccfs::check
