// SPDX-License-Identifier: LGPL-2.1-or-later
// All names of a volume, listed in parts by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/read_window.h"
#include "lccfs/object_store.h"

namespace lccfs::check {

/// How much goes on at once. A small volume is not worth a thread.
struct Effort {
  unsigned threads = 1;
  unsigned reads_per_thread = 16;
};
Effort effort_for(unsigned jobs, std::uint64_t objects);

/// Called for each page, by several threads at once, each with its own window.
using OnNames = std::function<Result<>(ReadWindow&, const std::vector<std::string>&)>;
Result<> for_each_name(ObjectStore& store, const Effort& effort, const OnNames& on_names);

/// The same over numbers below `count`. Ends with the first error.
Result<> for_each_number(ObjectStore& store, const Effort& effort, std::size_t count,
                         const std::function<Result<>(ReadWindow&, std::size_t)>& work);

}  // namespace lccfs::check
