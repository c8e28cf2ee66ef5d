// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/end_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/log.h"

namespace lccfs::daemon {
namespace {

constexpr int stop_signal = SIGUSR1;  // from the destructor

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

/// By nohup(1), or a shell that runs us in the background. A signal that is blocked comes all the same.
bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

EndSignals::EndSignals(const Program& program, Hangup hangup)
    : program_(program), hangup_(hangup), awaited_(set_of({SIGTERM, SIGINT, SIGHUP, stop_signal})) {
  std::signal(SIGPIPE, SIG_IGN);  // a log's reader may go away
  if (is_ignored(SIGINT)) sigdelset(&awaited_, SIGINT);
  if (hangup_ == Hangup::ends && is_ignored(SIGHUP)) sigdelset(&awaited_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);
  thread_ = std::thread([this] { watch(); });
}

EndSignals::~EndSignals() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  pthread_kill(thread_.native_handle(), stop_signal);
  thread_.join();
}

void EndSignals::hold() {
  const Lock lock(mutex_);
  held_ = true;
}

void EndSignals::handle_with(std::function<void()> handler) {
  const Lock lock(mutex_);
  handler_ = std::move(handler);
  changed_.notify_all();
}

void EndSignals::watch() {
  for (int signal = 0;;) {
    sigwait(&awaited_, &signal);
    {
      const Lock lock(mutex_);
      if (stopping_) return;
      if (signal == stop_signal) continue;  // somebody else's
      if (!held_ && !is_for_log(signal)) {
        log::flush();
        std::fprintf(stderr, "%s: interrupted\n", program_.name);
        _exit(program_.interrupted);
      }
    }
    if (!is_for_log(signal)) return end();
    log::reopen();
  }
}

void EndSignals::end() {
  {
    Lock lock(mutex_);
    lock.wait(changed_, [this]() REQUIRES(mutex_) { return handler_ || stopping_; });
    if (stopping_) return;
    // The next one is not asked for its patience; a log that is rotated now is no reason to end at once.
    const sigset_t ends = hangup_ == Hangup::ends ? set_of({SIGTERM, SIGINT, SIGHUP}) : set_of({SIGTERM, SIGINT});
    pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
    handler_();
  }
  const sigset_t stop = set_of({stop_signal});
  for (int signal = 0; !is_stopping();) sigwait(&stop, &signal);  // stays, as the one thread that takes the next signal
}

bool EndSignals::is_stopping() {
  const Lock lock(mutex_);
  return stopping_;
}

}  // namespace lccfs::daemon
