// SPDX-License-Identifier: LGPL-2.1-or-later
#include "successors.h"

#include <cstring>

#include "history.h"
#include "holder.h"
#include "operations.h"
#include "store.h"

namespace lease_model {

namespace {

class Finder {
 public:
  Finder(const Case& one, const State& before, bool labelled) : case_(one), before_(before), labelled_(labelled) {}

  Successors all() {
    for (int i = 0; i < before_.threads; ++i) thread(i);
    for (int client = 0; client < most_clients; ++client) fence_or_evict(client);
    for (int client = 0; client < most_clients; ++client) crash(client);
    return std::move(found_);
  }

 private:
  enum class Kind { progress, fault };

  void add(State state, const std::string& words, Kind kind = Kind::progress) {
    found_.states.emplace_back(state, labelled_ ? words : std::string());
    found_.progress = found_.progress || kind == Kind::progress;
  }

  std::string name(int client) const { return labelled_ ? "C" + std::to_string(client) : std::string(); }
  std::string name(const Thread& thread) const {
    return name(thread.client) + (labelled_ && answers_questions(thread) ? " (answering)" : "");
  }
  std::string words(const Request& request) const {
    if (!labelled_) return {};
    return describe(request) + (request.reply == refused && request.kind < write_data ? ": refused" : "");
  }

  void thread(int i) {
    const Thread& thread = before_.thread[i];
    if (before_.memory[thread.client].life == dead) {
      for (int k = 0; k < 2; ++k) late_step(i, k);
      return;
    }
    switch (thread.phase) {
      case waits_for_store:
        for (int k = 0; k < 2; ++k) request(i, k);
        break;
      case has_answer:
        resume(i, " sees it");
        break;
      case waits_for_client:
        resume(i, " continues");
        break;
      case between:
        if (answers_questions(thread)) {
          resume(i, " continues");
        } else if (thread.operation < program(thread).size()) {
          begin_next(i);
        }
        break;
    }
  }

  const std::vector<Operation>& program(const Thread& thread) const { return case_.programs[thread.id].second; }

  void late_step(int i, int k) {
    if (before_.thread[i].requests[k].state != in_flight) return;
    State state = before_;
    Request request = state.thread[i].requests[k];
    state.thread[i].requests[k] = {};
    state.barred[object_of(request)] |= request.knows;
    Inode ignored;
    apply(state, request, state.thread[i].client, &ignored);
    tidy(state);
    add(state, name(state.thread[i]) + " is dead; LATE: " + words(request), Kind::fault);
  }

  void request(int i, int k) {
    const Request& sent = before_.thread[i].requests[k];
    if (sent.state != in_flight) return;
    const int client = before_.thread[i].client;
    if (is_fenced(before_, client)) {
      State state = before_;
      state.barred[object_of(sent)] |= static_cast<u8>(1 << client);
      die(state, client);
      add(state, name(client) + ": " + words(sent) + ": REFUSED, fenced: all its operations end");
      if ((before_.barred[object_of(sent)] >> client & 1) != 0) return;
    }
    applied(i, k);
    if (sent.kind == write_data && before_.failures < case_.failures) failed_for_space(i, k);
    const bool reads = sent.kind == read_inode || sent.kind == read_data;
    if (!reads && sent.repeated == 0 && before_.repeats < case_.repeats) answer_lost(i, k);
  }

  State with_applied(int i, int k) {
    State state = before_;
    Thread& thread = state.thread[i];
    state.barred[object_of(thread.requests[k])] |= thread.requests[k].knows;
    apply(state, thread.requests[k], thread.client, &thread.seen);
    return state;
  }

  void applied(int i, int k) {
    State state = with_applied(i, k);
    tidy(state);
    answer(state, i, k, true);
  }

  void failed_for_space(int i, int k) {
    State state = before_;
    state.thread[i].requests[k].reply = no_space;
    state.failures++;
    tidy(state);
    answer(state, i, k, false);
  }

  /// Applied, but nobody heard of it: it is run again.
  void answer_lost(int i, int k) {
    State state = with_applied(i, k);
    Request& request = state.thread[i].requests[k];
    request.reply = refused;
    request.repeated = 1;
    state.repeats++;
    tidy(state);
    add(state, name(state.thread[i]) + ": " + (labelled_ ? describe(request) : "") + ", ANSWER LOST, will be run again",
        Kind::fault);
  }

  void answer(State& state, int i, int k, bool is_applied) {
    Thread& thread = state.thread[i];
    Request& request = thread.requests[k];
    const std::string label =
        name(thread) + ": " + words(request) + (labelled_ && request.reply == no_space ? ": NO SPACE" : "");
    request.state = answered;
    if (thread.requests[1 - k].state == in_flight) return add(state, label);
    if (thread.split != 0 && is_applied) {
      thread.phase = has_answer;
      return add(state, label);
    }
    add(state, label + run(state, i));
  }

  void resume(int i, const char* what) {
    State state = before_;
    const std::string label = name(state.thread[i]) + what;
    const std::string returned = run(state, i);
    if (std::memcmp(&state, &before_, sizeof(State)) != 0) add(state, label + returned);
  }

  void begin_next(int i) {
    State state = before_;
    Thread& thread = state.thread[i];
    const Operation& operation = program(thread)[thread.operation];
    const std::string label = name(thread) + (labelled_ ? " begins " + describe(operation) : "");
    begin(state, thread, operation);
    add(state, label + run(state, i));
  }

  /// What it returned, if it came to its end.
  std::string run(State& state, int i) {
    Thread& thread = state.thread[i];
    thread.split = 0;
    for (Request& request : thread.requests) {
      if (request.state == answered) request.state = idle;
    }
    if (answers_questions(thread)) {
      thread.phase = between;
      answer_questions(state, thread, state.memory[thread.client]);
      return {};
    }
    const Operation operation = program(thread)[thread.operation];
    if (!run_on(state, thread, operation)) return {};
    std::string returned;
    if (labelled_) {
      returned = "; " + describe(operation) + " returns";
      if (operation.kind == op_read || operation.kind == op_stat) {
        returned += thread.local[1] == end_of_file ? " end of file" : " " + std::to_string(thread.local[1]);
      }
    }
    Thread next{};
    next.id = thread.id;
    next.client = thread.client;
    next.operation = static_cast<u8>(thread.operation + 1);
    thread = next;
    return returned;
  }

  void fence_or_evict(int client) {
    const Life life = before_.memory[client].life;
    const bool may_be = life == dead || (life == alive && before_.evictions < case_.evictions);
    if (is_fenced(before_, client) || !may_be) return;
    for (int i = 0; i < before_.threads; ++i) {
      const int asker = before_.thread[i].client;
      if ((before_.thread[i].asked >> client & 1) == 0 || before_.memory[asker].life != alive) continue;
      State state = before_;
      state.fenced |= static_cast<u8>(1 << client);
      state.memory[asker].knows |= static_cast<u8>(1 << client);
      if (life == alive) {
        state.evictions++;
        if (state.inode.lease == client + 1) state.history = growth_lost(state.history);
      }
      add(state, name(client) + (life == alive ? ", alive, is EVICTED by " : " is fenced by ") + name(asker),
          life == alive ? Kind::fault : Kind::progress);
    }
  }

  void crash(int client) {
    if (before_.crashes >= case_.crashes || (case_.may_crash >> client & 1) == 0) return;
    if (before_.memory[client].life != alive) return;
    State state = before_;
    state.crashes++;
    die(state, client);
    add(state, name(client) + " CRASHES", Kind::fault);
  }

  const Case& case_;
  const State& before_;
  const bool labelled_;
  Successors found_;
};

}  // namespace

Successors successors(const Case& one, const State& state, bool labelled) { return Finder(one, state, labelled).all(); }

}  // namespace lease_model
