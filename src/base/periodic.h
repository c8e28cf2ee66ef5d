// SPDX-License-Identifier: LGPL-2.1-or-later
// What is done again and again for as long as something lives.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "lccfs/clock.h"

namespace lccfs {

/// Pauses the calling thread for that long, or until it is told to stop. Whether to continue: false once stopped.
bool pause(Clock& clock, std::chrono::nanoseconds duration, const std::stop_token& stop);

/// Calls `work` after each pause of so long, on a thread of its own, until it answers false. The thread's end stops it
/// in a pause at once, else after the call that is under way.
std::jthread run_periodically(Clock& clock, std::function<std::chrono::nanoseconds()> period,
                              std::function<bool(const std::stop_token&)> work);
/// The same, after each second, until the thread's end.
std::jthread run_each_second(Clock& clock, std::function<void()> work);

}  // namespace lccfs
