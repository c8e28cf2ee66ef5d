// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace lccfs {

/// Calls work(i) for each i below `count`, by at most `threads` threads at once, and returns when all calls have. The
/// caller's thread is one of them.
template <class Work>
void for_each_in_parallel(std::size_t count, unsigned threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take_all = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::jthread> helpers;
  try {
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) helpers.emplace_back(take_all);
  } catch (const std::system_error&) {  // there are no more threads to be had: those there are do all of it
  }
  take_all();
}

}  // namespace lccfs
