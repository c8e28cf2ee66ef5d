// SPDX-License-Identifier: LGPL-2.1-or-later
// A pool that is deleted under its users: nothing is acknowledged any more, and nothing reads as a hole.
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <rados/librados.hpp>
#include <string>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

/// Made and deleted by a client of its own.
class Pool {
 public:
  Pool() {
    REQUIRE(cluster_.init("admin") == 0);
    REQUIRE(cluster_.conf_read_file(std::getenv("LCCFS_TEST_CONF")) == 0);
    REQUIRE(cluster_.connect() == 0);
    REQUIRE(cluster_.pool_create(name_.c_str()) == 0);
  }
  ~Pool() { remove(); }
  const std::string& name() const { return name_; }
  void remove() { cluster_.pool_delete(name_.c_str()); }

 private:
  librados::Rados cluster_;
  const std::string name_ = "deleted-" + std::to_string(getpid());
};

template <class T, class Call>
Result<T> wait_for(Call call) {
  std::promise<Result<T>> promise;
  call([&](Result<T> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

Result<> write(ObjectStore& store, const std::string& object) {
  static const std::string bytes = "some bytes";
  const SharedBytes shared{.owner = nullptr, .data = bytes.data(), .size_bytes = bytes.size()};
  return wait_for<void>([&](auto done) { store.write_data(object, 0, shared, done); });
}

Result<std::size_t> read(ObjectStore& store, const std::string& object) {
  std::array<char, 100> target{};
  return wait_for<std::size_t>([&](auto done) { store.read_data(object, 0, target, done); });
}

Result<> truncate(ObjectStore& store, const std::string& object) {
  return wait_for<void>([&](auto done) { store.truncate_data(object, 1, done); });
}

Result<> remove(ObjectStore& store, const std::string& object) {
  return wait_for<void>([&](auto done) { store.remove_data(object, done); });
}

void is_told(const auto& answer) {
  REQUIRE_FALSE(answer.has_value());
  CHECK(outcome(answer) == outcome(ErrorCode::io));
  CHECK_THAT(answer.error().context, Catch::Contains("pool is gone"));
}

}  // namespace

STORE_CASE("A data pool that was deleted acknowledges nothing, and does not read as a hole") {
  Pool pool;
  const auto store = volume.new_client();
  succeeds(store->use_data_pool(pool.name()));
  CHECK(value_of(read(*store, "Data.1.0")) == 0);
  succeeds(truncate(*store, "Data.1.0"));
  succeeds(remove(*store, "Data.1.0"));
  succeeds(write(*store, "Data.1.0"));
  CHECK(value_of(read(*store, "Data.1.0")) == 10);
  pool.remove();
  succeeds(store->sync_fences());  // until the map is everywhere, an OSD may continue
  is_told(write(*store, "Data.1.0"));
  is_told(write(*store, "Data.1.1"));
  is_told(read(*store, "Data.1.0"));
  is_told(read(*store, "Data.1.2"));
  is_told(truncate(*store, "Data.1.0"));
  is_told(remove(*store, "Data.1.0"));
  is_told(zero(*store, "Data.1.0", 0, 1));
  is_told(copy(*store, "Data.1.0", "Data.1.1"));
  is_told(extents(*store, "Data.1.0", 0, 100));
}

}  // namespace lccfs::conformance
