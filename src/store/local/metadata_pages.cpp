// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/metadata_pages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "store/local/descriptor.h"

namespace lccfs::local {
namespace {

// As LMDB 0.9 writes them, on a machine of 64 bits and in its byte order.
constexpr std::uint32_t magic = 0xBEEFC0DE, data_version = 1;
constexpr std::uint64_t no_page = ~std::uint64_t{0};
constexpr std::size_t page_header_bytes = 16, node_header_bytes = 8, key_limit = 511;
constexpr unsigned branch_page = 1, leaf_page = 2, overflow_page = 4, meta_page = 8;
constexpr unsigned big_value = 1, table_value = 2;
constexpr unsigned deepest = 32;
// Pages at the end that one transaction took and freed again: it never wrote them.
constexpr std::uint64_t most_unwritten_bytes = 256U << 20;

struct TableRoot {
  std::uint32_t pad;
  std::uint16_t flags, depth;
  std::uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
struct Meta {
  std::uint32_t magic, version;
  std::uint64_t address, map_size;
  TableRoot free, main;  // free.pad: the page size
  std::uint64_t last_page, transaction;
};

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

class File {
 public:
  static Result<File> open(const std::string& path) {
    File file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file.descriptor_ || ::fstat(file.descriptor_.get(), &status) != 0) return std::unexpected(system_error(path));
    file.size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    return file;
  }

  std::unexpected<Error> damaged(const std::string& what) const {
    return failure(ErrorCode::corrupt,
                   path_ + ": " + what + ": the volume's metadata is damaged; restore it from a copy");
  }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::unexpected<Error> cut_within(const std::string& what) const {
    return damaged("it is cut short: it ends within " + what);
  }
  /// `what` lies there.
  Result<std::string> read(std::uint64_t offset, std::size_t size, const std::string& what) const {
    std::string bytes(size, '\0');
    const ssize_t there = ::pread(descriptor_.get(), bytes.data(), size, static_cast<off_t>(offset));
    if (there < 0) return std::unexpected(system_error("read " + path_));
    if (static_cast<std::size_t>(there) < size) return cut_within(what);
    return bytes;
  }

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  Descriptor descriptor_;
  std::uint64_t size_bytes_ = 0;
};

Result<Meta> read_meta(const File& file, std::uint64_t offset, std::uint64_t number) {
  const std::string name = "page " + std::to_string(number);
  LCCFS_TRY(const auto bytes, file.read(offset, page_header_bytes + sizeof(Meta), name));
  const auto meta = number_at<Meta>(bytes, page_header_bytes);
  if (meta.magic != magic || (number_at<std::uint16_t>(bytes, 10) & meta_page) == 0)
    return file.damaged(name + " is not the head of an LMDB file");
  if (meta.version != data_version) return file.damaged(name + " is of another version of LMDB");
  const auto size = meta.free.pad;
  if (!std::has_single_bit(size) || size < 512 || size > 65536) return file.damaged(name + " has no page size");
  return meta;
}

/// There are two: the last transactions write them in turn.
Result<std::array<Meta, 2>> read_metas(const File& file) {
  LCCFS_TRY(const Meta first, read_meta(file, 0, 0));
  LCCFS_TRY(const Meta second, read_meta(file, first.free.pad, 1));
  if (first.free.pad != second.free.pad) return file.damaged("pages 0 and 1 have different page sizes");
  return std::array{first, second};
}

/// Walks all tables of one moment.
class Walk {
 public:
  Walk(const File& file, const Meta& meta)
      : file_(file), meta_(meta), page_size_(meta.free.pad), seen_(meta.last_page + 1) {}

  Result<> run() {
    seen_[0] = seen_[1] = true;
    LCCFS_CHECK(table(meta_.main, Kind::main));
    LCCFS_CHECK(table(meta_.free, Kind::free));
    return free_pages();
  }

 private:
  enum class Kind { main, free, named };
  struct Node {
    std::string_view key;
    unsigned flags = 0;
    std::uint64_t child = 0;  // of a branch
    std::string_view value;   // of a leaf; its first page's number if it is big
    std::uint64_t size_bytes = 0;
    std::size_t end = 0;  // in the page, and of the next node's begin
  };

  std::unexpected<Error> damaged(std::uint64_t page, const char* what) const {
    return file_.damaged("page " + std::to_string(page) + " " + what);
  }

  Result<> table(const TableRoot& table, Kind kind) {
    if (table.root == no_page) return {};
    if (kind == Kind::named && table.flags != 0) return file_.damaged("a table has unknown flags");
    if (table.depth == 0 || table.depth > deepest) return file_.damaged("a table has no depth");
    return page(table.root, table.depth, kind);
  }

  Result<> take(std::uint64_t first, std::uint64_t count) {
    if (first < 2 || first > meta_.last_page || count > meta_.last_page - first + 1)
      return damaged(first, "is outside of the file");
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (seen_[i]) return damaged(i, "is used twice");
      seen_[i] = true;
    }
    return {};
  }

  Result<> page(std::uint64_t number, unsigned depth, Kind kind) {
    LCCFS_CHECK(take(number, 1));
    LCCFS_TRY(const auto bytes, file_.read(number * page_size_, page_size_, "page " + std::to_string(number)));
    const bool leaf = depth == 1;
    if (number_at<std::uint64_t>(bytes, 0) != number) return damaged(number, "is another one");
    // No other bit: LMDB would take a page that says it is dirty for memory of its own, and free it.
    if (number_at<std::uint16_t>(bytes, 10) != (leaf ? leaf_page : branch_page))
      return damaged(number, "is of another kind");
    const std::size_t lower = number_at<std::uint16_t>(bytes, 12), upper = number_at<std::uint16_t>(bytes, 14);
    if (lower < page_header_bytes || lower % 2 != 0 || upper < lower || upper > page_size_)
      return damaged(number, "has wrong bounds");
    const std::size_t count = (lower - page_header_bytes) / 2;
    const std::size_t least = kind == Kind::free ? 0 : leaf ? 1 : 2;  // LMDB does not balance its own table
    if (count < least) return damaged(number, "has too few entries");
    std::string_view before;
    std::map<std::size_t, std::size_t> places;  // where entries begin, and end
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t begin = number_at<std::uint16_t>(bytes, page_header_bytes + 2 * i);
      const auto entry = node(bytes, begin, upper, leaf);
      if (!entry) return damaged(number, "has an entry outside of it");
      places[begin] = entry->end;
      const bool compared = i > (leaf ? 0 : 1);  // the first key of a branch means "whatever is less"
      if (compared && !in_order(before, entry->key, kind)) return damaged(number, "has keys out of order");
      before = entry->key;
      LCCFS_CHECK(leaf ? value(number, *entry, kind) : page(entry->child, depth - 1, kind));
    }
    return are_side_by_side(places, upper) ? Result<>() : damaged(number, "has entries that overlap");
  }

  /// From there to the end of the page, without a gap: LMDB moves them by their sizes.
  bool are_side_by_side(const std::map<std::size_t, std::size_t>& places, std::size_t from) const {
    for (const auto& [begin, end] : places) {
      if (begin != from) return false;
      from = end;
    }
    return from == page_size_;
  }

  static bool in_order(std::string_view before, std::string_view key, Kind kind) {
    if (kind != Kind::free) return before < key;
    return before.size() == 8 && key.size() == 8 &&
           number_at<std::uint64_t>(before, 0) < number_at<std::uint64_t>(key, 0);
  }

  std::optional<Node> node(std::string_view page, std::size_t offset, std::size_t upper, bool leaf) const {
    if (offset < upper || offset % 2 != 0 || offset + node_header_bytes > page.size()) return std::nullopt;
    const std::uint64_t low = number_at<std::uint16_t>(page, offset), high = number_at<std::uint16_t>(page, offset + 2);
    Node node;
    node.flags = number_at<std::uint16_t>(page, offset + 4);
    const std::size_t key_size = number_at<std::uint16_t>(page, offset + 6), key = offset + node_header_bytes;
    if (key_size > key_limit || key + key_size > page.size()) return std::nullopt;
    node.key = page.substr(key, key_size);
    node.child = low | high << 16 | std::uint64_t{node.flags} << 32;
    node.size_bytes = low | high << 16;
    node.end = even(key + key_size);
    if (!leaf) return node;
    const std::size_t in_page = (node.flags & big_value) != 0 ? sizeof(std::uint64_t) : node.size_bytes;
    if ((node.flags & ~(big_value | table_value)) != 0 || in_page > page.size() - key - key_size) return std::nullopt;
    node.value = page.substr(key + key_size, in_page);
    node.end = even(key + key_size + in_page);
    return node;
  }
  static std::size_t even(std::size_t bytes) { return bytes + bytes % 2; }

  Result<> value(std::uint64_t number, const Node& node, Kind kind) {
    std::string big;
    std::string_view bytes = node.value;
    if ((node.flags & big_value) != 0) {
      LCCFS_TRY(big, big_value_of(number_at<std::uint64_t>(node.value, 0), node.size_bytes, kind == Kind::free));
      bytes = big;
    }
    if ((node.flags & table_value) != 0) {
      if (kind != Kind::main || bytes.size() != sizeof(TableRoot)) return damaged(number, "has a wrong table");
      return table(number_at<TableRoot>(bytes, 0), Kind::named);
    }
    if (kind == Kind::free) free_.emplace_back(number, bytes);
    return {};
  }

  /// Its bytes only if they are wanted. A value that has shrunk keeps its pages.
  Result<std::string> big_value_of(std::uint64_t first, std::uint64_t size_bytes, bool wanted) {
    if (first > meta_.last_page) return damaged(first, "is outside of the file");
    const std::uint64_t needed = page_header_bytes + size_bytes;
    const std::string what = "the value at page " + std::to_string(first);
    if (file_.size_bytes() < first * page_size_ + needed) return file_.cut_within(what);
    LCCFS_TRY(const auto bytes, file_.read(first * page_size_, wanted ? needed : page_header_bytes, what));
    const std::uint64_t pages = number_at<std::uint32_t>(bytes, 12);
    if (number_at<std::uint64_t>(bytes, 0) != first || pages * page_size_ < needed ||
        number_at<std::uint16_t>(bytes, 10) != overflow_page)
      return damaged(first, "is not the value that it should be");
    LCCFS_CHECK(take(first, pages));
    return bytes.substr(page_header_bytes);
  }

  /// Pages that LMDB would write over: none of them may be in use. A list: how many, then their numbers.
  Result<> free_pages() {
    for (const auto& [number, list] : free_) {
      const std::size_t words = list.size() / sizeof(std::uint64_t);
      if (words == 0 || number_at<std::uint64_t>(list, 0) > words - 1)
        return damaged(number, "has a wrong list of free pages");
      const std::uint64_t count = number_at<std::uint64_t>(list, 0);
      for (std::size_t i = 1; i <= count; ++i) {
        if (!take(number_at<std::uint64_t>(list, i * sizeof(std::uint64_t)), 1))
          return damaged(number, "lists a page as free that is not");
      }
    }
    return {};
  }

  const File& file_;
  const Meta& meta_;
  const std::uint64_t page_size_;
  std::vector<bool> seen_;
  std::vector<std::pair<std::uint64_t, std::string>> free_;
};

}  // namespace

Result<> check_metadata_header(const std::string& path) {
  LCCFS_TRY(const File file, File::open(path));
  LCCFS_TRY(const auto metas, read_metas(file));
  for (const Meta& meta : metas) {
    if (meta.last_page < 1 || meta.last_page > (file.size_bytes() + most_unwritten_bytes) / meta.free.pad)
      return file.damaged("it is cut short: it has " + std::to_string(file.size_bytes()) +
                          " bytes, and its last page is number " + std::to_string(meta.last_page));
  }
  return {};
}

Result<> check_metadata_pages(const std::string& path, std::uint64_t number) {
  LCCFS_TRY(const File file, File::open(path));
  LCCFS_TRY(const auto metas, read_metas(file));
  const Meta& meta = metas[metas[0].transaction == number ? 0 : 1];
  if (meta.transaction != number) return {};  // written over twice since: the writer has looked
  const std::uint64_t wanted = (meta.last_page + 1) * meta.free.pad;
  // A file that ends early is whole if what is missing was never written: then nothing leads there.
  if (wanted > checked_whole_bytes && file.size_bytes() >= wanted) return {};
  return Walk(file, meta).run();
}

}  // namespace lccfs::local
