// SPDX-License-Identifier: LGPL-2.1-or-later
// All names of a volume, listed in parts by several threads at once, and what each of these reads meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "objects/object.h"

namespace lccfs::check {

/// Reads of one thread, a bounded number in flight. Answers are handled by that thread, within the calls below, in any
/// order. The first error, a handler's, ends it: what is in flight is waited for, and handled no more.
class ReadWindow {
 public:
  /// Is told of an object that the store cannot read (io, corrupt), in place of its handler.
  using OnUnreadable = std::function<void(const std::string& object, const Error& error)>;
  /// nullopt: there is no such object.
  using Found = std::optional<objects::Object>;
  using OnFound = std::move_only_function<Result<>(Found)>;
  using OnByte = std::move_only_function<Result<>(bool there)>;

  /// Without `on_unreadable`, such an object ends it as any error does.
  ReadWindow(ObjectStore& store, unsigned limit, OnUnreadable on_unreadable = nullptr);
  ~ReadWindow();
  ReadWindow(const ReadWindow&) = delete;
  ReadWindow& operator=(const ReadWindow&) = delete;

  /// Handles answers until there is room. Handlers may send, too, and do not wait for room: their own read has left it.
  /// `whole_ranges` as in objects/object.h.
  Result<> query(MetaRead read, OnFound handler, std::size_t whole_ranges = 0);
  /// Whether the data object has a byte at that place.
  Result<> look_for_byte(std::string object, std::uint64_t offset, OnByte handler);
  /// Handles all that is left.
  Result<> finish();

 private:
  struct Answers;
  Result<> make_room(unsigned most_in_flight);
  Result<> handle_error(const std::string& object, Error error) const;

  ObjectStore& store_;
  const unsigned limit_;
  const OnUnreadable on_unreadable_;
  unsigned in_flight_ = 0;
  bool handling_ = false;
  const std::shared_ptr<Answers> answers_;  // the completions' too
};

/// How much continues at once. A small volume is not worth a thread.
struct Effort {
  unsigned threads = 1;
  unsigned reads_per_thread = 16;
  ReadWindow::OnUnreadable on_unreadable = nullptr;  ///< called by any of the threads
};
Effort effort_for(unsigned jobs, std::uint64_t objects);

/// Called for each page, by several threads at once, each with its own window.
using OnNames = std::function<Result<>(ReadWindow&, const std::vector<std::string>&)>;
Result<> for_each_name(ObjectStore& store, const Effort& effort, const OnNames& on_names);

/// The same over numbers below `count`. Ends with the first error.
Result<> for_each_number(ObjectStore& store, const Effort& effort, std::size_t count,
                         const std::function<Result<>(ReadWindow&, std::size_t)>& work);

}  // namespace lccfs::check
