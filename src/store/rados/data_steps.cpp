// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/data_steps.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "store/rados/errors.h"

namespace lccfs::rados {
namespace {

using librados::bufferlist;

constexpr std::uint64_t max_object_bytes = 32U << 20;  // docs/FORMAT.md
/// So many bytes in one piece keep a storage daemon busy about as long. It decides how many steps may be in flight: others
/// of their placement group wait behind them.
constexpr std::size_t cost_of_a_further_piece_bytes = 16U << 10;

/// librados only reads what it is given to write, but has no type for that.
char* without_const(const char* data) { return const_cast<char*>(data); }

/// Its placement group: that is what answers, or does not.
Admission::PlaceId place_of(librados::IoCtx& pool, const std::string& object) {
  std::uint32_t group = 0;
  pool.get_object_pg_hash_position2(object, &group);  // a pool that is gone has none
  return (static_cast<Admission::PlaceId>(pool.get_id()) << 32U) + group;
}

struct DataLane {
  librados::IoCtx pool;  // its own: the connection may be closing its own when an answer comes
  RequestsInFlight& in_flight;
  Admission& admission;
};

/// A request that counts against the limits from its sending to its answer.
class DataStep : public Step {
 public:
  DataStep(const DataLane& lane, std::string object, std::size_t size_bytes,
           AtTheEnd at_the_end = AtTheEnd::is_waited_for)
      : Step(lane.in_flight, at_the_end), lane_(lane), object_(std::move(object)), size_bytes_(size_bytes) {}
  const std::string& object() const { return object_; }
  librados::IoCtx& pool() { return lane_.pool; }

  /// `send(step, completion)` is called once the request is let in: at once, or after others' answers.
  template <class Kind, class Send>
  static void submit(std::unique_ptr<Kind> step, Send send) {
    DataStep& request = *step;
    request.lane_.admission.submit(
        request.object_, place_of(request.pool(), request.object_), request.size_bytes_,
        [step = std::move(step), send = std::move(send)]() mutable {
          Kind& sent = *step;
          Step::submit(std::move(step), [&](librados::AioCompletion* completion) { return send(sent, completion); });
        });
  }

 protected:
  virtual void finish_data(int status) = 0;
  /// There is no such object; but its pool is there.
  bool is_missing(int status) { return status == -ENOENT && !is_gone(lane_.pool); }
  Error error(int status, Effect effect) { return to_error(lane_.pool, status, object_, effect); }

 private:
  void finish(int status, std::uint64_t) final {
    lane_.admission.answered(object_, size_bytes_);
    finish_data(status);
  }

  DataLane lane_;
  const std::string object_;
  const std::size_t size_bytes_;
};

class DataReadStep : public DataStep {
 public:
  DataReadStep(const DataLane& lane, std::string object, std::span<char> target, ObjectStore::ReadDone done)
      : DataStep(lane, std::move(object), target.size()), target_(target), done_(std::move(done)) {
    // librados fills a buffer that is there already, where it can.
    bytes_.push_back(ceph::buffer::create_static(static_cast<unsigned>(target.size()), target.data()));
  }

  bufferlist* bytes() { return &bytes_; }
  int* result() { return &result_; }
  std::size_t size_bytes() const { return target_.size(); }

 private:
  void finish_data(int status) override {
    if (is_missing(status)) return done_(std::size_t{0});
    if (status < 0) return done_(std::unexpected(error(status, Effect::reads)));
    const std::size_t length = std::min<std::size_t>(bytes_.length(), target_.size());
    if (length != 0 && !bytes_.is_provided_buffer(target_.data()))
      bytes_.begin().copy(static_cast<unsigned>(length), target_.data());
    done_(length);
  }

  const std::span<char> target_;
  ObjectStore::ReadDone done_;
  bufferlist bytes_;
  int result_ = 0;
};

class DataChangeStep : public DataStep {
 public:
  DataChangeStep(const DataLane& lane, std::string object, std::size_t size_bytes, ObjectStore::DataDone done,
                 AtTheEnd at_the_end = AtTheEnd::is_waited_for)
      : DataStep(lane, std::move(object), size_bytes, at_the_end), done_(std::move(done)) {
    this->in_flight().add_write(this->object());
  }

 protected:
  void finish_data(int status) override {
    if (status >= 0) {
      in_flight().drop_write(object());
      return done_({});
    }
    Error failed = error(status, Effect::writes);
    if (failed.outcome == Outcome::definite) in_flight().drop_write(object());
    done_(std::unexpected(std::move(failed)));
  }

 private:
  ObjectStore::DataDone done_;
};

/// Blocks. What is missing has none; an erasure-coded pool knows none, but how much there is.
Result<std::vector<DataExtent>> find_extents(librados::IoCtx& pool, const std::string& object,
                                             const DataExtent& range) {
  std::map<std::uint64_t, std::uint64_t> found;
  int status = pool.mapext(object, range.offset, range.size_bytes, found);
  if (status == -EOPNOTSUPP) {
    std::uint64_t size_bytes = 0;
    status = pool.stat(object, &size_bytes, nullptr);
    if (size_bytes > 0) found.emplace(0, size_bytes);
  }
  if (status == -ENOENT && !is_gone(pool)) return std::vector<DataExtent>{};
  if (status < 0) return std::unexpected(to_error(pool, status, object, Effect::reads));
  std::vector<DataExtent> extents;
  for (const auto& [offset, size_bytes] : found) {
    const auto begin = std::max(offset, range.offset);
    const auto end = std::min(offset + size_bytes, range.offset + range.size_bytes);
    if (begin < end) extents.push_back({begin, end - begin});
  }
  return extents;
}

/// Truncating, zeroing or removing what is missing.
class DataCutStep : public DataChangeStep {
 public:
  DataCutStep(const DataLane& lane, std::string object, ObjectStore::DataDone done,
              AtTheEnd at_the_end = AtTheEnd::is_waited_for)
      : DataChangeStep(lane, std::move(object), 0, std::move(done), at_the_end) {}

 private:
  void finish_data(int status) override { DataChangeStep::finish_data(is_missing(status) ? 0 : status); }
};

class DataCopyStep : public DataChangeStep {
 public:
  DataCopyStep(const DataLane& lane, std::string source, std::string target, ObjectStore::DataDone done)
      : DataChangeStep(lane, std::move(target), 0, std::move(done)), source_(std::move(source)) {}
  const std::string& source() const { return source_; }

 private:
  const std::string source_;
};

class DataWriteStep : public DataChangeStep {
 public:
  struct Piece {
    std::uint64_t offset = 0;
    LingeringMemory::Piece bytes;

    bufferlist list() const {
      bufferlist list;
      list.push_back(bytes.memory);
      return list;
    }
  };

  DataWriteStep(const DataLane& lane, LingeringMemory& lingering, std::string object, std::vector<DataPiece>&& pieces,
                std::size_t cost_bytes, ObjectStore::DataDone done)
      : DataChangeStep(lane, std::move(object), cost_bytes, std::move(done)), lingering_(lingering) {
    pieces_.reserve(pieces.size());
    for (auto& [offset, bytes] : pieces) {
      const auto length = static_cast<unsigned>(bytes.size_bytes);
      auto memory = ceph::buffer::ptr(ceph::buffer::create_static(length, without_const(bytes.data)));
      pieces_.push_back({offset, {std::move(memory), std::move(bytes.owner)}});
    }
  }

  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  void finish_data(int status) override {
    lingering_.release_free();
    for (auto& [offset, bytes] : pieces_) {
      if (bytes.memory.raw_nref() > 1) lingering_.add(std::move(bytes));
    }
    pieces_.clear();
    DataChangeStep::finish_data(status);
  }

  LingeringMemory& lingering_;
  std::vector<Piece> pieces_;
};

/// `fill(step, operation)` says what is to change.
template <class Kind, class Fill>
void submit_change(std::unique_ptr<Kind> step, Fill fill) {
  DataStep::submit(std::move(step), [fill](Kind& request, librados::AioCompletion* completion) {
    librados::ObjectWriteOperation operation;
    fill(request, operation);
    return request.pool().aio_operate(request.object(), completion, &operation);
  });
}

int send_write(DataWriteStep& request, librados::AioCompletion* completion) {
  const auto& pieces = request.pieces();
  if (pieces.size() == 1) {
    const bufferlist list = pieces.front().list();
    return request.pool().aio_write(request.object(), completion, list, list.length(), pieces.front().offset);
  }
  librados::ObjectWriteOperation operation;
  for (const auto& piece : pieces) operation.write(piece.offset, piece.list());
  return request.pool().aio_operate(request.object(), completion, &operation);
}

}  // namespace

void LingeringMemory::add(Piece piece) {
  const Lock lock(mutex_);
  pieces_.push_back(std::move(piece));
}

void LingeringMemory::release_free() {
  std::vector<Piece> free;  // their owners' last words are said without the lock
  const Lock lock(mutex_);
  const auto in_use = [](const Piece& piece) { return piece.memory.raw_nref() > 1; };
  const auto first_free = std::partition(pieces_.begin(), pieces_.end(), in_use);
  free.assign(std::make_move_iterator(first_free), std::make_move_iterator(pieces_.end()));
  pieces_.erase(first_free, pieces_.end());
}

DataSteps::DataSteps(RequestsInFlight& in_flight) : in_flight_(in_flight), admission_(most_in_flight) {}

void DataSteps::read(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::span<char> target,
                     ObjectStore::ReadDone done) {
  if (target.empty()) return done(std::size_t{0});  // RADOS takes a length of 0 for "to the end"
  const bool ordered = in_flight_.has_write(object);
  auto step = std::make_unique<DataReadStep>(DataLane{pool, in_flight_, admission_}, std::move(object), target,
                                             std::move(done));
  DataStep::submit(std::move(step), [offset, ordered](DataReadStep& request, librados::AioCompletion* completion) {
    if (!ordered)
      return request.pool().aio_read(request.object(), completion, request.bytes(), request.size_bytes(), offset);
    librados::ObjectReadOperation operation;
    operation.read(offset, request.size_bytes(), request.bytes(), request.result());
    return request.pool().aio_operate(request.object(), completion, &operation, librados::OPERATION_ORDER_READS_WRITES,
                                      nullptr);
  });
}

void DataSteps::write(librados::IoCtx& pool, std::string object, std::vector<DataPiece> pieces,
                      ObjectStore::DataDone done) {
  std::size_t size_bytes = 0;
  for (const DataPiece& piece : pieces) size_bytes += piece.bytes.size_bytes;
  if (size_bytes == 0) return done({});
  const std::size_t cost_bytes = size_bytes + (pieces.size() - 1) * cost_of_a_further_piece_bytes;
  auto step = std::make_unique<DataWriteStep>(DataLane{pool, in_flight_, admission_}, lingering_, std::move(object),
                                              std::move(pieces), cost_bytes, std::move(done));
  DataStep::submit(std::move(step), send_write);
}

void DataSteps::truncate(librados::IoCtx& pool, std::string object, std::uint64_t size_bytes,
                         ObjectStore::DataDone done) {
  if (size_bytes >= max_object_bytes) return done({});
  auto step = std::make_unique<DataCutStep>(DataLane{pool, in_flight_, admission_}, std::move(object), std::move(done));
  submit_change(std::move(step), [size_bytes](DataCutStep&, librados::ObjectWriteOperation& operation) {
    // Zeroing up to an object's end cuts it there. RADOS's own truncate would also grow it.
    operation.zero(size_bytes, max_object_bytes);
  });
}

void DataSteps::remove(librados::IoCtx& pool, std::string object, ObjectStore::DataDone done) {
  auto step = std::make_unique<DataCutStep>(DataLane{pool, in_flight_, admission_}, std::move(object), std::move(done),
                                            Step::AtTheEnd::is_dropped);
  submit_change(std::move(step), [](DataCutStep&, librados::ObjectWriteOperation& operation) { operation.remove(); });
}

void DataSteps::zero(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::uint64_t size_bytes,
                     ObjectStore::DataDone done) {
  if (size_bytes == 0) return done({});
  auto step = std::make_unique<DataCutStep>(DataLane{pool, in_flight_, admission_}, std::move(object), std::move(done));
  submit_change(std::move(step),
                [=](DataCutStep&, librados::ObjectWriteOperation& operation) { operation.zero(offset, size_bytes); });
}

void DataSteps::copy(librados::IoCtx& pool, std::string source, std::string target, ObjectStore::DataDone done) {
  auto step = std::make_unique<DataCopyStep>(DataLane{pool, in_flight_, admission_}, std::move(source),
                                             std::move(target), std::move(done));
  submit_change(std::move(step), [](DataCopyStep& request, librados::ObjectWriteOperation& operation) {
    constexpr std::uint64_t any_version = 0;
    operation.copy_from(request.source(), request.pool(), any_version, 0);
  });
}

void DataSteps::extents(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::uint64_t size_bytes,
                        ObjectStore::ExtentsDone done) {
  if (size_bytes == 0) return done(std::vector<DataExtent>{});  // RADOS takes a length of 0 for "to the end"
  in_flight_.add_request();
  waiting_.post([this, &pool, object = std::move(object), range = DataExtent{offset, size_bytes},
                 done = std::move(done)]() mutable {
    done(find_extents(pool, object, range));
    done = nullptr;
    in_flight_.drop_request();
  });
}

}  // namespace lccfs::rados
