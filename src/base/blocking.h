// SPDX-License-Identifier: LGPL-2.1-or-later
// A thread that others depend on may do work that rarely blocks: it is told before it does, and has another thread stand
// in for it.
#pragma once

#include <functional>

namespace lccfs {

/// Is called once, before the calling thread may block for the first time while this lives. One at a time on a thread.
class BeforeBlocking {
 public:
  explicit BeforeBlocking(std::function<void()> act);
  ~BeforeBlocking();
  BeforeBlocking(const BeforeBlocking&) = delete;
  BeforeBlocking& operator=(const BeforeBlocking&) = delete;

 private:
  friend void about_to_block();
  std::function<void()> act_;
};

/// Before every wait for the store, another client, the kernel, a lock or a condition: on most threads it does nothing.
void about_to_block();

}  // namespace lccfs
