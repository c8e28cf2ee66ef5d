// SPDX-License-Identifier: LGPL-2.1-or-later
// make_objects ADDRESS --directories D --files F --objects K [--jobs N]: a new, valid volume of D directories with F
// files each, every file of K data objects of 4 KiB; straight through the store port, N operations in flight.
#include <iostream>
#include <memory>

#include "bench/in_flight.h"
#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/volume.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"
#include "txn/namespace_txn.h"
#include "txn/volume_txn.h"

namespace {

using namespace lccfs;
using bench::InFlight;

constexpr std::uint64_t data_bytes = 4096;
constexpr std::uint64_t names_a_step = 500;

struct Shape {
  std::uint64_t directories = 0, files = 0, objects = 0;
  unsigned jobs = 64;
};

class Maker {
 public:
  Maker(std::shared_ptr<ObjectStore> store, const Shape& shape)
      : store_(std::move(store)), shape_(shape), in_flight_(shape.jobs) {}

  Result<> make() {
    LCCFS_CHECK(make_volume(*store_, system_clock(), {}));
    LCCFS_CHECK(read_super());
    const std::uint64_t inodes = shape_.directories * (1 + shape_.files);
    LCCFS_CHECK(store_->apply(txn::take_numbers(format::first_number, 1 + inodes)));
    for (std::uint64_t d = 0; d < shape_.directories; ++d) make_directory(directory_ino(d));
    in_flight_.wait_for_all();
    return fill_root();
  }

 private:
  static constexpr InstanceId maker{format::first_number};  // has no record: it is expired

  Ino directory_ino(std::uint64_t d) const { return {maker.value + 1 + d * (1 + shape_.files)}; }
  static Token token_of(Ino ino) { return {maker, ino.value}; }
  static format::EntryRecord entry_of(Ino ino, FileType type) { return {ino, type, token_of(ino)}; }

  Result<> read_super() {
    LCCFS_TRY(auto super, store_->query({.object = format::super_object, .xattrs = true}));
    LCCFS_TRY(super_, format::decode<format::SuperRecord>(super.xattrs[format::xattr::super]));
    return {};
  }

  void apply(MetaTxn txn) {
    in_flight_.begin();
    store_->apply_async(std::move(txn), [this](const Result<Applied>& applied) {
      if (!applied) InFlight::fail(applied.error().context);
      in_flight_.end();
    });
  }

  MetaTxn new_inode(Ino ino, Ino parent, FileType type) const {
    txn::NewInode inode;
    inode.ino = ino;
    inode.attr.type = type;
    inode.attr.mode = 0755;
    inode.attr.birth = now_;
    inode.attr.birth_token = token_of(ino);
    inode.parent = {parent, token_of(ino)};
    inode.time = now_;
    return txn::create_inode(inode);
  }

  void add_name(MetaTxn& txn, const std::string& name, Ino ino, FileType type) const {
    txn.mutations.emplace_back(mutation::SetKey{format::entry_key(super_.uuid, name), encode(entry_of(ino, type))});
    txn.mutations.emplace_back(mutation::SetKey{format::reverse_key(ino, name), Bytes(format::marker_value)});
  }

  /// With its names at once, as far as they go into one step; nobody reads the volume before it is whole.
  void make_directory(Ino directory) {
    MetaTxn txn = new_inode(directory, root_ino, FileType::directory);
    for (std::uint64_t f = 0; f < shape_.files; ++f) {
      const Ino file{directory.value + 1 + f};
      add_name(txn, "file " + std::to_string(f), file, FileType::regular);
      make_file(file, directory);
    }
    apply(std::move(txn));
  }

  void make_file(Ino file, Ino directory) {
    MetaTxn txn = new_inode(file, directory, FileType::regular);
    if (shape_.objects > 0) {
      const std::uint64_t size = (shape_.objects - 1) * super_.object_size_bytes + data_bytes;
      txn.mutations.emplace_back(mutation::SetXattr{format::xattr::size, encode(format::NumberRecord{size})});
    }
    for (std::uint64_t first = 0; first < shape_.objects; first += format::MapBlock::objects) {
      format::MapBlock block;
      for (std::uint64_t i = first; i < std::min(shape_.objects, first + format::MapBlock::objects); ++i) {
        block.may_exist.set(i - first);
        block.believed_there.set(i - first);
      }
      txn.mutations.emplace_back(mutation::SetKey{format::map_key(first / format::MapBlock::objects), encode(block)});
    }
    apply(std::move(txn));
    for (std::uint64_t i = 0; i < shape_.objects; ++i) write(format::data_object(file, {i}));
  }

  void write(const std::string& object) {
    in_flight_.begin();
    store_->write_data(object, 0, {content_, content_.get(), data_bytes}, [this](const Result<>& written) {
      if (!written) InFlight::fail(written.error().context);
      in_flight_.end();
    });
  }

  Result<> fill_root() {
    for (std::uint64_t first = 0; first < shape_.directories; first += names_a_step) {
      MetaTxn txn{format::inode_object(root_ino), "fill root", {guard::ObjectExists{}}, {}};
      const std::uint64_t end = std::min(shape_.directories, first + names_a_step);
      for (std::uint64_t d = first; d < end; ++d)
        add_name(txn, "directory " + std::to_string(d), directory_ino(d), FileType::directory);
      txn.mutations.emplace_back(mutation::SetXattr{format::xattr::nsub, encode(format::NumberRecord{end})});
      LCCFS_CHECK(store_->apply(std::move(txn)));
    }
    return {};
  }

  const std::shared_ptr<ObjectStore> store_;
  const Shape shape_;
  const TimeSpec now_ = system_clock().wall_time();
  const std::shared_ptr<char[]> content_bytes_ = std::make_shared<char[]>(data_bytes, 'x');
  const std::shared_ptr<const char> content_{content_bytes_, content_bytes_.get()};
  format::SuperRecord super_;
  InFlight in_flight_;  // last: what is in flight uses the others
};

Result<> run(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line({.name = "make_objects",
                             .usage = "VOLUME --directories N --files N --objects N [--jobs N]",
                             .summary = "Makes a volume.",
                             .footer = ""});
  options::add_address(line, address);
  line.group("Shape");
  Shape shape;
  const auto number = [](auto& variable) { return options::number(variable, 0, UINT32_MAX); };
  line.option("--directories", "N", number(shape.directories), "how many");
  line.option("--files", "N", number(shape.files), "in each");
  line.option("--objects", "N", number(shape.objects), "of each file");
  line.option("--jobs", "N", number(shape.jobs), "operations in flight (default: 64)");
  LCCFS_CHECK(line.parse(words));
  StoreOptions creating;
  creating.create = true;
  LCCFS_TRY(std::shared_ptr<ObjectStore> store, open_store(address, creating));
  return Maker(std::move(store), shape).make();
}

}  // namespace

int main(int argc, char** argv) {
  const auto made = run({argv + 1, argv + argc});
  if (made) return 0;
  std::cerr << "make_objects: " << made.error().context << "\n";
  return 1;
}
