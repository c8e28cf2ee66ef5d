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

STORE_CASE("All pieces of one write are there, the later ones above the earlier") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, {{5000, share("end")}, {0, share("begin")}, {2, share("GI")}}));
  CHECK((value_of(read(*store, object, 0, 10'000)) == "beGIn" + Bytes(4995, '\0') + "end"));
  Bytes expected(64 << 10, '\0');
  std::vector<DataPiece> pieces;
  for (std::size_t at = 0; at < expected.size(); at += 64) {
    pieces.push_back({at, share(Bytes(16, static_cast<char>('a' + at / 64 % 26)))});
    expected.replace(at, 16, Bytes(16, static_cast<char>('a' + at / 64 % 26)));
  }
  succeeds(remove_data(*store, object));
  succeeds(write(*store, object, std::move(pieces)));
  expected.resize(expected.size() - 48);
  CHECK((value_of(read(*volume.new_client(), object, 0, 100'000)) == expected));
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

STORE_CASE("Zeroed bytes read as zeros, and those around them stay") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, Bytes(20'000, 'x')));
  succeeds(zero(*store, object, 5'000, 9'000));
  succeeds(zero(*store, object, 100, 1));
  succeeds(zero(*store, object, 200, 0));
  auto wanted = Bytes(20'000, 'x').replace(5'000, 9'000, 9'000, '\0');
  wanted[100] = '\0';
  CHECK((value_of(read(*store, object, 0, 30'000)) == wanted));
}

STORE_CASE("Zeroing at an object's end may shorten it, never grows it, and what was zeroed does not come back") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, Bytes(10'000, 'x')));
  succeeds(zero(*store, object, 20'000, 100));
  CHECK(value_of(read(*store, object, 0, 30'000)).size() == 10'000);
  succeeds(zero(*store, object, 6'000, 50'000));
  const Bytes bytes = value_of(read(*store, object, 0, 30'000));
  CHECK(bytes.size() <= 10'000);
  CHECK((bytes.substr(0, 6'000) == Bytes(6'000, 'x')));
  CHECK(bytes.find_first_not_of('\0', 6'000) == Bytes::npos);
  succeeds(write(*store, object, 9'000, "y"));
  CHECK((value_of(read(*store, object, 5'999, 3'002)) == "x" + Bytes(3'000, '\0') + "y"));
}

STORE_CASE("Zeroing what is missing succeeds and makes nothing") {
  const auto store = volume.new_client();
  succeeds(zero(*store, object, 0, 4096));
  succeeds(zero(*store, object, 4096, 1 << 22));
  CHECK(list_all(*store).empty());
}

STORE_CASE("A copy has the source's bytes and length, whatever was there before") {
  const auto store = volume.new_client();
  const std::string source = "Data.1.5", target = "Data.2.0";
  Bytes bytes(300'000, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 511) bytes[i] = static_cast<char>(i / 511);
  succeeds(write(*store, source, 0, bytes));
  succeeds(copy(*store, source, target));
  CHECK((value_of(read(*volume.new_client(), target, 0, 400'000)) == bytes));
  succeeds(write(*store, target, 0, Bytes(350'000, 'y')));
  succeeds(copy(*store, source, target));
  CHECK((value_of(read(*store, target, 0, 400'000)) == bytes));
  succeeds(write(*store, source, 0, "changed"));
  CHECK((value_of(read(*store, target, 0, 7)) == bytes.substr(0, 7)));
  succeeds(remove_data(*store, source));
  CHECK((value_of(read(*store, target, 0, 400'000)) == bytes));
}

STORE_CASE("What is a hole in the source is zeros in the copy") {
  const auto store = volume.new_client();
  const std::string target = "Data.2.0";
  succeeds(write(*store, object, 100'000, "middle"));
  succeeds(write(*store, object, 299'999, "e"));
  succeeds(zero(*store, object, 200'000, 100'000));
  succeeds(write(*store, target, 0, Bytes(400'000, 'y')));
  succeeds(copy(*store, object, target));
  const Bytes wanted = Bytes(100'000, '\0') + "middle";
  const Bytes found = value_of(read(*store, target, 0, 500'000));
  CHECK((found.substr(0, wanted.size()) == wanted));
  CHECK(found.find_first_not_of('\0', wanted.size()) == Bytes::npos);
  CHECK(found.size() <= 300'000);
}

STORE_CASE("A copy of what is missing says so and leaves its target alone") {
  const auto store = volume.new_client();
  CHECK(outcome(copy(*store, "Data.1.5", "Data.2.0")) == outcome(ErrorCode::not_found));
  CHECK(list_all(*store).empty());
  succeeds(write(*store, "Data.2.0", 0, "stays"));
  CHECK(outcome(copy(*store, "Data.1.5", "Data.2.0")) == outcome(ErrorCode::not_found));
  CHECK(value_of(read(*store, "Data.2.0", 0, 10)) == "stays");
}

STORE_CASE("Copies from one source in flight together are all made") {
  const auto store = volume.new_client();
  succeeds(write(*store, object, 0, Bytes(4 << 20, 'x')));
  Answers answers;
  for (unsigned number = 0; number < 8; ++number)
    store->copy_data(object, "Data.2." + std::to_string(number), answers.expect_one<void>());
  answers.wait();
  CHECK(answers.failed() == 0);
  CHECK(list_all(*store).size() == 9);
  CHECK((value_of(read(*store, "Data.2.7", 0, 5 << 20)) == Bytes(4 << 20, 'x')));
}

STORE_CASE("All data lies in the extents, and they lie in the object and in what was asked for") {
  const auto store = volume.new_client();
  CHECK(value_of(extents(*store, object, 0, 1 << 22)).empty());
  succeeds(write(*store, object, 1 << 20, Bytes(100'000, 'x')));
  succeeds(write(*store, object, 3 << 20, Bytes(100'000, 'y')));
  const auto is_data = [&](std::uint64_t offset, std::uint64_t size_bytes) {
    const auto found = value_of(extents(*store, object, offset, size_bytes));
    std::uint64_t at = offset;
    for (const DataExtent& extent : found) {
      CHECK(extent.offset >= at);
      CHECK(extent.size_bytes > 0);
      at = extent.offset + extent.size_bytes;
      CHECK(at <= offset + size_bytes);
    }
    return [found](std::uint64_t begin, std::uint64_t end) {
      return std::ranges::any_of(found, [=](const DataExtent& extent) {
        return extent.offset <= begin && end <= extent.offset + extent.size_bytes;
      });
    };
  };
  CHECK(is_data(0, 1 << 22)(1 << 20, (1 << 20) + 100'000));
  CHECK(is_data(0, 1 << 22)(3 << 20, (3 << 20) + 100'000));
  CHECK(is_data((1 << 20) + 10, 20)((1 << 20) + 10, (1 << 20) + 30));
  CHECK(value_of(extents(*store, object, 4 << 20, 100)).empty());
  CHECK(value_of(extents(*store, object, 3 << 20, 0)).empty());
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
