// SPDX-License-Identifier: LGPL-2.1-or-later
// The memory that requests are received in. A large write keeps that of its request: its bytes are not copied. What was
// kept is used again, because fresh memory costs a fault for each page. The receiving thread alone calls these; what is
// kept may be let go by any thread, also after the end of this.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "fuse/fuse_api.h"
#include "lccfs/object_store.h"

namespace lccfs::fuse {

class RequestBuffers {
 public:
  RequestBuffers() : spare_(std::make_shared<Spare>()) {}
  ~RequestBuffers();
  RequestBuffers(const RequestBuffers&) = delete;
  RequestBuffers& operator=(const RequestBuffers&) = delete;

  /// What the next request is received into. libfuse allocates what it points to, if it points to nothing.
  fuse_buf& current() { return current_; }
  /// Bytes of the request that lies there, for as long as they are needed.
  SharedBytes keep(const char* data, std::size_t size_bytes);

 private:
  class Spare {
   public:
    ~Spare();
    /// Memory to continue with, or none: then libfuse allocates it. nullopt: many are kept already.
    std::optional<void*> begin_keeping() EXCLUDES(mutex_);
    void end_keeping(void* memory) EXCLUDES(mutex_);

   private:
    Mutex mutex_;
    std::vector<void*> memory_ GUARDED_BY(mutex_);
    unsigned kept_ GUARDED_BY(mutex_) = 0;
  };

  fuse_buf current_ = {};
  const std::shared_ptr<Spare> spare_;
};

}  // namespace lccfs::fuse
