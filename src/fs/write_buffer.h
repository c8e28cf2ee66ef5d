// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The bytes of one file that were written, and answered, before the store has them (docs/DATA.md section 10). The lease
// is ours for as long as there are any.
//
// A file is cut into units, each within one data object. A unit is written out when it is full, or when somebody asks
// for it; while it is on its way, it is not sent again: so writes of one range never overtake each other. What could
// not be written stays, to be read and to be tried again, until it is written over, cut or dropped.
//
// Any thread. Methods that say so block on the store: not for completions, nor for the thread that receives requests.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fs/dirty_arena.h"
#include "fs/dirty_room.h"
#include "fs/io_gate.h"
#include "lccfs/object_store.h"

namespace lccfs {

class WriteBuffer : public std::enable_shared_from_this<WriteBuffer> {
 public:
  WriteBuffer(Ino ino, ObjectStore& store, std::uint64_t object_size_bytes, std::shared_ptr<DirtyRoom> room);

  static constexpr ByteRange everything{0, UINT64_MAX};
  using Done = std::move_only_function<void()>;

  /// Copies the bytes. Room for all of them was taken.
  void put(std::uint64_t offset_bytes, std::span<const char> bytes) EXCLUDES(mutex_);

  struct Piece {
    std::uint64_t offset_bytes = 0;
    std::string bytes;
  };
  /// A copy of what lies in the range. To be laid over what the store has, in this order.
  std::vector<Piece> pieces(ByteRange range) const EXCLUDES(mutex_);
  /// Where that is. In no order; some may overlap.
  std::vector<ByteRange> ranges(ByteRange range) const EXCLUDES(mutex_);
  bool has_any_of(ByteRange range) const EXCLUDES(mutex_);
  bool is_empty() const EXCLUDES(mutex_);
  /// Whether any bytes have gone to the store, or are on their way.
  bool has_sent() const EXCLUDES(mutex_);

  /// Sends the units that are not on their way, but for those that failed before.
  void begin_write_out() EXCLUDES(mutex_);
  /// Calls `done` once what is on its way of the first 64 KiB is answered: stored, or failed and still here. Nothing
  /// blocks.
  void when_beginning_is_answered(Done done) EXCLUDES(mutex_);
  /// Returns when the store has all that was put into the range before, also what failed before. Blocks. An error
  /// concerns a unit that the range touches, or all were lost meanwhile.
  Result<> write_out(ByteRange range) EXCLUDES(mutex_);
  /// Forgets what lies in the range; nothing of it is on its way any more. Blocks. Answers how many bytes it was.
  std::uint64_t drop(ByteRange range) EXCLUDES(mutex_);
  /// The same of all, as it cannot be stored.
  std::uint64_t lose(const Error& why) EXCLUDES(mutex_);

  /// How often bytes could not be stored that had not failed before, or were lost; the last reason; and how many writes
  /// were buffered by now. To try again in vain what has failed is no further error.
  struct Errors {
    std::uint64_t count = 0;
    std::optional<Error> last;
    std::uint64_t puts = 0;
  };
  Errors errors() const EXCLUDES(mutex_);
  /// What it holds and does not count against the limit: it has failed, and may be on its way again. With its overhead.
  std::uint64_t bytes_without_room() const EXCLUDES(mutex_);
  /// Something could not be stored, and either is still here, or no write of this file has succeeded since: the next
  /// one is not to be buffered.
  bool is_failing() const EXCLUDES(mutex_);
  /// A write that was not buffered has succeeded.
  void succeeded() EXCLUDES(mutex_);

 private:
  using Records = std::map<std::uint64_t, DirtyRecord>;  // by offset in the file
  struct Run {
    std::uint64_t offset_bytes = 0;
    std::shared_ptr<DirtyRecord> record;  // the store may keep it longer
  };
  struct Unit {
    Records dirty;  // they do not overlap
    std::uint64_t dirty_bytes = 0;
    std::uint64_t first_put = 0;     // of those in `dirty`
    std::uint64_t without_room = 0;  // of its bytes: failed, and no longer counted against the limit
    std::uint64_t failed_at = 0;     // of all failures of the file, its last one
    bool is_wanted = false;          // to be sent as soon as it is not on its way
    bool has_failed = false;         // to be sent only when asked for
    bool is_failing = false;         // something of it has failed, and was not stored or dropped since
    bool lacked_room = false;        // that is why
    std::size_t counted_pieces = 0;  // against the limit, `sent` included
    // on its way
    std::vector<Run> sent;
    std::size_t unanswered = 0;
    std::uint64_t sent_first_put = 0, sent_without_room = 0;
    std::optional<Error> error;
    std::vector<Done> waiting;  // for the answer
  };
  using Units = std::map<std::uint64_t, Unit>;
  /// One step of the store.
  struct Sending {
    std::uint64_t unit = 0;
    std::vector<DataPiece> pieces;
  };
  enum class Present { is_replaced, stays };

  Units::iterator first_of(ByteRange range) REQUIRES(mutex_);
  bool reaches(const Units::value_type& unit, ByteRange range) const;
  /// Answers how many of the bytes were there before.
  std::uint64_t lay(Unit& unit, std::uint64_t offset_bytes, std::span<const char> bytes, Present present);
  DirtyRecord new_record(std::uint64_t offset_bytes, std::span<const char> bytes) const;
  std::uint64_t erase(Unit& unit, ByteRange range);
  static std::vector<Run> runs_of(Records&& records);
  static bool is_on_its_way(const Unit& unit, ByteRange range);
  static bool is_pending(const Unit& unit, std::uint64_t last_put);
  void send(std::uint64_t number, Unit& unit, std::vector<Sending>& sendings) REQUIRES(mutex_);
  void issue(std::vector<Sending>&& sendings) EXCLUDES(mutex_);
  void answered(std::uint64_t number, Result<> written) EXCLUDES(mutex_);
  void take_back(Unit& unit, bool is_news) REQUIRES(mutex_);
  void set_failing(Unit& unit, bool is_failing) REQUIRES(mutex_);
  void note_unsent(std::uint64_t number, const Unit& unit) REQUIRES(mutex_);
  std::uint64_t overhead_bytes() const REQUIRES(mutex_);
  void count_pieces(Unit& unit) REQUIRES(mutex_);
  void forget_if_empty(Units::iterator unit) REQUIRES(mutex_);
  std::uint64_t erase_all(ByteRange range, const Error* lost_by) EXCLUDES(mutex_);

  const Ino ino_;
  ObjectStore& store_;
  const std::uint64_t object_size_bytes_, unit_bytes_;
  const std::shared_ptr<DirtyRoom> room_;
  mutable Mutex mutex_;  // held during no call but the room's
  std::condition_variable changed_;
  Units units_ GUARDED_BY(mutex_);                     // by number
  std::set<std::uint64_t> unsent_ GUARDED_BY(mutex_);  // those with dirty bytes, not on their way, that have not failed
  std::uint64_t failing_units_ GUARDED_BY(mutex_) = 0;
  std::size_t counted_pieces_ GUARDED_BY(mutex_) = 0;
  std::uint64_t puts_ GUARDED_BY(mutex_) = 0;      // so far
  std::uint64_t failures_ GUARDED_BY(mutex_) = 0;  // of units, each try counts
  Errors errors_ GUARDED_BY(mutex_);
  std::uint64_t losses_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> lost_by_ GUARDED_BY(mutex_);  // the last of them
  bool failing_ GUARDED_BY(mutex_) = false;
  bool has_sent_ GUARDED_BY(mutex_) = false;
};

}  // namespace lccfs
