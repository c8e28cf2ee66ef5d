// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects, the listing, the volume's capacity.
#include <algorithm>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

constexpr const char* object = "Data.1.0";

}  // namespace

STORE_CASE("Data is read as it was written, also by another client") {
  const auto one = volume.new_client(), two = volume.new_client();
  Bytes bytes;
  for (int i = 0; i < 100'000; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 256));
  succeeds(write(*one, object, 0, bytes));
  CHECK((value_of(read(*one, object, 0, bytes.size())) == bytes));
  CHECK((value_of(read(*two, object, 12'345, 4096)) == bytes.substr(12'345, 4096)));
}

STORE_CASE("Reads answer fewer bytes at the end, and none beyond it or of what is missing") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, "0123456789"));
  CHECK(value_of(read(*store, object, 0, 100)) == "0123456789");
  CHECK(value_of(read(*store, object, 4, 100)) == "456789");
  CHECK(value_of(read(*store, object, 4, 3)) == "456");
  CHECK(value_of(read(*store, object, 10, 100)).empty());
  CHECK(value_of(read(*store, object, 4096, 100)).empty());
  CHECK(value_of(read(*store, "Data.1.1", 0, 100)).empty());
  CHECK(value_of(read(*store, object, 0, 0)).empty());
}

STORE_CASE("Writes overlay, and what lies between them reads as zeros") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 5000, "end"));
  succeeds(write(*store, object, 0, "begin"));
  succeeds(write(*store, object, 2, "GI"));
  const Bytes bytes = value_of(read(*store, object, 0, 10'000));
  CHECK((bytes == "beGIn" + Bytes(4995, '\0') + "end"));
}

STORE_CASE("A whole object of 4 MiB goes through at once") {
  const auto store = volume.new_client();
  Bytes bytes(4 << 20, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 511) bytes[i] = static_cast<char>(i / 511);
  succeeds(write(*store, object, 0, bytes));
  CHECK((value_of(read(*store, object, 0, bytes.size())) == bytes));
  succeeds(write(*store, object, (4 << 20) - 100, Bytes(100, 'y')));
  CHECK((value_of(read(*store, object, (4 << 20) - 200, 300)) ==
         bytes.substr(bytes.size() - 200, 100) + Bytes(100, 'y')));
}

STORE_CASE("Truncate cuts, never grows, and what was cut does not come back") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, Bytes(10'000, 'x')));
  succeeds(truncate(*store, object, 20'000));
  CHECK(value_of(read(*store, object, 0, 30'000)).size() == 10'000);
  succeeds(truncate(*store, object, 10'000));
  CHECK(value_of(read(*store, object, 0, 30'000)).size() == 10'000);
  succeeds(truncate(*store, object, 5'001));
  CHECK(value_of(read(*store, object, 0, 30'000)).size() == 5'001);
  succeeds(write(*store, object, 6'000, "y"));
  CHECK((value_of(read(*store, object, 0, 30'000)) == Bytes(5'001, 'x') + Bytes(999, '\0') + "y"));
  succeeds(truncate(*store, object, 0));
  CHECK(value_of(read(*store, object, 0, 30'000)).empty());
}

STORE_CASE("Truncating or removing what is missing succeeds and makes nothing") {
  const auto store = volume.new_client();
  succeeds(truncate(*store, object, 0));
  succeeds(truncate(*store, object, 5000));
  succeeds(remove_data(*store, object));
  CHECK(list_all(*store).empty());
}

STORE_CASE("Removed data is gone, and the object can be made again") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, Bytes(5000, 'x')));
  succeeds(remove_data(*store, object));
  CHECK(value_of(read(*store, object, 0, 100)).empty());
  CHECK(list_all(*store).empty());
  succeeds(write(*store, object, 10, "y"));
  CHECK((value_of(read(*store, object, 0, 100)) == Bytes(10, '\0') + "y"));
}

STORE_CASE("A write's memory is released when the store has let go of it") {
  const auto owner = std::make_shared<const Bytes>(1 << 20, 'x');
  {
    const auto store = volume.new_client();
    for (int i = 0; i < 8; ++i)
      succeeds(write(*store, object, 0, {{owner, owner->data()}, owner->data(), owner->size()}));
  }
  CHECK(owner.use_count() == 1);
}

STORE_CASE("The listing names every object, metadata and data, over many pages") {
  const auto store = volume.new_client();
  CHECK(list_all(*store).empty());
  std::vector<std::string> names;
  Answers answers;
  for (unsigned number = 0; number < 1100; ++number) {
    const std::string inode = "Inode." + std::to_string(number), data = "Data." + std::to_string(number) + ".0";
    store->apply_async(txn(inode, {}, {mutation::CreateExclusive{}}), answers.expect_one<Applied>());
    store->write_data(data, 0, share("x"), answers.expect_one<void>());
    names.insert(names.end(), {inode, data});
  }
  answers.wait();
  CHECK(answers.failed() == 0);
  std::sort(names.begin(), names.end());
  CHECK((list_all(*store) == names));
  CHECK((list_all(*volume.new_client()) == names));
  for (const unsigned parts : {0U, 1U, 2U, 7U, 16U, 300U}) {
    INFO(parts << " parts");
    CHECK((list_parts(*store, parts) == names));
  }
}

STORE_CASE("An empty volume's listing has parts, and they name nothing") {
  CHECK(list_parts(*volume.new_client(), 16).empty());
}

STORE_CASE("A listing does not continue from what is no cursor of one") {
  const auto store = volume.new_client();
  for (const char* cursor : {"x", "dx", "d1", "d1-y", "3:a"})
    CHECK(outcome(store->list(cursor)) == outcome(ErrorCode::invalid));
}

STORE_CASE("The capacity makes sense") {
  const auto store = volume.new_client();
  const Capacity capacity = value_of(store->capacity());
  CHECK(capacity.available_bytes > 0);
  CHECK(capacity.available_bytes <= capacity.total_bytes);
}

}  // namespace lccfs::conformance
