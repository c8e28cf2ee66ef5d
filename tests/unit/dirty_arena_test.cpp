// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the bytes lie that the store does not have yet, and what can be found of them there without their owner.
#include "fs/dirty_arena.h"

#include <algorithm>
#include <future>
#include <list>
#include <random>

#include "base/forwarding_store.h"
#include "fs/dirty_room.h"
#include "fs/write_buffer.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {
constexpr std::size_t kib = 1 << 10, unit_bytes = DirtyArena::most_record_bytes;
constexpr std::size_t region_units = DirtyArena::region_blocks * DirtyArena::block_bytes / unit_bytes;

std::string drawn_bytes(std::mt19937& random, std::size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string text_of(const DirtyRecord& record) { return {record.bytes().begin(), record.bytes().end()}; }

// ---- a reader that has nothing but the memory

struct Found {
  std::uint64_t number = 0;
  std::uint64_t offset_bytes = 0;
  std::string bytes;
};

std::vector<Found> records_in(const DirtyArena& arena, Ino ino) {
  std::vector<Found> found;
  for (const auto& table : arena.regions()) {
    const char* const blocks = reinterpret_cast<const char*>(table.data() + table.size());
    for (std::size_t block = 0; block < table.size(); ++block) {
      const auto& header = table[block];
      if (header.size_bytes == 0 || header.ino != ino) continue;
      CHECK(header.size_bytes <= DirtyArena::block_bytes << header.order);
      CHECK(block % (std::size_t{1} << header.order) == 0);
      const char* const begin = blocks + block * DirtyArena::block_bytes;
      found.push_back({header.number, header.offset_bytes, {begin, header.size_bytes}});
    }
  }
  std::ranges::sort(found, {}, &Found::number);
  return found;
}

/// Each byte of a file, -1 where there is none.
using Image = std::vector<std::int16_t>;

void lay_over(Image& image, std::uint64_t offset_bytes, std::string_view bytes) {
  if (image.size() < offset_bytes + bytes.size()) image.resize(offset_bytes + bytes.size(), -1);
  for (const char byte : bytes) image[offset_bytes++] = static_cast<unsigned char>(byte);
}

bool is_part_of(const Image& part, const Image& whole) {
  const auto is_right = [&, at = std::size_t{0}](std::int16_t byte) mutable {
    const auto is = at < whole.size() ? whole[at++] : std::int16_t{-1};
    return byte == -1 || byte == is;
  };
  return std::ranges::all_of(part, is_right);
}

/// A store that answers when it is told to, and holds what it was given for as long as it likes.
class HoldingStore : public ForwardingStore {
 public:
  explicit HoldingStore(ObjectStore& next) : ForwardingStore(next) {}

  void write_data(std::string, std::vector<DataPiece> pieces, DataDone done) override {
    kept.push_back(std::move(pieces));
    asked.push_back(std::move(done));
  }
  void answer(Result<> result) {
    auto done = std::move(asked.front());
    asked.pop_front();
    done(std::move(result));
  }

  std::list<std::vector<DataPiece>> kept;
  std::list<DataDone> asked;
};

Result<> refusal() { return std::unexpected(Error{ErrorCode::no_space, "no space"}); }

struct Buffered {
  explicit Buffered(std::uint64_t unit = object_bytes)
      : buffer(std::make_shared<WriteBuffer>(ino, store, unit, room)) {}

  TestVolume volume;
  std::shared_ptr<ScriptedClient> client = volume.new_client();
  HoldingStore store{*client};
  std::shared_ptr<DirtyRoom> room = std::make_shared<DirtyRoom>(1 << 30, volume.clock());
  const Ino ino{7};
  std::shared_ptr<WriteBuffer> buffer;

  void put(std::uint64_t offset_bytes, std::string_view bytes) {
    REQUIRE(room->take_now(bytes.size()));
    buffer->put(offset_bytes, bytes);
    check();
  }
  void send() {
    buffer->begin_write_out();
    check();
  }
  void answer(Result<> result) {
    store.answer(std::move(result));
    check();
  }
  void drop(ByteRange range) {
    buffer->drop(range);
    check();
  }

  Image held() const {
    Image image;
    for (const auto& piece : buffer->pieces(WriteBuffer::everything)) lay_over(image, piece.offset_bytes, piece.bytes);
    return image;
  }
  /// In the arena is what the buffer holds, nothing else, and each piece once.
  void check() const {
    const auto found = records_in(*room->arena(), ino);
    CHECK(found.size() == buffer->pieces(WriteBuffer::everything).size());
    Image image;
    for (const auto& record : found) lay_over(image, record.offset_bytes, record.bytes);
    CHECK((image == held()));
  }
};
}  // namespace

// ---- what a buffer holds

TEST_CASE("writes that overlap, adjoin and grow are found in the arena alone") {
  Buffered all;
  const auto unit = object_bytes;
  all.put(1000, "a record");
  all.put(1008, " that grows");
  all.put(1004, "over");
  all.put(500, std::string(2000, 'u'));
  all.put(10000, "apart");
  all.put(2500, std::string(20000, 'g'));
  all.put(unit - 3, "in two units");
  all.put(3 * unit, std::string(300, 's'));
  for (auto offset = 3 * unit + 300; offset < 4 * unit; offset += 10 * kib) all.put(offset, std::string(9 * kib, 't'));
  for (auto offset = 3 * unit + 300 + 9 * kib; offset < 4 * unit; offset += 10 * kib)
    all.put(offset, std::string(kib, 'g'));
}

TEST_CASE("a stream is found in the arena as it grows to a unit, and then is on its way") {
  Buffered all(unit_bytes);
  const std::string chunk(128 * kib, 'c');
  for (std::uint64_t offset = 0; offset <= unit_bytes; offset += chunk.size()) all.put(offset, chunk);
  CHECK(all.store.asked.size() == 1);
  all.answer(refusal());
  all.put(100, "newer");
}

TEST_CASE("what is on its way is found below what was written since, in whatever state it comes back") {
  for (const bool fails : {false, true}) {
    Buffered all;
    for (const std::uint64_t offset : {100U, 110U, 130U}) all.put(offset, "0123456789");
    all.put(120, "between th");
    all.send();
    CHECK(all.buffer->pieces(WriteBuffer::everything).size() == 1);
    all.put(105, "newer");
    all.put(90, "before and into");
    all.put(139, "at its end");
    all.answer(fails ? refusal() : Result<>{});
    all.put(115, std::string(10, 'n'));
    all.send();
    all.put(117, "newest");
    all.answer({});
    all.send();
    all.answer({});
    CHECK(all.buffer->is_empty());
    CHECK(records_in(*all.room->arena(), all.ino).empty());
  }
}

TEST_CASE("what failed is found while it is tried again, and fails again") {
  Buffered all;
  all.put(100, "some bytes");
  all.send();
  all.answer(refusal());
  all.put(105, "more bytes");
  all.send();
  all.put(107, "newer");
  all.answer(refusal());
  all.put(0, "first");
  CHECK(all.held().size() == 115);
}

TEST_CASE("what is cut from a record is found no more, and the rest of it is") {
  Buffered all;
  all.put(100, std::string(1000, 'a'));
  all.put(2000, std::string(1000, 'b'));
  all.drop({400, 500});
  all.drop({0, 150});
  all.drop({1050, 2001});
  all.drop({2900, UINT64_MAX});
  CHECK(records_in(*all.room->arena(), all.ino).size() == 3);
  all.put(450, "in the gap");
  all.drop(WriteBuffer::everything);
  CHECK(all.room->arena()->taken_bytes() == 0);
}

TEST_CASE("bytes that are stored are found no more, though the store may hold their memory still") {
  Buffered all;
  all.put(0, "old bytes");
  all.send();
  all.answer({});
  const auto& old = all.store.kept.front().front().bytes;
  CHECK(records_in(*all.room->arena(), all.ino).empty());
  all.put(0, "new bytes");
  all.send();
  all.answer(refusal());
  CHECK(std::string(old.data, old.size_bytes) == "old bytes");
  const std::weak_ptr<DirtyArena> arena = all.room->arena();
  all.buffer.reset();
  all.room.reset();
  CHECK(std::string(old.data, old.size_bytes) == "old bytes");
  all.store.kept.clear();
  CHECK(arena.expired());
}

TEST_CASE("whatever a buffer is told, and the store answers, the arena has what it holds") {
  std::mt19937 random(11);
  for (unsigned run = 0; run < 5; ++run) {
    Buffered all(8 * kib);
    Image written;
    for (unsigned step = 0; step < 60; ++step) {
      const auto offset = random() % (20 * kib);
      const auto size_bytes = random() % (random() % 3 == 0 ? 9 * kib : 300) + 1;
      const auto kind = random() % 10;
      if (kind < 6) {
        const auto bytes = drawn_bytes(random, size_bytes);
        lay_over(written, offset, bytes);
        all.put(offset, bytes);
      } else if (kind < 7) {
        all.send();
      } else if (!all.store.asked.empty()) {
        all.answer(random() % 2 == 0 ? refusal() : Result<>{});
      } else if (kind == 9) {
        all.drop({offset, offset + size_bytes});
      }
      CHECK(is_part_of(all.held(), written));
      if (random() % 4 == 0) all.store.kept.clear();
    }
    while (!all.store.asked.empty()) all.answer({});
    all.drop(WriteBuffer::everything);
    all.store.kept.clear();
    CHECK(all.room->arena()->taken_bytes() == 0);
    CHECK(all.room->used_bytes() == 0);
  }
}

// ---- its memory

namespace {
struct Records {
  std::shared_ptr<DirtyArena> arena = std::make_shared<DirtyArena>();
  std::list<DirtyRecord> all;

  DirtyRecord& add(std::string_view bytes) { return all.emplace_back(arena, Ino{7}, 0, bytes); }
  /// Of so much memory, most of which is not touched.
  DirtyRecord& add_large(std::size_t size_bytes) {
    auto& record = add("x");
    record.reserve(size_bytes);
    return record;
  }
};
}  // namespace

TEST_CASE("blocks that were split are a whole again once all are free, in whatever order") {
  std::mt19937 random(3);
  Records records;
  for (std::size_t i = 0; i < region_units - 1; ++i) records.add_large(unit_bytes);
  std::vector<std::unique_ptr<DirtyRecord>> small;
  for (unsigned round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < unit_bytes / DirtyArena::block_bytes; ++i) {
      small.push_back(std::make_unique<DirtyRecord>(records.arena, Ino{8}, i, std::string(1, 's')));
    }
    CHECK(records.arena->taken_bytes() == region_units * unit_bytes);
    std::ranges::shuffle(small, random);
    small.clear();
    const DirtyRecord whole(records.arena, Ino{8}, 0, std::string(unit_bytes, 'w'));
    CHECK(records.arena->regions().size() == 1);
  }
  CHECK(records_in(*records.arena, Ino{8}).empty());
}

TEST_CASE("a further region is there as long as it has records, and the first one stays") {
  Records records;
  CHECK(records.arena->regions().empty());
  for (std::size_t i = 0; i < region_units; ++i) records.add_large(unit_bytes);
  CHECK(records.arena->regions().size() == 1);
  auto& further = records.add("further");
  further.append(std::string(" bytes"));
  CHECK(records.arena->regions().size() == 2);
  CHECK(records_in(*records.arena, Ino{7}).size() == region_units + 1);
  CHECK(text_of(further) == "further bytes");
  records.all.pop_front();
  records.add("in the first");
  records.all.erase(std::prev(records.all.end(), 2));
  CHECK(records.arena->regions().size() == 1);
  records.all.clear();
  CHECK(records.arena->regions().size() == 1);
  CHECK(records.arena->taken_bytes() == 0);
  CHECK(records_in(*records.arena, Ino{7}).empty());
}

TEST_CASE("streams side by side grow where they are, and take at most twice the memory of their bytes") {
  Records records;
  const std::string chunk(128 * kib, 'c');
  std::vector<std::pair<DirtyRecord*, const char*>> streams;
  for (unsigned i = 0; i < 10; ++i) {
    auto& record = records.add(chunk);
    streams.emplace_back(&record, record.bytes().data());
  }
  for (auto size_bytes = chunk.size(); size_bytes < unit_bytes; size_bytes += chunk.size()) {
    CHECK(records.arena->taken_bytes() <= 2 * size_bytes * streams.size());
    for (auto& [record, begin] : streams) {
      record->append(chunk);
      CHECK(record->bytes().data() == begin);
    }
  }
}

TEST_CASE("a record that grows makes way for what lies behind it, and keeps its bytes and its place in the file") {
  Records records;
  auto& first = records.add(std::string(500, 'a'));
  const auto& second = records.add(std::string(500, 'b'));
  CHECK(second.bytes().data() == first.bytes().data() + DirtyArena::block_bytes);
  first.append(std::string(100, 'c'));
  CHECK(first.bytes().data() != second.bytes().data() - DirtyArena::block_bytes);
  CHECK(text_of(first) == std::string(500, 'a') + std::string(100, 'c'));
  CHECK(text_of(second) == std::string(500, 'b'));
  const auto& again = records.add("d");
  CHECK(again.bytes().data() == second.bytes().data() - DirtyArena::block_bytes);
  CHECK(records_in(*records.arena, Ino{7}).size() == 3);
}

TEST_CASE("however records come, grow and go, each has its own bytes, and nothing is left in the end") {
  std::mt19937 random(5);
  Records records;
  std::vector<std::string> expected;
  const auto drawn_size = [&] { return std::size_t{1} + random() % (std::size_t{1} << random() % 17); };
  for (unsigned step = 0; step < 3000; ++step) {
    const auto chosen = expected.empty() ? 0 : random() % expected.size();
    const auto record = std::next(records.all.begin(), static_cast<std::ptrdiff_t>(chosen));
    const auto kind = expected.empty() ? 0 : random() % 8;
    if (kind < 2 && expected.size() < 200) {
      expected.push_back(drawn_bytes(random, drawn_size()));
      records.add(expected.back());
    } else if (kind < 5) {
      const auto more = drawn_bytes(random, std::min(drawn_size(), unit_bytes - expected[chosen].size()));
      if (more.empty()) continue;
      record->append(more);
      expected[chosen] += more;
    } else if (kind == 5) {
      const auto at = random() % expected[chosen].size();
      const auto bytes = drawn_bytes(random, std::min(drawn_size(), expected[chosen].size() - at));
      record->overwrite(at, bytes);
      expected[chosen].replace(at, bytes.size(), bytes);
    } else if (kind == 6) {
      record->reserve(std::min(2 * expected[chosen].size(), unit_bytes));
    } else {
      CHECK((text_of(*record) == expected[chosen]));
      records.all.erase(record);
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
  }
  const auto found = records_in(*records.arena, Ino{7});
  CHECK(found.size() == expected.size());
  for (auto record = records.all.begin(); const auto& bytes : expected) CHECK((text_of(*record++) == bytes));
  records.all.clear();
  CHECK(records.arena->taken_bytes() == 0);
  CHECK(records_in(*records.arena, Ino{7}).empty());
}

TEST_CASE("records come and go on several threads at once") {
  const auto arena = std::make_shared<DirtyArena>();
  std::vector<std::future<bool>> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.push_back(std::async(std::launch::async, [&arena, thread] {
      std::mt19937 random(thread);
      bool is_right = true;
      for (unsigned i = 0; i < 300; ++i) {
        const std::string bytes(random() % 5000 + 1, static_cast<char>('a' + thread));
        auto record = std::make_shared<DirtyRecord>(arena, Ino{thread}, 0, bytes);
        record->append(bytes);
        is_right = is_right && text_of(*record) == bytes + bytes;
        const auto gone = std::async(std::launch::async, [last = std::move(record)]() mutable { last.reset(); });
      }
      return is_right;
    }));
  }
  for (auto& thread : threads) CHECK(thread.get());
  CHECK(arena->taken_bytes() == 0);
}
