// SPDX-License-Identifier: LGPL-2.1-or-later
// The records in objects, and their codecs (docs/FORMAT.md). A record: version byte, fields (little-endian; strings
// led by a 32-bit length), CRC-32C over all before it. Encodings are canonical: equal records have equal bytes, because
// guards compare whole values. Decoders take any bytes, and answer ErrorCode::corrupt (context: which record, and the
// byte offset of what is wrong) or ErrorCode::unsupported (a newer version). Pure functions; any thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/object_names.h"
#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs::format {

// ---- names of xattrs
namespace xattr {
inline constexpr const char* super = "super";    // Super: SuperRecord
inline constexpr const char* fences = "fences";  // Super: NumberRecord, how many fences there were
inline constexpr const char* next = "next";      // Alloc: NumberRecord, first number not handed out
inline constexpr const char* attr = "attr";      // Inode: AttrRecord
inline constexpr const char* state = "state";    // Inode: StateRecord
inline constexpr const char* parent = "parent";  // Inode: BackPointerRecord, the first back-pointer
inline constexpr const char* size = "size";      // regular file, symlink: NumberRecord
inline constexpr const char* atime = "atime";    // TimeRecord, each
inline constexpr const char* mtime = "mtime";
inline constexpr const char* ctime = "ctime";  // set by each change of attributes or names
inline constexpr const char* wtime = "wtime";  // regular file: changed by the lease's holder; st_ctime is the later one
/// Regular file: NumberRecord, the instance that holds the write lease. Directory: DirectoryLeaseRecord.
inline constexpr const char* lease = "lease";
/// Directory: DirectoryLeaseRecord, the same as in `lease` while its holder may write names behind, or an old one.
inline constexpr const char* behind = "behind";
inline constexpr const char* fence =
    "fence";  // regular file: NumberRecord, number of the last fence before a take-over
inline constexpr const char* locks = "locks";  // regular file: LockStateRecord
inline constexpr const char* taken = "taken";  // regular file: TakenRecord, changes whenever the lease is taken
inline constexpr const char* nsub = "nsub";    // directory: NumberRecord, how many subdirectories
}  // namespace xattr

inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint32_t name_limit_bytes = 255;
inline constexpr std::uint32_t symlink_limit_bytes = 4095;
inline constexpr std::uint32_t attribute_name_limit_bytes = 255;
inline constexpr std::uint32_t attribute_value_limit_bytes = 65536;
inline constexpr std::uint64_t file_size_limit_bytes = (std::uint64_t{1} << 63) - 1;
inline constexpr std::uint32_t object_size_min_bytes = 64U << 10;
inline constexpr std::uint32_t object_size_max_bytes = 32U << 20;
inline constexpr std::uint32_t object_size_default_bytes = 4U << 20;
inline constexpr std::uint32_t grace_default_seconds = 60;

/// Bits of SuperRecord::incompat. Each has a row in format/features.h.
namespace feature {
inline constexpr std::uint64_t space_units = 1;  // map blocks (m/) may be of record version 2
inline constexpr std::uint64_t moves = 2;        // marked entries, and committed decisions
inline constexpr std::uint64_t acls = 4;         // POSIX ACLs, which change with the mode
inline constexpr std::uint64_t locks = 8;        // locks of files between clients
inline constexpr std::uint64_t openers = 16;     // which clients have a file open, and `taken`: pages that are right
inline constexpr std::uint64_t directory_leases = 32;  // directories that one client alone may change
inline constexpr std::uint64_t names_behind = 64;      // ... and whose names it may write behind
}  // namespace feature

struct SuperRecord {  // led by the 8 bytes "LCCFSvol"; the format version is the record's version byte's neighbour
  std::uint32_t version = format_version;
  std::uint64_t compat = 0, ro_compat = 0, incompat = 0;  // feature bits
  VolumeUuid uuid{};
  std::string label;                                            // at most 255 bytes
  std::uint32_t object_size_bytes = object_size_default_bytes;  // a power of two
  std::string data_pool;                                        // empty: data objects are beside the metadata
  std::uint32_t grace_seconds = grace_default_seconds;
  TimeSpec birth;
  bool has(std::uint64_t incompat_bits) const { return (incompat & incompat_bits) == incompat_bits; }
  bool operator==(const SuperRecord&) const = default;
};

/// unsupported: this version does not know all features that are needed to read the volume, or to write it. Names
/// those bits, and says what to do.
Result<> check_features(const SuperRecord& super, bool read_only);

struct NumberRecord {
  std::uint64_t value = 0;
  bool operator==(const NumberRecord&) const = default;
};

/// Instances and inodes share these numbers: 1 is the root, and what comes near the end of 64 bits is damage.
inline constexpr std::uint64_t first_number = 2;
inline constexpr std::uint64_t numbers_end = std::uint64_t{1} << 63;
/// What Alloc hands out next (a NumberRecord). corrupt: no number to be handed out.
Result<std::uint64_t> decode_next_number(std::string_view bytes);
/// Fences are counted below this; what comes near the end of 64 bits is damage, and would begin at 0 again.
inline constexpr std::uint64_t fences_end = std::uint64_t{1} << 63;
/// Super's counter of fences, or the number of one on an inode (NumberRecords). corrupt: none that can be counted to.
Result<std::uint64_t> decode_fence_number(std::string_view bytes);

/// An error about a part of one of the volume's own objects, with what to do about it.
Error damage_of(const std::string& part, const Error& error);
/// What volume this is, of Super's xattrs, which nothing else can tell. corrupt: with what to do about it. unsupported:
/// this version cannot read it (check_features); whether it may write is for the caller to check.
Result<SuperRecord> super_in(const std::map<std::string, Bytes>& xattrs);

struct TimeRecord {
  TimeSpec time;
  bool operator==(const TimeRecord&) const = default;
};

namespace attr_flag {                                // what is not set is not there
inline constexpr std::uint32_t user_attributes = 1;  // some u/ key is there
inline constexpr std::uint32_t capability = 2;       // security.capability is among them
inline constexpr std::uint32_t access_acl = 4;       // system.posix_acl_access is
inline constexpr std::uint32_t default_acl = 8;      // system.posix_acl_default is
}  // namespace attr_flag

/// The extended attributes that have a flag of their own.
namespace attribute {
inline constexpr const char* capability = "security.capability";
inline constexpr const char* access_acl = "system.posix_acl_access";
inline constexpr const char* default_acl = "system.posix_acl_default";
}  // namespace attribute

/// That of these which says that there is an extended attribute of this name; 0: it has none of its own.
std::uint32_t own_flag_of(std::string_view attribute_name);
/// All that say so.
std::uint32_t flags_of(std::string_view attribute_name);
/// The extended attributes whose own flags these are.
std::vector<std::string> attributes_of_flags(std::uint32_t flags);

struct AttrRecord {
  FileType type = FileType::regular;
  std::uint32_t mode = 0;  // permission bits only, 07777
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t rdev = 0;
  std::uint32_t nlink = 1;  // directory: 1 or 0; st_nlink is 2 + nsub
  TimeSpec birth;
  Token birth_token;
  std::uint32_t flags = 0;
  bool operator==(const AttrRecord&) const = default;
};

/// A root that a repair made anew has the birth token 0.N: each number up to N was handed out before it. Whether a
/// back-pointer of that inode was made before it, too: it leads to the root that was lost.
inline bool leads_to_lost_root(Token birth_of_root, Ino ino, InstanceId pointer_made_by) {
  const auto last_before = birth_of_root.instance == InstanceId{0} ? birth_of_root.number : 0;
  return ino.value <= last_before && pointer_made_by.value <= last_before;
}

struct StateRecord {
  enum class Kind : std::uint8_t { live = 1, sealed = 2, dead = 3 };
  Kind kind = Kind::live;
  // sealed only: a directory about to go, by whose step, and from under which name
  Token token;
  Ino parent;
  std::string name;
  bool operator==(const StateRecord&) const = default;
};

struct BackPointerRecord {
  Ino parent;
  Token token;
  bool operator==(const BackPointerRecord&) const = default;
};

/// An entry's value, n/ key. Its first byte is the kind: 1 = reference to an inode object.
struct EntryRecord {
  /// The inode is about to get a name in another directory, instead of this one. Whether it has it already, the
  /// decision x/<token> there says (docs/PROTOCOL.md section 6).
  struct Mark {
    Token token;
    Ino to;
    bool operator==(const Mark&) const = default;
  };

  Ino ino;
  FileType type = FileType::regular;
  Token token;                              // of the step that wrote it; a mark keeps it
  std::optional<Mark> mark = std::nullopt;  // version 2
  bool operator==(const EntryRecord&) const = default;
};

/// A file's allocation map for 1024 data objects, m/ key (docs/DATA.md section 1).
struct MapBlock {
  static constexpr std::uint64_t objects = 1024;
  /// Of the units of an object, one bit for each (layout.h): those that are believed there, some but not all.
  struct PartlyThere {
    std::uint16_t object = 0;
    std::uint64_t units = 0;
    bool operator==(const PartlyThere&) const = default;
  };
  std::bitset<objects> may_exist;
  std::bitset<objects> believed_there;    // all of the object, or the units in partly_there
  std::vector<PartlyThere> partly_there;  // version 2; by object
  bool operator==(const MapBlock&) const = default;
};

/// The value of x/: what was decided of a step. cancelled: it can never commit. committed: it has given a name here to
/// an inode that stands under the old name, marked, until that is removed.
struct DecisionRecord {
  enum class Kind : std::uint8_t { cancelled = 1, committed = 2 };
  Kind kind = Kind::cancelled;
  // committed only: the old name
  Ino from = {};
  std::string name = {};
  bool operator==(const DecisionRecord&) const = default;
};

/// Where the locks of a file stand (docs/LOCKS.md). The xattr stays as long as the inode.
struct LockStateRecord {
  enum class Kind : std::uint8_t {
    leased = 1,  ///< the token's instance, in its memory; nobody else has any
    shared = 2,  ///< each client that has some, in its k/ key
  };
  Kind kind = Kind::leased;
  Token token;  ///< of the step that wrote it, the last one that added a lock
  bool operator==(const LockStateRecord&) const = default;
};

/// Who alone may change a directory (docs/NAMES.md).
struct DirectoryLeaseRecord {
  Token token;  ///< of the step that took it: the instance holds it, and no two tenures have the same
  bool operator==(const DirectoryLeaseRecord&) const = default;
};

/// The value of a k/ key: the locks of one client's owners.
struct LocksRecord {
  struct Lock {
    bool is_flock = false;
    bool is_exclusive = false;
    std::uint64_t first = 0, last = 0;  ///< bytes, both included
    auto operator<=>(const Lock&) const = default;
  };
  static constexpr std::uint32_t most = 4096;
  std::uint64_t number = 0;  ///< the token's, of the step that wrote it
  std::vector<Lock> locks;   ///< in order, each once
  bool operator==(const LocksRecord&) const = default;
};

/// Changes whenever an instance takes a file's lease: while nobody holds it, bytes are what they were when it last was
/// the same (docs/DATA.md section 9).
struct TakenRecord {
  Token token;
  bool operator==(const TakenRecord&) const = default;
};

/// The value of a reverse key, a d/ key, a p/ key or an o/ key: there is nothing to say, but no value is ever empty.
inline constexpr std::string_view marker_value = "\1";

/// The value of the reverse key that belongs to an entry: a mark stands there, too.
Bytes reverse_value(const EntryRecord& entry);
/// The marked entry that the reverse key of an inode says there is; nullopt: without a mark, or not to be read.
std::optional<EntryRecord> marked_entry(std::string_view reverse_value, Ino ino);

/// What tells one process from all others of a host, with its number.
struct ProcessRecord {
  std::string boot_id;              // of the kernel, since it was started
  std::uint64_t pid_namespace = 0;  // its inode: containers share the boot, not the namespace
  std::uint64_t start_ticks = 0;    // when the process began, since boot
  bool operator==(const ProcessRecord&) const = default;
};

/// The move that may move a directory to another directory now; `rename` key on Super.
struct RenameLockRecord {
  enum class Kind : std::uint8_t { free = 1, held = 2 };
  Kind kind = Kind::free;
  Token token;  // of the move that holds it, or held it last
  Ino to;       // the directory to which that leads: whether it has committed, the decision x/<token> there says
  bool operator==(const RenameLockRecord&) const = default;
};

struct InstanceRecord {  // s/ key on Super
  enum class State : std::uint8_t { live = 1, fenced = 2, ended = 3 };
  std::string host;
  std::uint64_t pid = 0;
  std::string version;  // of the program
  TimeSpec since;
  Bytes identity;  // what the store needs to fence it
  std::string mount_id;
  State state = State::live;
  std::uint64_t fence_number = 0;                       // fenced only
  std::optional<ProcessRecord> process = std::nullopt;  // version 2
  bool operator==(const InstanceRecord&) const = default;
};

struct QueueItem {  // q/ key on a session object
  enum class Kind : std::uint8_t { range = 1, directory = 2, inode = 3 };
  static constexpr std::uint64_t most_numbers = std::uint64_t{1} << 20;  ///< of a range: a collector looks at each
  Kind kind = Kind::inode;
  Ino ino;  // directory, inode; range: the first number
  Ino end;  // range: one past the last number
  TimeSpec time;
  bool operator==(const QueueItem&) const = default;
};

/// What one instance asks another with a notify on its session object.
struct Question {
  enum class Kind : std::uint8_t {
    release_lease = 1,
    store_attributes = 2,
    share_locks = 3,    ///< to write the file's locks out, and to tell the asker when some of them go
    locks_changed = 4,  ///< some have gone. done: somebody there waits for them; busy: nobody does any more
    file_opened = 5,    ///< store_attributes, and the asker has the file open: it is to be told of changes
    file_changed = 6,   ///< by its lease's holder. done: it is open there; busy: it is not, and need not be told again
    release_directory = 7,  ///< the directory's lease
  };
  Kind kind = Kind::release_lease;
  Ino ino;
  bool from_open = false;        // store_attributes: the asker opens the file, or has it open and reads its end
  std::vector<Ino> others = {};  // store_attributes: of these too, at most question_limit - 1
  std::uint64_t work = 0;        // what an earlier answer to this question has named
  InstanceId asker = {};         // from share_locks to file_changed
  bool operator==(const Question&) const = default;
};
inline constexpr std::uint32_t question_limit = 64;
struct Answer {
  enum class Kind : std::uint8_t { done = 1, busy = 2 };
  Kind kind = Kind::done;
  std::uint64_t work = 0;  // busy: the number of the work that began for this question, and is enough for it
  bool operator==(const Answer&) const = default;
};

/// What a collector asks all instances with one notify on Super (docs/PROTOCOL.md section 2).
struct LivenessPoll {
  InstanceId asker;         // who takes a turn at collecting; 0: nobody (a dry run, or a collector that got nowhere)
  std::vector<Ino> inodes;  // at most poll_limit: which of these are open there? Directories only if they are dead
  bool operator==(const LivenessPoll&) const = default;
};
inline constexpr std::uint32_t poll_limit = 4096;
struct PollReply {
  InstanceId instance;
  std::uint64_t lowest_running = 0;  // no number of this instance's below it is running or relied on
  std::vector<Ino> open;             // of those asked for
  bool operator==(const PollReply&) const = default;
};

/// Both are defined for every record above.
template <class Record>
Bytes encode(const Record& record);
template <class Record>
Result<Record> decode(std::string_view bytes);

}  // namespace lccfs::format
