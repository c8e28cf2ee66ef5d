// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/inode_view.h"

#include <algorithm>

#include "format/object_names.h"
#include "txn/file_txn.h"

namespace lccfs {

namespace xattr = format::xattr;

namespace {

constexpr std::uint32_t map_blocks_at_once = 1000;

/// Decodes xattrs of one object one by one; remembers the first thing that is wrong.
class XattrDecoder {
 public:
  XattrDecoder(std::string object, const std::map<std::string, Bytes>& xattrs)
      : object_(std::move(object)), xattrs_(xattrs) {}

  template <class Record>
  std::optional<Record> optional(const char* name) {
    const auto found = xattrs_.find(name);
    if (found == xattrs_.end()) return std::nullopt;
    auto record = format::decode<Record>(found->second);
    if (record) return std::move(*record);
    if (!error_) error_ = Error{record.error().code, object_ + ": xattr " + name + ": " + record.error().context};
    return std::nullopt;
  }

  template <class Record>
  Record needed(const char* name) {
    if (!xattrs_.contains(name)) {
      if (!error_) error_ = Error{ErrorCode::corrupt, object_ + ": xattr " + std::string(name) + " is missing"};
      return {};
    }
    return optional<Record>(name).value_or(Record{});
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  const std::string object_;
  const std::map<std::string, Bytes>& xattrs_;
  std::optional<Error> error_;
};

Result<> decode_xattrs(InodeView& view, MetaSnapshot& snapshot, const std::string& object) {
  XattrDecoder decoder(object, snapshot.xattrs);
  view.attr = decoder.needed<format::AttrRecord>(xattr::attr);
  view.state = decoder.needed<format::StateRecord>(xattr::state);
  view.parent = decoder.optional<format::BackPointerRecord>(xattr::parent);
  view.size_bytes = decoder.optional<format::NumberRecord>(xattr::size).value_or(format::NumberRecord{}).value;
  view.nsub = decoder.optional<format::NumberRecord>(xattr::nsub).value_or(format::NumberRecord{}).value;
  view.fence = decoder.optional<format::NumberRecord>(xattr::fence).value_or(format::NumberRecord{}).value;
  const auto time = [&decoder](const char* name) {
    return decoder.optional<format::TimeRecord>(name).value_or(format::TimeRecord{}).time;
  };
  view.atime = time(xattr::atime);
  view.mtime = time(xattr::mtime);
  view.ctime = time(xattr::ctime);
  view.wtime = time(xattr::wtime);
  if (const auto lease = decoder.optional<format::NumberRecord>(xattr::lease)) view.lease = InstanceId{lease->value};
  view.attr_raw = std::move(snapshot.xattrs[xattr::attr]);
  view.state_raw = std::move(snapshot.xattrs[xattr::state]);
  view.nsub_raw = std::move(snapshot.xattrs[xattr::nsub]);
  if (decoder.error()) return std::unexpected(*decoder.error());
  if (view.size_bytes > format::file_size_limit_bytes) return failure(ErrorCode::corrupt, object + ": size too large");
  return {};
}

Result<> decode_map(AllocationMap& map, const KeyPage& page, const std::string& object) {
  for (const auto& [key, value] : page.entries) {
    const auto block = format::parse_map_key(key);
    if (!block) return failure(ErrorCode::corrupt, std::string(object).append(": not a key of the map: ").append(key));
    auto bits = format::decode<format::MapBlock>(value);
    if (!bits)
      return failure(bits.error().code,
                     std::string(object).append(": ").append(key).append(": ").append(bits.error().context));
    map.set_block(*block, *bits);
  }
  return {};
}

}  // namespace

MetaRead inode_read(Ino ino, const InodeReadOptions& options) {
  MetaRead read{.object = format::inode_object(ino),
                .payload = options.payload,
                .xattrs = true,
                .ranges = options.extra_ranges,
                .keys = options.keys};
  read.ranges.push_back({"m/", "", map_blocks_at_once});
  return read;
}

Result<InodeView> read_inode(Instance& instance, Ino ino, const InodeReadOptions& options) {
  const auto sent = instance.clock().elapsed();
  auto view = view_of_read(instance, ino, instance.query(inode_read(ino, options)), options);
  if (view) view->sent = sent;
  return view;
}

Result<InodeView> view_of_read(Instance& instance, Ino ino, Result<MetaSnapshot> read,
                               const InodeReadOptions& options) {
  LCCFS_TRY(auto snapshot, std::move(read));
  const auto object = format::inode_object(ino);
  InodeView view;
  view.ino = ino;
  view.version = snapshot.version;
  LCCFS_CHECK(decode_xattrs(view, snapshot, object));
  KeyPage map_page = std::move(snapshot.ranges.back());
  snapshot.ranges.pop_back();
  LCCFS_CHECK(decode_map(view.map, map_page, object));
  while (map_page.more && !map_page.entries.empty()) {
    const auto last = map_page.entries.back().first;
    LCCFS_TRY(auto rest, instance.query({.object = object, .ranges = {{"m/", last, map_blocks_at_once}}, .keys = {}}));
    if (rest.version != view.version) return read_inode(instance, ino, options);  // all pages are of one version
    map_page = std::move(rest.ranges.front());
    LCCFS_CHECK(decode_map(view.map, map_page, object));
  }
  view.payload = std::move(snapshot.payload);
  view.extra_ranges = std::move(snapshot.ranges);
  view.keys = std::move(snapshot.keys);
  return view;
}

Error gone_is_stale(Error error) {
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::stale;
  return error;
}

Attributes attributes_of(const InodeView& view, std::uint64_t object_size_bytes) {
  Attributes attributes;
  attributes.ino = view.ino;
  attributes.type = view.attr.type;
  attributes.mode = view.attr.mode;
  attributes.nlink = view.attr.nlink;
  if (view.is_directory()) attributes.nlink = view.live() ? static_cast<std::uint32_t>(2 + view.nsub) : 0;
  attributes.uid = view.attr.uid;
  attributes.gid = view.attr.gid;
  attributes.rdev = view.attr.rdev;
  attributes.size_bytes = view.size_bytes;
  attributes.blocks_512 = view.map.blocks_512(object_size_bytes, view.size_bytes);
  attributes.atime = view.atime;
  attributes.mtime = view.mtime;
  attributes.ctime = std::max(view.ctime, view.wtime);
  return attributes;
}

Result<InodeView> change_attr(Instance& instance, Ino ino, const std::function<Result<>(format::AttrRecord&)>& change,
                              const InodeView* known) {
  std::optional<InodeView> view;
  if (known != nullptr) view = *known;
  for (;;) {
    if (!view) {
      LCCFS_TRY(view, read_inode(instance, ino));
    }
    auto attr = view->attr;
    LCCFS_CHECK(change(attr));
    const auto sent = instance.clock().elapsed();
    const auto now = instance.clock().wall_time();
    const bool drop_capability = (view->attr.flags & ~attr.flags & format::attr_flag::capability) != 0;
    LCCFS_TRY(const auto result, instance.run(txn::change_attr(ino, view->attr_raw, attr, now, drop_capability)));
    if (result.decided == Decided::applied) {
      if (result.version == 0) return read_inode(instance, ino);
      view->attr = attr;
      view->attr_raw = encode(attr);
      view->ctime = now;
      view->version = result.version;
      view->sent = sent;
      return *view;
    }
    view.reset();  // lost a race, or what was known is old
  }
}

}  // namespace lccfs
