// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scripted/objects.h"

#include <algorithm>
#include <cstring>

namespace lccfs::scripted {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

std::string about(const MetaTxn& txn) { return std::string(txn.step) + " on " + txn.object; }

const Bytes* find(const std::map<std::string, Bytes>& map, const std::string& name) {
  auto found = map.find(name);
  return found == map.end() || found->second.empty() ? nullptr : &found->second;
}

bool holds(const Guard& guard, const MetaObject& object) {
  return std::visit(Overloaded{
                        [](const guard::ObjectExists&) { return true; },
                        [&](const guard::VersionIs& g) { return object.version == g.version; },
                        [&](const guard::XattrEquals& g) {
                          const Bytes* value = find(object.xattrs, g.name);
                          return value && *value == g.value;
                        },
                        [&](const guard::XattrAbsent& g) { return !find(object.xattrs, g.name); },
                        [&](const guard::KeyAbsent& g) { return !find(object.keys, g.key); },
                        [&](const guard::KeyPresent& g) { return find(object.keys, g.key) != nullptr; },
                        [&](const guard::KeyEquals& g) {
                          const Bytes* value = find(object.keys, g.key);
                          return value && *value == g.value;
                        },
                        [&](const guard::KeyLess& g) {
                          const Bytes* value = find(object.keys, g.key);
                          return !value || *value < g.value;
                        },
                    },
                    guard);
}

void mutate(const Mutation& mutation, MetaObject& object) {
  std::visit(Overloaded{
                 [](const mutation::CreateExclusive&) {},
                 [](const mutation::Remove&) {},
                 [&](const mutation::SetPayload& m) { object.payload = m.payload; },
                 [&](const mutation::SetXattr& m) { object.xattrs[m.name] = m.value; },
                 [&](const mutation::RemoveXattr& m) { object.xattrs.erase(m.name); },
                 [&](const mutation::SetKey& m) { object.keys[m.key] = m.value; },
                 [&](const mutation::RemoveKey& m) { object.keys.erase(m.key); },
             },
             mutation);
}

template <class Alternative>
bool is(const Mutation& mutation) {
  return std::holds_alternative<Alternative>(mutation);
}

bool has_empty_value(const Guard& guard) {
  if (auto* xattr = std::get_if<guard::XattrEquals>(&guard)) return xattr->value.empty();
  if (auto* key = std::get_if<guard::KeyEquals>(&guard)) return key->value.empty();
  return false;
}

bool has_empty_value(const Mutation& mutation) {
  if (auto* xattr = std::get_if<mutation::SetXattr>(&mutation)) return xattr->value.empty();
  if (auto* key = std::get_if<mutation::SetKey>(&mutation)) return key->value.empty();
  return false;
}

/// What the port's contract forbids, so that no caller relies on how one store happens to treat it.
Result<> check_form(const MetaTxn& txn) {
  auto forbidden = [&](const char* what) { return failure(ErrorCode::invalid, about(txn) + ": " + what); };
  for (const Guard& guard : txn.guards)
    if (has_empty_value(guard)) return forbidden("a guard on an empty value");
  for (std::size_t i = 0; i < txn.mutations.size(); ++i) {
    const Mutation& mutation = txn.mutations[i];
    if (has_empty_value(mutation)) return forbidden("an empty value");
    if (is<mutation::CreateExclusive>(mutation) && i > 0) return forbidden("create is not the first mutation");
    if (is<mutation::Remove>(mutation) && txn.mutations.size() > 1) return forbidden("remove is not alone");
  }
  return {};
}

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
  LCCFS_CHECK(check_form(txn));
  auto found = metadata_.find(txn.object);
  const bool there = found != metadata_.end();
  if (!there && !txn.guards.empty()) return failure(ErrorCode::not_found, about(txn) + ": no such object");
  for (const Guard& guard : txn.guards)
    if (!holds(guard, found->second)) return failure(ErrorCode::guard_failed, about(txn) + ": a guard does not hold");
  if (txn.mutations.empty()) {
    if (!there) return failure(ErrorCode::not_found, about(txn) + ": no such object");
    return Applied{found->second.version};
  }

  const Mutation& first = txn.mutations.front();
  if (there && is<mutation::CreateExclusive>(first)) return failure(ErrorCode::exists, about(txn) + ": exists");
  const bool takes_away =
      is<mutation::Remove>(first) || is<mutation::RemoveXattr>(first) || is<mutation::RemoveKey>(first);
  if (!there && takes_away) return failure(ErrorCode::not_found, about(txn) + ": no such object");

  const std::uint64_t version = ++last_version_;
  if (is<mutation::Remove>(first)) {
    metadata_.erase(found);
    return Applied{0};
  }
  MetaObject& object = metadata_[txn.object];
  for (const Mutation& mutation : txn.mutations) mutate(mutation, object);
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
    if (const Bytes* value = find(object.keys, key)) snapshot.keys[key] = *value;
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

}  // namespace lccfs::scripted
