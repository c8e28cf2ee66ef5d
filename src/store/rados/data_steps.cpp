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

/// librados only reads what it is given to write, but has no type for that.
char* without_const(const char* data) { return const_cast<char*>(data); }

class DataReadStep : public Step {
 public:
  DataReadStep(InFlight& in_flight, std::string object, std::span<char> target, ObjectStore::ReadDone done)
      : Step(in_flight), object_(std::move(object)), target_(target), done_(std::move(done)) {
    // librados fills a buffer that is there already, where it can.
    bytes_.push_back(ceph::buffer::create_static(static_cast<unsigned>(target.size()), target.data()));
  }

  bufferlist* bytes() { return &bytes_; }
  int* result() { return &result_; }
  const std::string& object() const { return object_; }

 private:
  void finish(int status, std::uint64_t) override {
    if (status == -ENOENT) return done_(std::size_t{0});
    if (status < 0) return done_(std::unexpected(to_error(status, object_, Effect::reads)));
    const std::size_t length = std::min<std::size_t>(bytes_.length(), target_.size());
    if (length != 0 && !bytes_.is_provided_buffer(target_.data()))
      bytes_.begin().copy(static_cast<unsigned>(length), target_.data());
    done_(length);
  }

  const std::string object_;
  const std::span<char> target_;
  ObjectStore::ReadDone done_;
  bufferlist bytes_;
  int result_ = 0;
};

class DataChangeStep : public Step {
 public:
  DataChangeStep(InFlight& in_flight, std::string object, ObjectStore::DataDone done)
      : Step(in_flight), object_(std::move(object)), done_(std::move(done)) {
    this->in_flight().add_write(object_);
  }
  const std::string& object() const { return object_; }

 protected:
  void finish(int status, std::uint64_t) override {
    if (status >= 0 || status == -ENOENT) {  // truncating or removing what is missing
      in_flight().drop_write(object_);
      return done_({});
    }
    Error error = to_error(status, object_, Effect::writes);
    if (error.outcome == Outcome::definite) in_flight().drop_write(object_);
    done_(std::unexpected(std::move(error)));
  }

 private:
  const std::string object_;
  ObjectStore::DataDone done_;
};

class DataWriteStep : public DataChangeStep {
 public:
  DataWriteStep(InFlight& in_flight, LingeringMemory& lingering, std::string object, SharedBytes bytes,
                ObjectStore::DataDone done)
      : DataChangeStep(in_flight, std::move(object), std::move(done)),
        lingering_(lingering),
        memory_(ceph::buffer::create_static(static_cast<unsigned>(bytes.size_bytes), without_const(bytes.data))),
        owner_(std::move(bytes.owner)) {}

  const ceph::buffer::ptr& memory() const { return memory_; }

 private:
  void finish(int status, std::uint64_t version) override {
    lingering_.release_free();
    if (memory_.raw_nref() > 1) lingering_.add({std::move(memory_), std::move(owner_)});
    DataChangeStep::finish(status, version);
  }

  LingeringMemory& lingering_;
  ceph::buffer::ptr memory_;
  std::shared_ptr<const char> owner_;
};

}  // namespace

void LingeringMemory::add(Piece piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
}

void LingeringMemory::release_free() {
  std::vector<Piece> free;  // their owners' last words are said without the lock
  const std::lock_guard lock(mutex_);
  const auto in_use = [](const Piece& piece) { return piece.memory.raw_nref() > 1; };
  const auto first_free = std::partition(pieces_.begin(), pieces_.end(), in_use);
  free.assign(std::make_move_iterator(first_free), std::make_move_iterator(pieces_.end()));
  pieces_.erase(first_free, pieces_.end());
}

void DataSteps::read(librados::IoCtx& pool, std::string object, std::uint64_t offset, std::span<char> target,
                     ObjectStore::ReadDone done) {
  if (target.empty()) return done(std::size_t{0});  // RADOS takes a length of 0 for "to the end"
  const bool ordered = in_flight_.has_write(object);
  auto step = std::make_unique<DataReadStep>(in_flight_, std::move(object), target, std::move(done));
  DataReadStep& request = *step;
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    if (!ordered) return pool.aio_read(request.object(), completion, request.bytes(), target.size(), offset);
    librados::ObjectReadOperation operation;
    operation.read(offset, target.size(), request.bytes(), request.result());
    return pool.aio_operate(request.object(), completion, &operation, librados::OPERATION_ORDER_READS_WRITES, nullptr);
  });
}

void DataSteps::write(librados::IoCtx& pool, std::string object, std::uint64_t offset, SharedBytes bytes,
                      ObjectStore::DataDone done) {
  if (bytes.size_bytes == 0) return done({});
  auto step =
      std::make_unique<DataWriteStep>(in_flight_, lingering_, std::move(object), std::move(bytes), std::move(done));
  bufferlist list;
  list.push_back(step->memory());
  DataWriteStep& request = *step;
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_write(request.object(), completion, list, list.length(), offset);
  });
}

void DataSteps::truncate(librados::IoCtx& pool, std::string object, std::uint64_t size_bytes,
                         ObjectStore::DataDone done) {
  if (size_bytes >= max_object_bytes) return done({});
  auto step = std::make_unique<DataChangeStep>(in_flight_, std::move(object), std::move(done));
  DataChangeStep& request = *step;
  librados::ObjectWriteOperation operation;
  // Zeroing up to an object's end cuts it there. RADOS's own truncate would also grow it.
  operation.zero(size_bytes, max_object_bytes);
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_operate(request.object(), completion, &operation);
  });
}

void DataSteps::remove(librados::IoCtx& pool, std::string object, ObjectStore::DataDone done) {
  auto step = std::make_unique<DataChangeStep>(in_flight_, std::move(object), std::move(done));
  DataChangeStep& request = *step;
  librados::ObjectWriteOperation operation;
  operation.remove();
  Step::submit(std::move(step), [&](librados::AioCompletion* completion) {
    return pool.aio_operate(request.object(), completion, &operation);
  });
}

}  // namespace lccfs::rados
