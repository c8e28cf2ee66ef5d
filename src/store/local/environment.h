// SPDX-License-Identifier: LGPL-2.1-or-later
//
// LMDB with the errors and lifetimes of this project. A write transaction is all or nothing and durable when committed;
// one at a time over all processes (a robust lock: a writer that is killed leaves nothing). Readers see one moment and
// wait for nobody.
//
// A key and what its table puts before it have 511 bytes at most: what does not fit is `invalid`, never cut.
// Any thread; a transaction by one thread at a time, a write transaction by the thread that began it.
#pragma once

#include <lmdb.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/text.h"
#include "lccfs/result.h"
#include "store/local/metadata_pages.h"

namespace lccfs::local {

class Environment;

/// A volume that an older program has used has a table `clients`, too.
enum class Table {
  objects,  ///< <object> -> its MetaHead
  keys,     ///< <object> NUL <omap key> -> value
  volume,   ///< "version" -> the last version handed out
  watches,  ///< <object> NUL <client id> "." <number of the watch> -> "1"
};
inline constexpr std::array table_names = {"objects", "keys", "volume", "watches"};

/// A read of one moment.
class Transaction {
 public:
  Transaction(Environment& environment, MDB_txn* transaction);
  virtual ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// nullopt: no such key. The view is good until the transaction's next change or end.
  Result<std::optional<std::string_view>> get(Table table, std::string_view key) const;
  /// Calls `work(key, value)` for each key that starts with `prefix` and comes after `after`, in byte order, until it
  /// answers false. It must not change the table.
  using Work = std::function<bool(std::string_view key, std::string_view value)>;
  Result<> walk(Table table, std::string_view prefix, std::string_view after, const Work& work) const;
  MDB_txn* raw() const { return transaction_; }
  MDB_dbi raw(Table table) const;

 protected:
  using Cursor = std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)>;
  Result<Cursor> open_cursor(Table table) const;

  Environment& environment_;
  MDB_txn* transaction_;

 private:
  const UsingPages using_pages_;  // LMDB, and callers that look at what it answers
};

class WriteTransaction final : public Transaction {
 public:
  using Transaction::Transaction;
  ~WriteTransaction() override;  ///< undone unless committed

  Result<> put(Table table, std::string_view key, std::string_view value);
  Result<> remove(Table table, std::string_view key);  ///< absent is fine
  Result<> remove_all(Table table, std::string_view prefix);
  /// Durable when it succeeds; no_space and quota_exceeded: nothing is.
  Result<> commit();
};

class Environment {
 public:
  /// At most one per directory and process, and not over a fork: LMDB's rules. Waits while another process opens it.
  /// busy: others have it open at an earlier moment than its last commit; nothing was changed.
  /// no_space: readers would have no room to say that they read.
  /// `create`: the file may be missing. `read_only`: nothing is written, not even that somebody reads: good only while
  /// nobody writes.
  struct Options {
    bool create = false;
    bool read_only = false;
  };
  static Result<std::unique_ptr<Environment>> open(const std::string& directory, const Options& options);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  Result<std::unique_ptr<Transaction>> begin_read();
  Result<std::unique_ptr<WriteTransaction>> begin_write();
  /// Frees what readers that were killed still pin.
  void drop_dead_readers();
  /// Keeps disk space in hand for steps that must work on a full disk (removing needs some pages first). false: what
  /// adds to the volume is to be refused.
  bool keep_reserve();
  std::uint64_t count(Table table);

 private:
  friend class Transaction;
  Environment(MDB_env* environment, std::string file)
      : environment_(environment), file_(std::move(file)), shown_file_(printable(file_)) {}
  static Result<std::unique_ptr<Environment>> map(const std::string& directory, bool read_only);
  static Result<std::unique_ptr<Environment>> map_without_own_readers(const std::string& directory);
  static Result<std::unique_ptr<Environment>> map_alone(const std::string& directory, bool create);
  bool has_own_readers();
  Result<std::size_t> last_commit_to_read();
  Result<bool> knows_last_commit();
  int open_handles(MDB_txn* transaction, unsigned flags);
  Result<> open_tables(bool read_only);

  MDB_env* const environment_;
  const std::string file_, shown_file_;
  std::array<MDB_dbi, table_names.size()> tables_{};
  std::atomic<std::uint64_t> reserved_bytes_ = 0;
  Mutex mutex_;
  std::vector<MDB_txn*> idle_readers_ GUARDED_BY(mutex_);  // a reader's slot is dear to get and cheap to renew
};

}  // namespace lccfs::local
