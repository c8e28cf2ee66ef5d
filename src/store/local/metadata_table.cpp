// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/metadata_table.h"

#include <optional>
#include <utility>

#include "base/bytes.h"
#include "store/common/meta_object.h"

namespace lccfs::local {
namespace {

constexpr std::size_t object_name_limit_bytes = 255;
constexpr std::string_view version_key = "version";

std::string keys_prefix(const std::string& object) { return object + '\0'; }

// ---- records: little-endian, strings led by a 32-bit length

/// version u64 | payload string | number of xattrs u32 | { name string | value string } in order of the names
Bytes encode(const MetaHead& head) {
  ByteWriter out;
  out.put(head.version);
  out.put_string(head.payload);
  out.put(static_cast<std::uint32_t>(head.xattrs.size()));
  for (const auto& [name, value] : head.xattrs) {
    out.put_string(name);
    out.put_string(value);
  }
  return out.take();
}

Result<std::optional<MetaHead>> read_head(const Transaction& transaction, const std::string& object) {
  LCCFS_TRY(const auto stored, transaction.get(Table::objects, object));
  if (!stored) return std::nullopt;
  ByteReader in(*stored);
  MetaHead head;
  head.version = in.get<std::uint64_t>();
  head.payload = in.get_string();
  for (auto xattrs = in.get<std::uint32_t>(); xattrs > 0 && in.good(); --xattrs) {
    auto name = in.get_string();
    head.xattrs.insert_or_assign(std::move(name), in.get_string());
  }
  if (in.good() && in.left() == 0) return head;
  return failure(ErrorCode::corrupt, object + ": its record in the local store is not one of ours");
}

Result<std::uint64_t> take_version(WriteTransaction& transaction) {
  constexpr Table table = Table::volume;
  LCCFS_TRY(const auto stored, transaction.get(table, version_key));
  std::uint64_t version = 0;
  if (stored) {
    ByteReader in(*stored);
    version = in.get<std::uint64_t>();
    if (!in.good() || in.left() > 0)
      return failure(ErrorCode::corrupt, "the version counter of the local store is not a number");
  }
  ByteWriter out;
  out.put(++version);
  LCCFS_CHECK(transaction.put(table, version_key, out.bytes()));
  return version;
}

class Keys final : public MetaKeys {
 public:
  Keys(WriteTransaction& transaction, const std::string& object)
      : transaction_(transaction), prefix_(keys_prefix(object)) {}
  Result<std::optional<std::string_view>> get(const std::string& key) const override {
    return transaction_.get(Table::keys, prefix_ + key);
  }
  Result<> set(const std::string& key, const Bytes& value) override {
    return transaction_.put(Table::keys, prefix_ + key, value);
  }
  Result<> remove(const std::string& key) override { return transaction_.remove(Table::keys, prefix_ + key); }

 private:
  WriteTransaction& transaction_;
  const std::string prefix_;
};

Result<> remove_object(WriteTransaction& transaction, const std::string& object) {
  LCCFS_CHECK(transaction.remove(Table::objects, object));
  return transaction.remove_all(Table::keys, keys_prefix(object));
}

Result<KeyPage> read_page(const Transaction& transaction, const std::string& object, const KeyRange& range) {
  const std::string prefix = keys_prefix(object);
  const std::string after = range.after.empty() ? "" : prefix + range.after;
  KeyPage page;
  LCCFS_CHECK(transaction.walk(Table::keys, prefix + range.prefix, after, [&](auto key, auto value) {
    page.more = page.entries.size() >= range.limit;
    if (!page.more) page.entries.emplace_back(key.substr(prefix.size()), value);
    return !page.more;
  }));
  return page;
}

}  // namespace

Result<> check_object_name(const std::string& object) {
  if (object.empty() || object == "." || object == ".." || object.size() > object_name_limit_bytes ||
      object.find('/') != std::string::npos || object.find('\0') != std::string::npos)
    return failure(ErrorCode::invalid, "'" + object + "' cannot be the name of an object");
  return {};
}

Result<Answer> apply(WriteTransaction& transaction, const MetaTxn& txn, bool growth_allowed) {
  if (auto named = check_object_name(txn.object); !named) return Answer(std::unexpected(std::move(named).error()));
  LCCFS_TRY(auto head, read_head(transaction, txn.object));
  Keys keys(transaction, txn.object);
  if (auto allowed = may_apply(txn, head ? &*head : nullptr, keys); !allowed)
    return Answer(std::unexpected(std::move(allowed).error()));
  if (creates(txn) && !growth_allowed && !txn.even_if_full)
    return Answer(failure(ErrorCode::no_space, std::string(txn.step) + " on " + txn.object + ": the disk is full"));
  if (txn.mutations.empty()) return Applied{head->version};

  LCCFS_TRY(const std::uint64_t version, take_version(transaction));
  if (removes(txn)) {
    LCCFS_CHECK(remove_object(transaction, txn.object));
    return Applied{0};
  }
  MetaHead changed = std::move(head).value_or(MetaHead{});
  LCCFS_CHECK(mutate(txn, changed, keys));
  changed.version = version;
  LCCFS_CHECK(transaction.put(Table::objects, txn.object, encode(changed)));
  return Applied{version};
}

Result<MetaSnapshot> query(const Transaction& transaction, const MetaRead& read) {
  LCCFS_CHECK(check_object_name(read.object));
  LCCFS_TRY(auto head, read_head(transaction, read.object));
  if (!head) return failure(ErrorCode::not_found, read.object + ": no such object");
  MetaSnapshot snapshot;
  snapshot.version = head->version;
  if (read.payload) snapshot.payload = std::move(head->payload);
  if (read.xattrs) snapshot.xattrs = std::move(head->xattrs);
  for (const KeyRange& range : read.ranges) {
    LCCFS_TRY(auto page, read_page(transaction, read.object, range));
    snapshot.ranges.push_back(std::move(page));
  }
  const std::string prefix = keys_prefix(read.object);
  for (const std::string& key : read.keys) {
    LCCFS_TRY(const auto stored, transaction.get(Table::keys, prefix + key));
    if (stored) snapshot.keys[key] = *stored;
  }
  return snapshot;
}

}  // namespace lccfs::local
