// SPDX-License-Identifier: LGPL-2.1-or-later
// Locks that clang checks (-Wthread-safety). A field says by GUARDED_BY which mutex guards it, a function by REQUIRES
// which its caller holds, by EXCLUDES which it must not. The annotations are clang's; other compilers see none.
// docs/ARCHITECTURE.md says in which order locks are taken.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/blocking.h"

#ifdef __clang__
#define LCCFS_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LCCFS_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(mutex) LCCFS_THREAD_ANNOTATION(guarded_by(mutex))
#define REQUIRES(...) LCCFS_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) LCCFS_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define UNCHECKED LCCFS_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace lccfs {

class LCCFS_THREAD_ANNOTATION(capability("mutex")) Mutex : public std::mutex {
 public:
  void lock() LCCFS_THREAD_ANNOTATION(acquire_capability()) {
    if (std::mutex::try_lock()) return;
    about_to_block();
    std::mutex::lock();
  }
  bool try_lock() LCCFS_THREAD_ANNOTATION(try_acquire_capability(true)) { return std::mutex::try_lock(); }
  void unlock() LCCFS_THREAD_ANNOTATION(release_capability()) { std::mutex::unlock(); }
};

/// Holds the mutex while it lives, but between `unlock` and `lock`.
class LCCFS_THREAD_ANNOTATION(scoped_lockable) Lock : public std::unique_lock<std::mutex> {
 public:
  explicit Lock(Mutex& mutex) LCCFS_THREAD_ANNOTATION(acquire_capability(mutex))
      : std::unique_lock<std::mutex>(mutex, std::try_to_lock) {
    if (!owns_lock()) lock_when_free();
  }
  /// Of one that this thread has locked.
  Lock(Mutex& mutex, std::adopt_lock_t adopt) REQUIRES(mutex) : std::unique_lock<std::mutex>(mutex, adopt) {}
  ~Lock() LCCFS_THREAD_ANNOTATION(release_capability()) = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void lock() LCCFS_THREAD_ANNOTATION(acquire_capability()) {
    if (!try_lock()) lock_when_free();
  }
  void unlock() LCCFS_THREAD_ANNOTATION(release_capability()) { std::unique_lock<std::mutex>::unlock(); }
  /// Waits until it is done, which says a lambda: `[this]() REQUIRES(mutex_) { return ...; }`.
  template <class Done>
  void wait(std::condition_variable& changed, Done done) UNCHECKED {
    while (!done()) wait(changed);
  }
  /// For one notification at least.
  void wait(std::condition_variable& changed) {
    about_to_block();
    changed.wait(*this);
  }

 private:
  void lock_when_free() {
    about_to_block();
    std::unique_lock<std::mutex>::lock();
  }
};

}  // namespace lccfs
