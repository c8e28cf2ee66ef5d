// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The store port: the one contract that RADOS, the local store and the scripted store fulfil, held by one
// conformance suite (tests/conformance). One ObjectStore is one *store client*: it has one identity, and is
// fenced as a whole. The names in it are objects of one volume.
//
// Two kinds of object:
//  - metadata objects (Super, Alloc, Session.*, Inode.*): payload, extended attributes (xattrs) and an ordered
//    map of keys (omap); changed by transactions on one object, all or nothing, guarded;
//  - data objects (Data.*): bytes without guards. They may be in another pool.
//
// Threads: every method may be called by any thread. A completion (`done`) is called exactly once, by any thread,
// perhaps before the call that took it returns: it must be short, must not block and must not hold a lock that the
// caller of the method holds. The blocking forms must not be called from a completion. A client that ends waits for the
// answers to its steps; reads of metadata objects and removes of data objects that are not answered by then may be
// dropped, uncalled (a remove may still be applied).
//
// Durability: what is acknowledged survives the loss of power of every machine involved.
// Order: a read by one client of one object is ordered after that client's own earlier steps on that object.
// Failure: `guard_failed` and `exists` mean that nothing was applied *by this run of the step*; a store may run a step
// twice and report the second answer (docs/PROTOCOL.md, rule 5). `fenced` means that this client does no more.
// Time: nothing here has a time-out unless the store was opened with one; a store that is away is waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs {

// ---- guards: all must hold, or nothing is applied. On a missing object every guard fails (with
// `not_found`).
namespace guard {
struct ObjectExists {};
struct VersionIs {
  std::uint64_t version;
};  ///< as answered by an apply or a query
struct XattrEquals {
  std::string name;
  Bytes value;
};  ///< value is never empty
struct XattrAbsent {
  std::string name;
};  ///< an empty xattr counts as absent
struct KeyAbsent {
  std::string key;
};  ///< an empty value counts as absent
struct KeyPresent {
  std::string key;
};
struct KeyEquals {
  std::string key;
  Bytes value;
};  ///< value is never empty
struct KeyLess {
  std::string key;
  Bytes value;
};  ///< stored < value, both ASCII (RADOS takes bytes from 0x80 on for negative); an absent key passes
}  // namespace guard
using Guard = std::variant<guard::ObjectExists, guard::VersionIs, guard::XattrEquals, guard::XattrAbsent,
                           guard::KeyAbsent, guard::KeyPresent, guard::KeyEquals, guard::KeyLess>;

// ---- mutations, applied in the order given. Without CreateExclusive, and without the guard ObjectExists, a
// mutation of a missing object may create it: every caller guards (docs/PROTOCOL.md, rule 1).
namespace mutation {
struct CreateExclusive {};  ///< fails with `exists`; must be the first mutation
struct Remove {};           ///< the object with all it holds; must be the only one
struct SetPayload {
  Bytes payload;
};
struct SetXattr {
  std::string name;
  Bytes value;
};  ///< value is never empty
struct RemoveXattr {
  std::string name;
};  ///< absent is fine
struct SetKey {
  std::string key;
  Bytes value;
};  ///< value is never empty
struct RemoveKey {
  std::string key;
};  ///< absent is fine
}  // namespace mutation
using Mutation = std::variant<mutation::CreateExclusive, mutation::Remove, mutation::SetPayload, mutation::SetXattr,
                              mutation::RemoveXattr, mutation::SetKey, mutation::RemoveKey>;

/// One single-object transaction, as a value: it can be printed, counted, cut and replayed.
struct MetaTxn {
  std::string object;
  const char* step = "";  ///< the step's name in docs/STEPS.md, for traces and logs; a literal
  std::vector<Guard> guards;
  std::vector<Mutation> mutations;
  /// Even where the store is full: it takes next to nothing, and nobody could remove anything without it. Others that
  /// make an object, or give it bytes, answer no_space or quota_exceeded then.
  bool even_if_full = false;
};

struct Applied {
  /// The object's version after this transaction, good for guard::VersionIs. Rises with every change of the object,
  /// also over remove and create of the same name. 0 after a remove.
  std::uint64_t version = 0;
};

/// A range of keys that start with `prefix` and come after `after` (empty: from the first), at most `limit` of them.
struct KeyRange {
  std::string prefix;
  std::string after;
  std::uint32_t limit = 1024;
};

/// One read of one metadata object; all parts are of one version and one round trip.
struct MetaRead {
  std::string object;
  bool payload = false;
  bool xattrs = false;  ///< all of them
  std::vector<KeyRange> ranges = {};
  std::vector<std::string> keys = {};
};

struct KeyPage {
  std::vector<std::pair<std::string, Bytes>> entries;  ///< in byte order of the keys
  bool more = false;                                   ///< there are further keys with the prefix (pages may be short)
};

struct MetaSnapshot {
  std::uint64_t version = 0;
  Bytes payload;
  std::map<std::string, Bytes> xattrs;
  std::vector<KeyPage> ranges;        ///< one for each range asked for
  std::map<std::string, Bytes> keys;  ///< of the keys asked for, those that are there
};

/// Bytes to write; keeps them alive until the store has let go of them.
struct SharedBytes {
  std::shared_ptr<const char> owner;  ///< may be aliased; data lies within what it keeps alive
  const char* data = nullptr;
  std::size_t size_bytes = 0;
};

/// Bytes to write into a data object, and where.
struct DataPiece {
  std::uint64_t offset = 0;
  SharedBytes bytes;
};

/// Bytes of a data object.
struct DataExtent {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const DataExtent&) const = default;
};

/// A bound on the number of objects.
struct ObjectQuota {
  std::uint64_t most = 0;
  std::uint64_t available = 0;  ///< how many more there may be
};

struct Capacity {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< what a user could still write
  std::uint64_t objects = 0;
  /// The same bytes of where metadata objects are. With a data pool that is another pool, and may be full by itself.
  std::uint64_t metadata_total_bytes = 0, metadata_available_bytes = 0;
  /// nullopt: nothing bounds them but bytes. Of two pools that of which fewer are left.
  std::optional<ObjectQuota> quota = std::nullopt;
};

struct ListPage {
  std::vector<std::string> names;
  std::string next_cursor;  ///< empty: that was the last page
};

struct NotifyReply {
  std::vector<Bytes> answers;  ///< of the watchers that answered
  unsigned silent = 0;         ///< watchers that did not answer in time
};

/// What a watch calls. Called by a thread of the store's: must not block, only hand over.
class WatchHandler {
 public:
  virtual ~WatchHandler() = default;
  /// A notify on the watched object. `answer` may be called later, by any thread, once; not calling it is silence.
  virtual void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) = 0;
  /// The store has lost this watch: nothing reaches the handler any more. Watch again.
  virtual void on_lost(Error reason) = 0;
};

/// What one look at a client shows.
enum class Presence {
  watching,  ///< it watches the object (where a death is not proven at once, for up to half a minute after it)
  absent,    ///< it does not at this moment, which proves nothing: the store may just be back
  dead,      ///< proven: its process is gone. It is still to be fenced
};

/// Ends the watch when destroyed (blocking; not from the handler's own calls).
class Watch {
 public:
  virtual ~Watch() = default;
};

class ObjectStore {
 public:
  using ApplyDone = std::move_only_function<void(Result<Applied>)>;
  using QueryDone = std::move_only_function<void(Result<MetaSnapshot>)>;
  using ReadDone = std::move_only_function<void(Result<std::size_t>)>;
  using DataDone = std::move_only_function<void(Result<>)>;
  using ExtentsDone = std::move_only_function<void(Result<std::vector<DataExtent>>)>;

  virtual ~ObjectStore() = default;

  // -- metadata objects
  virtual void apply_async(MetaTxn txn, ApplyDone done) = 0;
  virtual void query_async(MetaRead read, QueryDone done) = 0;
  Result<Applied> apply(MetaTxn txn);
  Result<MetaSnapshot> query(MetaRead read);

  // -- data objects. Missing objects read as nothing; truncating, zeroing or removing one that is missing succeeds and
  // makes none. Two steps of one client on one object that are in flight together are applied in the order sent, unless
  // the store runs one twice.
  /// Fills the front of `target` (alive until done) and answers how many bytes there were (fewer at the object's end).
  virtual void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) = 0;
  /// One step, however many pieces it has: none of several is empty. If it fails or is cut short, any may be there.
  virtual void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) = 0;
  void write_data(std::string object, std::uint64_t offset, SharedBytes bytes, DataDone done);
  /// Cuts the object to at most `size_bytes`; never grows it.
  virtual void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) = 0;
  virtual void remove_data(std::string object, DataDone done) = 0;
  /// Makes these bytes zeros, and gives their space back where the store can. The object never grows; where they reach
  /// its end, it may end before them afterwards.
  virtual void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) = 0;
  /// Makes `target` a copy of all of `source`, as long as that, without the bytes passing through this client. The
  /// source is that of some moment before the answer, with all that was acknowledged before the call. `not_found`: there
  /// is no such source, and the target is as it was. `guard_failed`: the same, for the source has changed meanwhile.
  virtual void copy_data(std::string source, std::string target, DataDone done) = 0;
  /// Which of these bytes hold data, in order and apart; all others read as zeros. A store that does not know answers
  /// all that there is. What is in flight may be missed, what was acknowledged is not.
  virtual void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) = 0;

  // -- the volume
  /// Names of all objects, metadata and data, in no promised order. Objects made or removed meanwhile may be missed
  /// or be listed although gone. Start with an empty cursor.
  virtual Result<ListPage> list(std::string cursor) = 0;
  /// Cursors to begin with instead, for listings side by side: each continues to an empty cursor of its own, and
  /// together they name what the whole listing names, each object once. Some `parts` of them, perhaps fewer or more.
  virtual Result<std::vector<std::string>> list_starts(unsigned parts) = 0;
  virtual Result<Capacity> capacity() = 0;
  /// Data objects are from now on in this pool (docs/FORMAT.md, Super). To be called before the first data operation.
  virtual Result<> use_data_pool(const std::string& name) = 0;
  /// Lets the store's administration know what holds the volume; the error names the command for a person who may.
  virtual Result<> announce() { return {}; }

  // -- watch and notify
  /// `not_found` if the object does not exist. The store may lose a watch (on_lost), never silently for long.
  virtual Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) = 0;
  /// Returns when every watcher has answered, or after the time-out, and some seconds at most. No watcher: at once.
  /// `timed_out`: the object has not answered by then, so that nothing is known of its watchers.
  virtual Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) = 0;
  /// Whether the client of that identity watches the object now. `timed_out`: the object has not answered for 10 s.
  virtual Result<Presence> presence(const std::string& object, const Bytes& identity) = 0;

  // -- fencing (docs/PROTOCOL.md section 2)
  /// What `fence` needs to fence this client; opaque, never empty, valid on every client of the volume.
  virtual Bytes identity() const = 0;
  /// Whether the client of that identity may run on this client's host. false: its address is another host's.
  virtual bool may_be_of_this_host(const Bytes& identity) const {
    static_cast<void>(identity);
    return true;
  }
  /// Whether this client may fence; the error says in one line what it lacks. Changes nothing.
  virtual Result<> check_may_fence() { return {}; }
  /// Sends a read of the object's watchers, and returns at once. What it sees is for `fence`: to be called every few
  /// seconds for an object that all clients watch.
  virtual void look_at_watchers(const std::string& object) { static_cast<void>(object); }
  /// Bars that client for good. What the caller reads of an object after it returns can no longer be changed by it.
  /// `permission_denied`, with the command for a person who may: this client may not fence; or its key permits more
  /// than the volume needs, and it has never seen that client watch. (The writer of the identity could otherwise use
  /// this client's key.)
  virtual Result<> fence(const Bytes& identity) = 0;
  /// The same promise for all fences that others have completed before this call.
  virtual Result<> sync_fences() = 0;
};

}  // namespace lccfs
