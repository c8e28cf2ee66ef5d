// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/sink.h"

#include <variant>

#include "format/object_names.h"

namespace lccfs::check {

void Sink::report(Finding finding) {
  if (const auto name = format::parse_object_name(finding.object)) {
    if (const auto* inode = std::get_if<format::InodeName>(&*name)) finding.ino = inode->ino;
    if (const auto* data = std::get_if<format::DataName>(&*name)) finding.ino = data->ino;
  }
  const std::lock_guard lock(mutex_);
  ++count_;
  on_finding_(finding);
}

void Sink::report(std::vector<Finding> findings) {
  for (auto& finding : findings) report(std::move(finding));
}

std::uint64_t Sink::count() {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace lccfs::check
