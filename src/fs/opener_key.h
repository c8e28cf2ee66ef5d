// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Of one file that is open here: the key o/<me> on its inode object, which says to the next holder of the write lease
// that this client is to be told of changes (docs/DATA.md section 12). Memory only; opener_keys.h does the steps. Any
// thread; nothing blocks.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "instance/instance.h"

namespace lccfs {

class OpenerKey {
 public:
  explicit OpenerKey(Instance& instance);

  // -- handles that use the kernel's pages
  void opened() EXCLUDES(mutex_);
  void closed() EXCLUDES(mutex_);
  bool is_open() const EXCLUDES(mutex_);

  // -- steps: one at a time
  enum class Todo {
    nothing,
    add,        ///< the key; followed by `added`
    introduce,  ///< the key stands: the holder of the lease is to be told
    remove,
  };
  /// What is due now; anything but `nothing` is followed by `ended`.
  Todo begin(bool lease_held) EXCLUDES(mutex_);
  /// The step [add opener] is decided, or was refused: without the key nobody is told.
  void added(bool well) EXCLUDES(mutex_);
  /// It went well, or is to be tried again: later each time.
  void ended(Todo what, bool well) EXCLUDES(mutex_);
  /// A step is under way, or the key may stand.
  bool is_needed() const EXCLUDES(mutex_);
  /// The step that releases the lease to another client adds the key, too, where the file stays open: if so, it is
  /// followed by `end_release` once it is decided.
  bool begin_release() EXCLUDES(mutex_);
  void end_release(bool well) EXCLUDES(mutex_);

  // -- what is heard
  /// A holder was told that the file is not open here, or may have told in vain: it is to be asked again.
  void is_forgotten() EXCLUDES(mutex_);
  /// A holder believes that it is open here: the key may stand, whatever memory says.
  void may_stand() EXCLUDES(mutex_);

 private:
  bool is_used() const;

  Instance& instance_;
  Clock& clock_;  // a step that nobody waits for may end after the instance
  mutable Mutex mutex_;
  unsigned handles_ GUARDED_BY(mutex_) = 0;
  std::chrono::nanoseconds since_ GUARDED_BY(mutex_){0};  // open, or closed
  bool may_stand_ GUARDED_BY(mutex_) = false, stands_ GUARDED_BY(mutex_) = false;
  bool is_known_ GUARDED_BY(mutex_) = false;      // by the holder; each later one reads the key
  bool is_forgotten_ GUARDED_BY(mutex_) = false;  // since the step under way began
  bool is_under_way_ GUARDED_BY(mutex_) = false;
  bool is_released_with_ GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds not_before_ GUARDED_BY(mutex_){0}, pause_ GUARDED_BY(mutex_){0};
};

}  // namespace lccfs
