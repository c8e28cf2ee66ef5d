// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scripted/objects.h"

#include <algorithm>
#include <cstring>

namespace lccfs::scripted {
namespace {

class Keys final : public MetaKeys {
 public:
  explicit Keys(std::map<std::string, Bytes>& keys) : keys_(keys) {}
  Result<std::optional<std::string_view>> get(const std::string& key) const override {
    const auto found = keys_.find(key);
    return found == keys_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  }
  Result<> set(const std::string& key, const Bytes& value) override {
    keys_[key] = value;
    return {};
  }
  Result<> remove(const std::string& key) override {
    keys_.erase(key);
    return {};
  }

 private:
  std::map<std::string, Bytes>& keys_;
};

KeyPage page_of(const std::map<std::string, Bytes>& keys, const KeyRange& range, std::uint32_t page_limit) {
  KeyPage page;
  const std::uint32_t limit = std::min(range.limit, page_limit);
  auto next = range.after < range.prefix ? keys.lower_bound(range.prefix) : keys.upper_bound(range.after);
  for (; next != keys.end() && next->first.starts_with(range.prefix); ++next) {
    if (page.entries.size() >= limit) {
      page.more = true;
      break;
    }
    page.entries.push_back(*next);
  }
  return page;
}

}  // namespace

Result<Applied> Objects::apply(const MetaTxn& txn) {
  const auto found = metadata_.find(txn.object);
  const bool there = found != metadata_.end();
  MetaObject none;
  MetaObject& stored = there ? found->second : none;
  LCCFS_CHECK(may_apply(txn, there ? &stored : nullptr, Keys(stored.keys)));
  if (txn.mutations.empty()) return Applied{stored.version};
  const std::uint64_t version = ++last_version_;
  if (removes(txn)) {
    metadata_.erase(found);
    return Applied{0};
  }
  MetaObject& object = metadata_[txn.object];
  Keys keys(object.keys);
  LCCFS_CHECK(mutate(txn, object, keys));
  object.version = version;
  return Applied{version};
}

Result<MetaSnapshot> Objects::query(const MetaRead& read, std::uint32_t page_limit) const {
  auto found = metadata_.find(read.object);
  if (found == metadata_.end()) return failure(ErrorCode::not_found, read.object + ": no such object");
  const MetaObject& object = found->second;
  MetaSnapshot snapshot;
  snapshot.version = object.version;
  if (read.payload) snapshot.payload = object.payload;
  if (read.xattrs) snapshot.xattrs = object.xattrs;
  for (const KeyRange& range : read.ranges) snapshot.ranges.push_back(page_of(object.keys, range, page_limit));
  for (const std::string& key : read.keys)
    if (const auto stored = object.keys.find(key); stored != object.keys.end() && !stored->second.empty())
      snapshot.keys.insert(*stored);
  return snapshot;
}

std::size_t Objects::read(const std::string& object, std::uint64_t offset, std::span<char> target) const {
  auto found = data_.find(object);
  if (found == data_.end() || offset >= found->second.size()) return 0;
  const std::size_t count = std::min<std::size_t>(target.size(), found->second.size() - offset);
  std::memcpy(target.data(), found->second.data() + offset, count);
  return count;
}

void Objects::write(const std::string& object, std::uint64_t offset, std::span<const char> bytes) {
  Bytes& stored = data_[object];
  if (stored.size() < offset + bytes.size()) stored.resize(offset + bytes.size(), '\0');
  std::ranges::copy(bytes, stored.begin() + static_cast<std::ptrdiff_t>(offset));
}

void Objects::truncate(const std::string& object, std::uint64_t size_bytes) {
  auto found = data_.find(object);
  if (found != data_.end() && found->second.size() > size_bytes) found->second.resize(size_bytes);
}

/// As RADOS does: what reaches the end is cut off.
void Objects::zero(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes) {
  auto found = data_.find(object);
  if (found == data_.end() || offset >= found->second.size()) return;
  Bytes& stored = found->second;
  if (size_bytes >= stored.size() - offset) return stored.resize(offset);
  stored.replace(offset, size_bytes, size_bytes, '\0');
}

bool Objects::copy(const std::string& source, const std::string& target) {
  const auto found = data_.find(source);
  if (found == data_.end()) return false;
  data_[target] = found->second;
  return true;
}

std::vector<DataExtent> Objects::extents(const std::string& object, std::uint64_t offset,
                                         std::uint64_t size_bytes) const {
  constexpr std::uint64_t block_bytes = 4096;
  std::vector<DataExtent> found;
  const auto stored = data_.find(object);
  if (stored == data_.end()) return found;
  const Bytes& bytes = stored->second;
  const std::uint64_t end = offset < bytes.size() ? offset + std::min(size_bytes, bytes.size() - offset) : offset;
  for (std::uint64_t at = offset; at < end;) {
    const auto next = std::min(end, (at / block_bytes + 1) * block_bytes);
    const bool holds_data = bytes.find_first_not_of('\0', at) < next;
    const bool continues = !found.empty() && found.back().offset + found.back().size_bytes == at;
    if (holds_data && continues) found.back().size_bytes += next - at;
    if (holds_data && !continues) found.push_back({at, next - at});
    at = next;
  }
  return found;
}

}  // namespace lccfs::scripted
