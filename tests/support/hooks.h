// SPDX-License-Identifier: LGPL-2.1-or-later
// Scripts for the clients of a scripted cluster.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "scripted/scripted_store.h"

namespace lccfs::test {

/// What a test cannot do without.
template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(std::string(describe(result.error().code)) + ": " + result.error().context);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The fault for the n-th (from 0) step that changes something; `reached` tells whether there was one.
class NthMutation {
 public:
  NthMutation(unsigned n, Fault fault) : state_(std::make_shared<State>(n, fault)) {}
  Fault operator()(const StepInfo& info) const {
    if (!info.mutates() || state_->seen++ != state_->n) return {};
    state_->reached = true;
    return state_->fault;
  }
  bool reached() const { return state_->reached; }

 private:
  struct State {
    State(unsigned nth, Fault with) : n(nth), fault(with) {}
    const unsigned n;
    const Fault fault;
    std::atomic<unsigned> seen{0};
    std::atomic<bool> reached{false};
  };
  std::shared_ptr<State> state_;
};

/// The fault for the first step of that name.
inline ScriptedClient::Hook once_on(const std::string& step, Fault fault) {
  return [step, fault, done = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
    return info.step == step && !done->exchange(true) ? fault : Fault{};
  };
}

/// The fault for each step of that name.
inline ScriptedClient::Hook always_on(const std::string& step, Fault fault) {
  return [step, fault](const StepInfo& info) { return info.step == step ? fault : Fault{}; };
}

/// The store cannot read that object.
inline ScriptedClient::Hook unreadable(const std::string& object) {
  return [object](const StepInfo& info) {
    const bool fails = info.kind == StepKind::query && info.object == object;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  };
}

/// Runs `act` before the first step of that name.
inline ScriptedClient::Hook before(const std::string& step, std::function<void()> act) {
  return [step, act = std::move(act), done = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
    if (info.step == step && !done->exchange(true)) act();
    return Fault{};
  };
}

}  // namespace lccfs::test
