// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/blocking.h"

#include <utility>

namespace lccfs {

namespace {
thread_local BeforeBlocking* here = nullptr;
}

BeforeBlocking::BeforeBlocking(std::function<void()> act) : act_(std::move(act)) { here = this; }

BeforeBlocking::~BeforeBlocking() { here = nullptr; }

void about_to_block() {
  if (auto* told = std::exchange(here, nullptr)) told->act_();
}

}  // namespace lccfs
