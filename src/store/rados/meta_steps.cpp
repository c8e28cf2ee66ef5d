// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/meta_steps.h"

#include <cerrno>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "store/common/meta_object.h"
#include "store/rados/errors.h"
#include "store/rados/write_operation.h"

namespace lccfs::rados {
namespace {

using librados::bufferlist;

class ApplyStep : public Step {
 public:
  ApplyStep(librados::IoCtx& pool, RequestsInFlight& in_flight, const MetaTxn& txn, ObjectStore::ApplyDone done)
      : Step(in_flight),
        pool_(pool),
        object_(txn.object),
        step_(txn.step),
        removes_(removes(txn)),
        done_(std::move(done)) {
    this->in_flight().add_write(object_);
  }

 private:
  void finish(int status, std::uint64_t version) override {
    if (status >= 0) {
      in_flight().drop_write(object_);
      return done_(Applied{removes_ ? 0 : version});
    }
    const std::string what = object_ + (*step_ ? std::string(" (") + step_ + ")" : "");
    Error error = to_error(pool_, status, what, Effect::writes);
    if (error.outcome == Outcome::definite) in_flight().drop_write(object_);
    done_(std::unexpected(std::move(error)));
  }

  librados::IoCtx& pool_;
  const std::string object_;
  const char* const step_;
  const bool removes_;
  ObjectStore::ApplyDone done_;
};

class QueryStep : public Step {
 public:
  QueryStep(librados::IoCtx& pool, RequestsInFlight& in_flight, MetaRead read, ObjectStore::QueryDone done)
      : Step(in_flight, AtTheEnd::is_dropped), pool_(pool), read_(std::move(read)), done_(std::move(done)) {}

  const std::string& object() const { return read_.object; }

  void build(librados::ObjectReadOperation& operation) {
    operation.assert_exists();
    if (read_.payload) operation.read(0, 0, &payload_, new_result());
    if (read_.xattrs) operation.getxattrs(&xattrs_, new_result());
    for (const KeyRange& range : read_.ranges) {
      Page& page = pages_.emplace_back();
      operation.omap_get_vals2(range.after, range.prefix, range.limit, &page.values, &page.more, new_result());
    }
    if (!read_.keys.empty()) {
      const std::set<std::string> keys(read_.keys.begin(), read_.keys.end());
      operation.omap_get_vals_by_keys(keys, &keys_, new_result());
    }
  }

 private:
  struct Page {
    std::map<std::string, bufferlist> values;
    bool more = false;
  };

  int* new_result() { return &results_.emplace_back(0); }

  void finish(int status, std::uint64_t version) override {
    if (status < 0) return done_(std::unexpected(to_error(pool_, status, read_.object, Effect::reads)));
    for (const int result : results_) {  // an answer that could not be decoded shows only here
      if (result < 0) return done_(std::unexpected(to_error(result, read_.object, Effect::reads)));
    }
    done_(take(version));
  }

  MetaSnapshot take(std::uint64_t version) {
    MetaSnapshot snapshot;
    snapshot.version = version;
    snapshot.payload = payload_.to_str();
    for (const auto& [name, value] : xattrs_) snapshot.xattrs.emplace(name, value.to_str());
    for (const Page& page : pages_) {
      KeyPage& out = snapshot.ranges.emplace_back();
      out.more = page.more;
      out.entries.reserve(page.values.size());
      for (const auto& [key, value] : page.values) out.entries.emplace_back(key, value.to_str());
    }
    for (const auto& [key, value] : keys_) snapshot.keys.emplace(key, value.to_str());
    return snapshot;
  }

  librados::IoCtx pool_;  // ours: the connection may be closing its own
  const MetaRead read_;
  ObjectStore::QueryDone done_;
  // librados fills these in while the request is in flight: their addresses must not change.
  bufferlist payload_;
  std::map<std::string, bufferlist> xattrs_;
  std::deque<Page> pages_;
  std::map<std::string, bufferlist> keys_;
  std::deque<int> results_;
};

}  // namespace

void apply(librados::IoCtx& pool, RequestsInFlight& in_flight, MetaTxn txn, ObjectStore::ApplyDone done) {
  librados::ObjectWriteOperation operation;
  build(txn, operation);
  const int flags = txn.even_if_full ? librados::OPERATION_FULL_FORCE : librados::OPERATION_NOFLAG;
  auto step = std::make_unique<ApplyStep>(pool, in_flight, txn, std::move(done));
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_operate(txn.object, completion, &operation, flags);
  });
}

void query(librados::IoCtx& pool, RequestsInFlight& in_flight, MetaRead read, ObjectStore::QueryDone done) {
  const std::string object = read.object;
  const int flags = in_flight.has_write(object) ? librados::OPERATION_ORDER_READS_WRITES : librados::OPERATION_NOFLAG;
  librados::ObjectReadOperation operation;
  auto step = std::make_unique<QueryStep>(pool, in_flight, std::move(read), std::move(done));
  step->build(operation);
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_operate(object, completion, &operation, flags, nullptr);
  });
}

}  // namespace lccfs::rados
