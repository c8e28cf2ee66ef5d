// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>

#include "scripted/scripted_store.h"

namespace lccfs {

/// A step on its way. `execute` is called with the cluster's lock, perhaps twice, perhaps never; then one of the
/// others, once, without it.
struct ScriptedClient::Step {
  StepInfo info;
  std::function<void()> execute;
  std::move_only_function<void()> answer;
  std::move_only_function<void(Error)> refuse;
  std::optional<Error> barred;  // by a fence, when it was executed
};

struct ScriptedClient::Parked {
  Step step;
  Fault fault;
  bool held;  // by the script; else it waits for its turn after another one
};

}  // namespace lccfs
