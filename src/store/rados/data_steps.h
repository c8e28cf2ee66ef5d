// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads and writes of data objects.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "lccfs/object_store.h"
#include "store/rados/admission.h"
#include "store/rados/step.h"

namespace lccfs::rados {

/// Memory of writes that are answered, but that the messenger still refers to: an answer may come while an earlier
/// sending of the request is in its queues. librados does not say when it lets go, so what is left is looked at again
/// whenever a write ends. Any thread.
class LingeringMemory {
 public:
  struct Piece {
    ceph::buffer::ptr memory;  ///< the last reference but librados'
    std::shared_ptr<const char> owner;
  };
  void add(Piece piece);
  void release_free();

 private:
  Mutex mutex_;
  std::vector<Piece> pieces_ GUARDED_BY(mutex_);
};

class DataSteps {
 public:
  explicit DataSteps(RequestsInFlight& in_flight);
  /// Before the connection ends: what is let in later is not sent. Waits for what is being sent.
  void end() { admission_.end(); }

  void read(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::span<char> target,
            ObjectStore::ReadDone done);
  void write(librados::IoCtx& pool, std::string object, std::vector<DataPiece> pieces, ObjectStore::DataDone done);
  void truncate(librados::IoCtx& pool, std::string object, std::uint64_t size_bytes, ObjectStore::DataDone done);
  void remove(librados::IoCtx& pool, std::string object, ObjectStore::DataDone done);
  void zero(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::uint64_t size_bytes,
            ObjectStore::DataDone done);
  void copy(librados::IoCtx& pool, std::string source, std::string target, ObjectStore::DataDone done);
  void extents(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::uint64_t size_bytes,
               ObjectStore::ExtentsDone done);

 private:
  RequestsInFlight& in_flight_;
  Admission admission_;
  LingeringMemory lingering_;
  ThreadPool waiting_;  // last: librados has the question for extents only as a call that waits
};

}  // namespace lccfs::rados
