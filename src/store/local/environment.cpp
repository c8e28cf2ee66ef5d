// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/environment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

#include "store/local/descriptor.h"

namespace lccfs::local {
namespace {

// Address space, not disk or memory; less of it where a limit or a sanitizer leaves no room.
constexpr std::size_t map_size_bytes = std::size_t{1} << 40;
constexpr std::size_t least_map_size_bytes = std::size_t{1} << 30;
constexpr unsigned reader_slots = 4096;
constexpr std::uint64_t lock_file_bytes = 4096 + std::uint64_t{64} * reader_slots;  // that of LMDB at most
constexpr std::uint64_t reserve_bytes = 16U << 20;
constexpr std::size_t key_limit_bytes = 511;  // LMDB's

std::unexpected<Error> lmdb_failure(int code, const std::string& what) {
  const std::string context = what + ": " + ::mdb_strerror(code);
  switch (code) {
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
      return failure(ErrorCode::no_space, context);
    case MDB_READERS_FULL:
      return failure(ErrorCode::busy, context);
    case MDB_VERSION_MISMATCH:
      return failure(ErrorCode::unsupported, context);
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
      return failure(ErrorCode::corrupt, context);
    default:
      return code > 0 ? std::unexpected(system_error(what, Outcome::definite, code)) : failure(ErrorCode::io, context);
  }
}

MDB_val as_value(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
std::string_view as_view(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

/// LMDB finds no longer key, and puts none in.
Result<> check_key(std::string_view key) {
  if (key.size() <= key_limit_bytes) return {};
  return failure(ErrorCode::invalid, "a key of " + std::to_string(key.size()) +
                                         " bytes, with its object's name; the local store has room for " +
                                         std::to_string(key_limit_bytes));
}

/// An empty file is what LMDB takes for a new one: here it is new only while a volume is made.
Result<> check_file(const std::string& path, bool create) {
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) return std::unexpected(system_error(path));
  if (there && status.st_size != 0) return check_metadata_header(path);
  if (create) return {};
  return failure(ErrorCode::corrupt,
                 path + ": it is " + (there ? "empty" : "missing") +
                     ": mkfs was cut short (run it again), or the volume's metadata is lost (restore it from a copy)");
}

/// Held as long as it is open.
Result<Descriptor> lock_out_others(const std::string& directory) {
  Descriptor names(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!names) return std::unexpected(system_error(directory));
  while (::flock(names.get(), LOCK_EX) != 0)
    if (errno != EINTR) return std::unexpected(system_error("lock " + directory));
  return names;
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

/// Room on the disk, past the end of the file, too. 0, or why not.
int reserve(int file, std::uint64_t offset, std::uint64_t size_bytes) {
  while (::fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size_bytes)) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

/// LMDB writes its lock file through a mapping, where a page that the disk has no room for is a SIGBUS: all of it gets
/// its room before. Not while this process has the environment open: LMDB's lock would go with the descriptor.
Result<> reserve_lock_file(const std::string& directory) {
  const std::string path = directory + "/lock.mdb";
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return std::unexpected(system_error(path));
  if (static_cast<std::uint64_t>(status.st_blocks) * 512 >= lock_file_bytes) return {};  // asks for none on a full disk
  const int error = reserve(file.get(), 0, lock_file_bytes);
  // An older program has left the first of its pages: enough for some 60 readers, and for removing what fills the disk.
  const bool has_none = status.st_blocks == 0;
  if (is_full(error) && has_none) return std::unexpected(system_error(path, Outcome::definite, error));
  return {};  // or it cannot reserve
}

}  // namespace

// ---- transactions

Transaction::Transaction(Environment& environment, MDB_txn* transaction)
    : environment_(environment), transaction_(transaction), using_pages_(environment.shown_file_) {}

Transaction::~Transaction() {
  if (!transaction_) return;
  ::mdb_txn_reset(transaction_);
  const Lock lock(environment_.mutex_);
  environment_.idle_readers_.push_back(transaction_);
}

MDB_dbi Transaction::raw(Table table) const { return environment_.tables_[static_cast<std::size_t>(table)]; }

Result<std::optional<std::string_view>> Transaction::get(Table table, std::string_view key) const {
  LCCFS_CHECK(check_key(key));
  MDB_val wanted = as_value(key), value{};
  const int code = ::mdb_get(transaction_, raw(table), &wanted, &value);
  if (code == MDB_NOTFOUND) return std::nullopt;
  if (code) return lmdb_failure(code, "read metadata");
  return as_view(value);
}

Result<Transaction::Cursor> Transaction::open_cursor(Table table) const {
  MDB_cursor* cursor = nullptr;
  if (const int code = ::mdb_cursor_open(transaction_, raw(table), &cursor)) return lmdb_failure(code, "read metadata");
  return Cursor(cursor, ::mdb_cursor_close);
}

Result<> Transaction::walk(Table table, std::string_view prefix, std::string_view after, const Work& work) const {
  LCCFS_TRY(const Cursor cursor, open_cursor(table));
  MDB_val at = as_value(std::max(prefix, after)), value{};
  int code = ::mdb_cursor_get(cursor.get(), &at, &value, at.mv_size == 0 ? MDB_FIRST : MDB_SET_RANGE);
  std::string_view before;
  while (code == 0 && as_view(at).starts_with(prefix)) {
    const auto key = as_view(at);
    if (key <= before)  // keys rise: in a damaged table a walk could else go round for ever
      return failure(ErrorCode::corrupt, "the metadata is damaged: its keys are out of order");
    if (key > after && !work(key, as_view(value))) return {};
    before = key;
    code = ::mdb_cursor_get(cursor.get(), &at, &value, MDB_NEXT);
  }
  return code == 0 || code == MDB_NOTFOUND ? Result<>() : lmdb_failure(code, "read metadata");
}

WriteTransaction::~WriteTransaction() { ::mdb_txn_abort(std::exchange(transaction_, nullptr)); }

Result<> WriteTransaction::put(Table table, std::string_view key, std::string_view value) {
  LCCFS_CHECK(check_key(key));
  MDB_val at = as_value(key), bytes = as_value(value);
  if (const int code = ::mdb_put(transaction_, raw(table), &at, &bytes, 0)) return lmdb_failure(code, "write metadata");
  return {};
}

Result<> WriteTransaction::remove(Table table, std::string_view key) {
  LCCFS_CHECK(check_key(key));
  MDB_val at = as_value(key);
  const int code = ::mdb_del(transaction_, raw(table), &at, nullptr);
  if (code && code != MDB_NOTFOUND) return lmdb_failure(code, "remove metadata");
  return {};
}

Result<> WriteTransaction::remove_all(Table table, std::string_view prefix) {
  LCCFS_TRY(const Cursor cursor, open_cursor(table));
  for (;;) {
    MDB_val at = as_value(prefix), value{};
    int code = ::mdb_cursor_get(cursor.get(), &at, &value, MDB_SET_RANGE);
    if (code == MDB_NOTFOUND || (code == 0 && !as_view(at).starts_with(prefix))) return {};
    if (code == 0) code = ::mdb_cursor_del(cursor.get(), 0);
    if (code) return lmdb_failure(code, "remove metadata");
  }
}

Result<> WriteTransaction::commit() {
  const int code = ::mdb_txn_commit(std::exchange(transaction_, nullptr));
  if (code == 0) return {};
  auto failed = lmdb_failure(code, "commit metadata");
  Error& error = failed.error();
  // Pages are written before the page that makes them count, so a full disk is found in time. Of anything else LMDB
  // does not say how far it came.
  if (!is_out_of_space(error)) error.outcome = Outcome::unknown;
  return failed;
}

// ---- the environment

Result<std::unique_ptr<Environment>> Environment::open(const std::string& directory, const Options& options) {
  UsingPages::watch_for_faults();
  if (options.read_only) LCCFS_CHECK(check_file(directory + "/data.mdb", false));
  LCCFS_TRY(auto environment, options.read_only ? map(directory, true) : map_alone(directory, options.create));
  LCCFS_CHECK(environment->open_tables(options.read_only));
  return environment;
}

Result<std::unique_ptr<Environment>> Environment::map(const std::string& directory, bool read_only) {
  const std::string file = directory + "/data.mdb";
  for (std::size_t size = map_size_bytes;; size /= 2) {
    MDB_env* raw = nullptr;
    if (const int code = ::mdb_env_create(&raw)) return lmdb_failure(code, "open " + directory);
    std::unique_ptr<Environment> environment(new Environment(raw, file));
    const UsingPages using_pages(environment->shown_file_);
    ::mdb_env_set_assert(raw, [](MDB_env*, const char*) { std::abort(); });  // without its own two lines
    ::mdb_env_set_mapsize(raw, size);
    ::mdb_env_set_maxreaders(raw, reader_slots);
    ::mdb_env_set_maxdbs(raw, table_names.size());
    const unsigned flags = MDB_NOTLS | (read_only ? MDB_RDONLY | MDB_NOLOCK : 0);
    const int code = ::mdb_env_open(raw, directory.c_str(), flags, 0600);
    if (code == ENOMEM && size > least_map_size_bytes) continue;
    if (code) return lmdb_failure(code, "open " + file);
    return environment;
  }
}

bool Environment::has_own_readers() {
  bool found = false;
  const auto look = [](const char* line, void* to) {  // "<process> <thread> <commit>", or a headline
    if (std::strtol(line, nullptr, 10) == ::getpid()) *static_cast<bool*>(to) = true;
    return 0;
  };
  ::mdb_reader_list(environment_, look, &found);
  return found;
}

// LMDB takes readers that have the number of this process for its own, and keeps them. Before the first read here they
// are of one that was killed, and had the same number, as the first process of each container has: what it was reading
// would be kept for as long as this one lives. Closing drops all that have the number, once something was read. Nobody
// else loses any by that: a read locks the number, and fails where a living process (of another PID namespace) has it.
Result<std::unique_ptr<Environment>> Environment::map_without_own_readers(const std::string& directory) {
  LCCFS_TRY(auto environment, map(directory, false));
  environment->drop_dead_readers();
  if (!environment->has_own_readers()) return environment;
  LCCFS_CHECK(environment->last_commit_to_read());
  environment.reset();
  return map(directory, false);
}

// Which commit is the last one, LMDB reads in its lock file, and the first opener writes it there, as the last thing it
// does: until then it says 0. A second opener waits for the first one's lock, and believes what it finds. If the first
// one has failed, or was killed, the second would read the commit before the last one, and write over the last one. So
// nobody waits there: the next opener comes when this one is done or dead, is the first one again, and begins anew.
Result<std::unique_ptr<Environment>> Environment::map_alone(const std::string& directory, bool create) {
  const std::string file = directory + "/data.mdb";
  LCCFS_TRY(const auto names, lock_out_others(directory));
  LCCFS_CHECK(check_file(file, create));
  LCCFS_CHECK(reserve_lock_file(directory));
  for (unsigned tries = 0; tries < 2; ++tries) {
    LCCFS_TRY(auto environment, map_without_own_readers(directory));
    LCCFS_TRY(const bool current, environment->knows_last_commit());
    if (!current) continue;
    LCCFS_CHECK(sync_directory(names.get(), directory));
    return environment;
  }
  return failure(ErrorCode::busy, file +
                                      ": a program that was cut short while it opened the volume has left others "
                                      "at an earlier moment; end all that use it, then try again");
}

Result<std::size_t> Environment::last_commit_to_read() {
  const UsingPages using_pages(shown_file_);
  MDB_txn* reader = nullptr;
  const int code = ::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader);
  if (code == EAGAIN) {  // the first read of a process locks its number
    return failure(ErrorCode::busy, file_ + ": a client in another PID namespace (container) has process number " +
                                        std::to_string(::getpid()) + ", too: give this one another, then try again");
  }
  if (code) return lmdb_failure(code, "open the metadata");
  const std::size_t known = ::mdb_txn_id(reader);
  ::mdb_txn_abort(reader);
  return known;
}

/// Of older programs, which do not keep out others, what is said above may still be found.
Result<bool> Environment::knows_last_commit() {
  const UsingPages using_pages(shown_file_);
  MDB_envinfo info{};
  ::mdb_env_info(environment_, &info);  // from the file's own head, not from the lock file
  LCCFS_TRY(const std::size_t known, last_commit_to_read());
  if (known >= info.me_last_txnid) return true;
  // A commit writes the head first. Where a writer is between the two, or was killed there, the next one waits for it,
  // or puts it right.
  LCCFS_TRY(const auto writer, begin_write());
  return ::mdb_txn_id(writer->raw()) > info.me_last_txnid;
}

int Environment::open_handles(MDB_txn* transaction, unsigned flags) {
  for (std::size_t i = 0; i < table_names.size(); ++i)
    if (const int code = ::mdb_dbi_open(transaction, table_names[i], flags, &tables_[i])) return code;
  return 0;
}

Result<> Environment::open_tables(bool read_only) {
  MDB_txn* reader = nullptr;
  if (const int code = ::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader))
    return lmdb_failure(code, "open the metadata");
  const auto checked = check_metadata_pages(file_, ::mdb_txn_id(reader));
  const int found = checked ? open_handles(reader, 0) : 0;
  ::mdb_txn_commit(reader);  // handles stay open only after a commit
  LCCFS_CHECK(checked);
  if (found == MDB_NOTFOUND && read_only)
    return failure(ErrorCode::not_found, file_ + ": it has not all tables: mkfs was cut short");
  if (found != MDB_NOTFOUND) return found ? Result<>(lmdb_failure(found, "open the metadata")) : Result<>();
  LCCFS_TRY(auto writer, begin_write());
  if (const int code = open_handles(writer->raw(), MDB_CREATE)) return lmdb_failure(code, "make the metadata tables");
  return writer->commit();
}

Environment::~Environment() {
  for (MDB_txn* reader : idle_readers_) ::mdb_txn_abort(reader);
  ::mdb_env_close(environment_);
}

Result<std::unique_ptr<Transaction>> Environment::begin_read() {
  const UsingPages using_pages(shown_file_);
  MDB_txn* reader = nullptr;
  {
    const Lock lock(mutex_);
    if (!idle_readers_.empty()) {
      reader = idle_readers_.back();
      idle_readers_.pop_back();
    }
  }
  int code = reader ? ::mdb_txn_renew(reader) : ::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader);
  if (code == MDB_READERS_FULL) {
    drop_dead_readers();
    code = ::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader);
  }
  if (code) {
    ::mdb_txn_abort(reader);
    return lmdb_failure(code, "read metadata");
  }
  return std::make_unique<Transaction>(*this, reader);
}

Result<std::unique_ptr<WriteTransaction>> Environment::begin_write() {
  const UsingPages using_pages(shown_file_);
  MDB_txn* writer = nullptr;
  if (const int code = ::mdb_txn_begin(environment_, nullptr, 0, &writer)) return lmdb_failure(code, "write metadata");
  return std::make_unique<WriteTransaction>(*this, writer);
}

void Environment::drop_dead_readers() { ::mdb_reader_check(environment_, nullptr); }

bool Environment::keep_reserve() {
  const UsingPages using_pages(shown_file_);
  MDB_envinfo info{};
  MDB_stat stat{};
  int file = -1;
  ::mdb_env_info(environment_, &info);
  ::mdb_env_stat(environment_, &stat);
  ::mdb_env_get_fd(environment_, &file);
  const std::uint64_t used_bytes = (info.me_last_pgno + 1) * std::uint64_t{stat.ms_psize};
  if (used_bytes + reserve_bytes <= reserved_bytes_) return true;
  // Twice the reserve, so that a growing volume asks seldom.
  const int error = reserve(file, used_bytes, 2 * reserve_bytes);
  if (error == 0) {
    reserved_bytes_ = used_bytes + 2 * reserve_bytes;
  } else if (is_full(error)) {
    // What another process has reserved, or this one did before, is still there, and needs no room.
    if (reserve(file, used_bytes, reserve_bytes) != 0) return false;
    reserved_bytes_ = used_bytes + reserve_bytes;
  } else if (error == EOPNOTSUPP || error == ENOSYS) {
    reserved_bytes_ = std::numeric_limits<std::uint64_t>::max();  // a file system that cannot reserve
  }
  return true;  // after any other error the next batch tries again
}

std::uint64_t Environment::count(Table table) {
  const auto reader = begin_read();
  MDB_stat stat{};
  if (!reader || ::mdb_stat((*reader)->raw(), (*reader)->raw(table), &stat) != 0) return 0;
  return stat.ms_entries;
}

}  // namespace lccfs::local
