// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/object.h"

#include <atomic>
#include <iterator>
#include <memory>

#include "base/completions.h"
#include "base/expected_errors.h"

namespace lccfs::objects {

namespace {

/// One object, page by page.
class WholeRead : public std::enable_shared_from_this<WholeRead> {
 public:
  WholeRead(Query query, MetaRead read, std::size_t whole_ranges, ObjectDone done)
      : query_(std::move(query)), read_(std::move(read)), whole_ranges_(whole_ranges), done_(std::move(done)) {}

  void begin() {
    range_.reset();
    ask();
  }

 private:
  /// A store may answer before the call returns: then the next page is asked for here, not a level deeper for each page.
  void ask() {
    if (turns_.fetch_add(1) != 0) return;
    const auto self = shared_from_this();
    do {
      query_(next_read(), [self](Result<MetaSnapshot> answer) { self->take(std::move(answer)); });
    } while (turns_.fetch_sub(1) != 1);
  }

  MetaRead next_read() const {
    if (!range_) return read_;
    auto rest = read_.ranges[*range_];
    rest.after = object_.ranges[*range_].entries.back().first;
    return {.object = read_.object, .ranges = {rest}};
  }

  void take(Result<MetaSnapshot> answer) {
    const bool gone = !answer && answer.error().code == ErrorCode::not_found;
    if (range_ && (gone || (answer && answer->version != object_.version))) return begin();
    if (!answer) return done_(std::unexpected(std::move(answer).error()));
    if (range_) {
      append(*range_, std::move(answer->ranges.front()));
    } else {
      object_ = {std::move(*answer), read_.object};
    }
    for (auto range = range_.value_or(0); range < whole_ranges_; ++range) {
      const auto& page = object_.ranges[range];
      if (!page.more || page.entries.empty()) continue;
      range_ = range;
      return ask();
    }
    done_(std::move(object_));
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
  std::optional<std::size_t> range_;  // whose next page is asked for; nullopt: the first read
  std::atomic<unsigned> turns_{0};    // how often it is to be asked, by the thread that asks now
};

}  // namespace

Query reader_of(ObjectStore& store) {
  return [&store](MetaRead read, ObjectStore::QueryDone done) { store.query_async(std::move(read), std::move(done)); };
}

void read_object_async(const Query& query, MetaRead read, std::size_t whole_ranges, ObjectDone done) {
  std::make_shared<WholeRead>(query, std::move(read), whole_ranges, std::move(done))->begin();
}

Result<Object> read_object(const Query& query, MetaRead read, std::size_t whole_ranges) {
  auto [answer, done] = promised<Result<Object>>();
  read_object_async(query, std::move(read), whole_ranges, std::move(done));
  return answer.get();
}

Result<std::optional<Object>> find_object(const Query& query, MetaRead read, std::size_t whole_ranges) {
  return or_none(read_object(query, std::move(read), whole_ranges));
}

Result<> for_each_page(const Query& query, const std::string& object, KeyRange range,
                       const std::function<Result<>(const KeyPage&)>& work) {
  for (bool more = true; more;) {
    LCCFS_TRY(const auto read, read_object(query, {.object = object, .ranges = {range}}));
    const auto& page = read.ranges.front();
    LCCFS_CHECK(work(page));
    more = page.more && !page.entries.empty();
    if (more) range.after = page.entries.back().first;
  }
  return {};
}

Result<> for_each_key(const Query& query, const std::string& object, const std::string& prefix,
                      const std::function<Result<>(const std::string&, const Bytes&)>& work) {
  return for_each_page(query, object, {prefix, "", keys_at_once}, [&work](const KeyPage& page) -> Result<> {
    for (const auto& [key, value] : page.entries) LCCFS_CHECK(work(key, value));
    return {};
  });
}

Result<> for_each_object(ObjectStore& store, const std::function<Result<>(const std::string&)>& work) {
  std::string cursor;
  do {
    LCCFS_TRY(ListPage page, store.list(cursor));
    for (const auto& name : page.names) LCCFS_CHECK(work(name));
    cursor = std::move(page.next_cursor);
  } while (!cursor.empty());
  return {};
}

}  // namespace lccfs::objects
