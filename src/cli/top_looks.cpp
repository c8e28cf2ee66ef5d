// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/top_looks.h"

#include <utility>

namespace lccfs::cli {

TopLooks::TopLooks(std::vector<RunningProgram> programs, Clock& clock, Look look)
    : clock_(clock), look_(std::move(look)) {
  const auto now = clock.elapsed();
  for (auto& program : programs) programs_.push_back({std::move(program), now});
}

TopTable TopLooks::look_again() {
  TopTable table;
  std::erase_if(programs_, [&](Program& program) {
    const auto now = clock_.elapsed();  // a look at the one before may have taken its time
    auto page = look_(program.seen.place);
    if (!page) return page.error().code == ErrorCode::not_found;
    add_mount(table, program.seen.page, *page, now - program.seen_at);
    program.seen.page = std::move(*page);
    program.seen_at = now;
    return false;
  });
  return table;
}

}  // namespace lccfs::cli
