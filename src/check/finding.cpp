// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/finding.h"

namespace lccfs::check {

const char* describe(Finding::Kind kind) {
  using Kind = Finding::Kind;
  switch (kind) {
    case Kind::corrupt:
      return "corrupt";
    case Kind::unsupported:
      return "newer version";
    case Kind::unknown_object:
      return "unknown object";
    case Kind::missing_object:
      return "missing object";
    case Kind::number_not_given:
      return "number not handed out";
    case Kind::dangling_entry:
      return "dangling entry";
    case Kind::wrong_type:
      return "wrong type";
    case Kind::reverse_key:
      return "reverse key";
    case Kind::subdirectories:
      return "number of subdirectories";
    case Kind::several_names:
      return "directory with several names";
    case Kind::unreachable:
      return "unreachable";
    case Kind::no_back_pointer:
      return "no back-pointer";
    case Kind::lost_to_the_queue:
      return "lost to the queue";
    case Kind::stray_session:
      return "stray session";
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
  return std::string(describe(finding.kind)) + ": " + finding.object + ": " + finding.text;
}

}  // namespace lccfs::check
