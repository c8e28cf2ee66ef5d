// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/object.h"

#include <future>
#include <iterator>
#include <memory>

namespace lccfs::objects {

namespace {

/// One object, page by page.
class WholeRead : public std::enable_shared_from_this<WholeRead> {
 public:
  WholeRead(Query query, MetaRead read, std::size_t whole_ranges, ObjectDone done)
      : query_(std::move(query)), read_(std::move(read)), whole_ranges_(whole_ranges), done_(std::move(done)) {}

  void begin() {
    query_(read_, [self = shared_from_this()](Result<MetaSnapshot> answer) {
      if (!answer) return self->done_(std::unexpected(std::move(answer).error()));
      self->object_ = {std::move(*answer), self->read_.object};
      self->resume(0);
    });
  }

 private:
  void resume(std::size_t range) {
    for (; range < whole_ranges_; ++range) {
      const auto& page = object_.ranges[range];
      if (page.more && !page.entries.empty()) return read_rest(range);
    }
    done_(std::move(object_));
  }

  void read_rest(std::size_t range) {
    auto rest = read_.ranges[range];
    rest.after = object_.ranges[range].entries.back().first;
    query_({.object = read_.object, .ranges = {rest}, .keys = {}},
           [self = shared_from_this(), range](Result<MetaSnapshot> answer) {
             const bool gone = !answer && answer.error().code == ErrorCode::not_found;
             if (gone || (answer && answer->version != self->object_.version)) return self->begin();
             if (!answer) return self->done_(std::unexpected(std::move(answer).error()));
             self->append(range, std::move(answer->ranges.front()));
             self->resume(range);
           });
  }

  void append(std::size_t range, KeyPage page) {
    auto& all = object_.ranges[range];
    all.more = page.more && !page.entries.empty();
    std::ranges::move(page.entries, std::back_inserter(all.entries));
  }

  const Query query_;
  const MetaRead read_;
  const std::size_t whole_ranges_;
  ObjectDone done_;
  Object object_;
};

}  // namespace

Query reader_of(ObjectStore& store) {
  return [&store](MetaRead read, ObjectStore::QueryDone done) { store.query_async(std::move(read), std::move(done)); };
}

void read_object_async(const Query& query, MetaRead read, std::size_t whole_ranges, ObjectDone done) {
  std::make_shared<WholeRead>(query, std::move(read), whole_ranges, std::move(done))->begin();
}

// The completion owns the promise: the waiter may be gone before it returns.
Result<Object> read_object(const Query& query, MetaRead read, std::size_t whole_ranges) {
  std::promise<Result<Object>> promise;
  auto answer = promise.get_future();
  read_object_async(
      query, std::move(read), whole_ranges,
      [promise = std::move(promise)](Result<Object> object) mutable { promise.set_value(std::move(object)); });
  return answer.get();
}

Result<std::optional<Object>> find_object(const Query& query, MetaRead read, std::size_t whole_ranges) {
  auto object = read_object(query, std::move(read), whole_ranges);
  if (object) return std::move(*object);
  if (object.error().code == ErrorCode::not_found) return std::nullopt;
  return std::unexpected(std::move(object).error());
}

Result<> for_each_page(const Query& query, const std::string& object, const std::string& prefix,
                       const std::function<Result<>(const KeyPage&)>& work) {
  KeyRange range{prefix, "", keys_at_once};
  for (bool more = true; more;) {
    LCCFS_TRY(const auto read, read_object(query, {.object = object, .ranges = {range}, .keys = {}}));
    const auto& page = read.ranges.front();
    LCCFS_CHECK(work(page));
    more = page.more && !page.entries.empty();
    if (more) range.after = page.entries.back().first;
  }
  return {};
}

Result<> for_each_key(const Query& query, const std::string& object, const std::string& prefix,
                      const std::function<Result<>(const std::string&, const Bytes&)>& work) {
  return for_each_page(query, object, prefix, [&work](const KeyPage& page) -> Result<> {
    for (const auto& [key, value] : page.entries) LCCFS_CHECK(work(key, value));
    return {};
  });
}

}  // namespace lccfs::objects
