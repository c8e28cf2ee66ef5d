// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/volume_scan.h"

namespace lccfs::check {

namespace {

constexpr std::uint32_t keys_at_once = 1024;

/// nullopt: it is gone.
Result<std::optional<WholeObject>> read_whole(ObjectStore& store, const std::string& name) {
  for (;;) {
    auto first =
        store.query({.object = name, .payload = true, .xattrs = true, .ranges = {{"", "", keys_at_once}}, .keys = {}});
    if (!first && first.error().code == ErrorCode::not_found) return std::nullopt;
    if (!first) return std::unexpected(std::move(first).error());
    WholeObject whole{name, std::move(first->payload), std::move(first->xattrs), {}};
    KeyPage page = std::move(first->ranges.front());
    bool same_version = true;
    for (;;) {
      whole.keys.insert(page.entries.begin(), page.entries.end());
      if (!page.more || page.entries.empty()) break;
      auto next = store.query({.object = name, .ranges = {{"", page.entries.back().first, keys_at_once}}, .keys = {}});
      same_version = next && next->version == first->version;
      if (!same_version) break;
      page = std::move(next->ranges.front());
    }
    if (same_version) return whole;
  }
}

Result<std::set<std::string>> list_all(ObjectStore& store) {
  std::set<std::string> names;
  std::string cursor;
  do {
    LCCFS_TRY(ListPage page, store.list(cursor));
    names.insert(page.names.begin(), page.names.end());
    cursor = std::move(page.next_cursor);
  } while (!cursor.empty());
  return names;
}

class Scanner {
 public:
  Scanner(ObjectStore& store, VolumeView& view) : store_(store), view_(view) {}

  /// Super comes first: the uuid is needed to judge entries, and the data pool to list its objects.
  Result<> scan_volume_objects() {
    LCCFS_TRY(const auto super, read_needed(format::super_object));
    if (super) scan_super(view_, *super);
    if (view_.super && !view_.super->data_pool.empty()) LCCFS_CHECK(store_.use_data_pool(view_.super->data_pool));
    LCCFS_TRY(const auto alloc, read_needed(format::alloc_object));
    if (alloc) scan_alloc(view_, *alloc);
    return {};
  }

  Result<> scan_listed(const std::string& name) {
    const auto parsed = format::parse_object_name(name);
    if (!parsed) {
      view_.report({.kind = Finding::Kind::unknown_object,
                    .object = printable(name),
                    .text = "no program of ours makes such an object"});
      return {};
    }
    if (const auto* data = std::get_if<format::DataName>(&*parsed)) {
      view_.data[data->ino].insert(data->index);
      return {};
    }
    const auto* session = std::get_if<format::SessionName>(&*parsed);
    const auto* inode = std::get_if<format::InodeName>(&*parsed);
    if (session == nullptr && inode == nullptr) return {};
    LCCFS_TRY(const auto object, read_whole(store_, name));
    if (object && session != nullptr) scan_session(view_, session->instance, *object);
    if (object && inode != nullptr) scan_inode(view_, inode->ino, *object);
    return {};
  }

 private:
  Result<std::optional<WholeObject>> read_needed(const char* name) {
    LCCFS_TRY(auto object, read_whole(store_, name));
    if (!object) view_.report({.kind = Finding::Kind::missing_object, .object = name, .text = "is not there"});
    return object;
  }

  ObjectStore& store_;
  VolumeView& view_;
};

}  // namespace

Result<VolumeView> scan_volume(ObjectStore& store) {
  VolumeView view;
  Scanner scanner(store, view);
  LCCFS_CHECK(scanner.scan_volume_objects());
  LCCFS_TRY(const auto names, list_all(store));
  for (const auto& name : names) LCCFS_CHECK(scanner.scan_listed(name));
  if (!view.inodes.contains(root_ino)) {
    view.report({.kind = Finding::Kind::missing_object,
                 .object = format::inode_object(root_ino),
                 .text = "the root is not there"});
  }
  return view;
}

void report_part(VolumeView& view, Finding::Kind kind, const std::string& object, const Part& part,
                 const std::string& why) {
  view.report({.kind = kind,
               .object = object,
               .text = (part.is_key ? "key " : "xattr ") + printable(part.name) + ": " + why,
               .part = part.name,
               .is_key = part.is_key,
               .seen = Bytes(part.value)});
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      text += c;
    } else {
      text += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
  }
  return text;
}

}  // namespace lccfs::check
