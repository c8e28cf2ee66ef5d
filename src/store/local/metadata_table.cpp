// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/metadata_table.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "store/local/object_head.h"
#include "store/local/txn_form.h"

namespace lccfs::local {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 16 asks for it

constexpr std::string_view version_key = "version";

std::string keys_prefix(const std::string& object) { return object + '\0'; }

std::string about(const MetaTxn& txn) { return std::string(txn.step) + " on " + txn.object; }

Result<std::optional<ObjectHead>> read_head(const Transaction& transaction, const std::string& object) {
  LCCFS_TRY(const auto stored, transaction.get(transaction.tables().objects, object));
  if (!stored) return std::nullopt;
  auto head = decode_head(*stored);
  if (!head) return failure(ErrorCode::corrupt, object + ": its record in the local store is not one of ours");
  return head;
}

Result<std::uint64_t> take_version(WriteTransaction& transaction) {
  const MDB_dbi table = transaction.tables().volume;
  LCCFS_TRY(const auto stored, transaction.get(table, version_key));
  const auto last = stored ? decode_number(*stored) : 0;
  if (!last) return failure(ErrorCode::corrupt, "the version counter of the local store is not a number");
  LCCFS_CHECK(transaction.put(table, version_key, encode_number(*last + 1)));
  return *last + 1;
}

// ---- guards

class Guards {
 public:
  Guards(const Transaction& transaction, const std::string& object, const ObjectHead& head)
      : transaction_(transaction), prefix_(keys_prefix(object)), head_(head) {}

  Result<bool> hold(const Guard& guard) const {
    if (auto* g = std::get_if<guard::VersionIs>(&guard)) return head_.version == g->version;
    if (auto* g = std::get_if<guard::XattrEquals>(&guard)) return xattr(g->name) == g->value;
    if (auto* g = std::get_if<guard::XattrAbsent>(&guard)) return xattr(g->name).empty();
    if (auto* g = std::get_if<guard::KeyAbsent>(&guard)) return key(g->key, [](auto stored) { return !stored; });
    if (auto* g = std::get_if<guard::KeyPresent>(&guard))
      return key(g->key, [](auto stored) { return stored.has_value(); });
    if (auto* g = std::get_if<guard::KeyEquals>(&guard))
      return key(g->key, [&](auto stored) { return stored == g->value; });
    if (auto* g = std::get_if<guard::KeyLess>(&guard))
      return key(g->key, [&](auto stored) { return !stored || *stored < g->value; });
    return true;  // ObjectExists
  }

 private:
  std::string_view xattr(const std::string& name) const {
    const auto found = head_.xattrs.find(name);
    return found == head_.xattrs.end() ? std::string_view() : found->second;
  }
  Result<bool> key(const std::string& name, auto test) const {
    LCCFS_TRY(const std::optional<std::string_view> stored,
              transaction_.get(transaction_.tables().keys, prefix_ + name));
    return test(stored);
  }

  const Transaction& transaction_;
  const std::string prefix_;
  const ObjectHead& head_;
};

// ---- mutations

Result<> mutate(WriteTransaction& transaction, const std::string& object, ObjectHead& head, const Mutation& mutation) {
  const MDB_dbi keys = transaction.tables().keys;
  return std::visit(
      Overloaded{
          [](const mutation::CreateExclusive&) { return Result<>(); },
          [](const mutation::Remove&) { return Result<>(); },
          [&](const mutation::SetPayload& m) {
            head.payload = m.payload;
            return Result<>();
          },
          [&](const mutation::SetXattr& m) {
            head.xattrs[m.name] = m.value;
            return Result<>();
          },
          [&](const mutation::RemoveXattr& m) {
            head.xattrs.erase(m.name);
            return Result<>();
          },
          [&](const mutation::SetKey& m) { return transaction.put(keys, keys_prefix(object) + m.key, m.value); },
          [&](const mutation::RemoveKey& m) { return transaction.remove(keys, keys_prefix(object) + m.key); },
      },
      mutation);
}

Result<> remove_object(WriteTransaction& transaction, const std::string& object) {
  LCCFS_CHECK(transaction.remove(transaction.tables().objects, object));
  return transaction.remove_all(transaction.tables().keys, keys_prefix(object));
}

bool takes_away(const Mutation& mutation) {
  return std::holds_alternative<mutation::Remove>(mutation) ||
         std::holds_alternative<mutation::RemoveXattr>(mutation) ||
         std::holds_alternative<mutation::RemoveKey>(mutation);
}

/// Everything that can refuse a transaction, before anything is changed.
Result<> check(const Transaction& transaction, const MetaTxn& txn, const std::optional<ObjectHead>& head,
               bool growth_allowed) {
  if (!head && !txn.guards.empty()) return failure(ErrorCode::not_found, about(txn) + ": no such object");
  for (const Guard& guard : txn.guards) {
    LCCFS_TRY(const bool holds, Guards(transaction, txn.object, *head).hold(guard));
    if (!holds) return failure(ErrorCode::guard_failed, about(txn) + ": a guard does not hold");
  }
  const bool makes = !txn.mutations.empty() && std::holds_alternative<mutation::CreateExclusive>(txn.mutations.front());
  if (head && makes) return failure(ErrorCode::exists, about(txn) + ": exists");
  if (!head && (txn.mutations.empty() || takes_away(txn.mutations.front())))
    return failure(ErrorCode::not_found, about(txn) + ": no such object");
  if (makes && !growth_allowed) return failure(ErrorCode::no_space, about(txn) + ": the disk is full");
  return {};
}

Result<KeyPage> read_page(const Transaction& transaction, const std::string& object, const KeyRange& range) {
  const std::string prefix = keys_prefix(object), wanted = prefix + range.prefix, after = prefix + range.after;
  LCCFS_TRY(auto cursor, Cursor::open(transaction, transaction.tables().keys));
  LCCFS_TRY(bool found, cursor.seek(std::max(wanted, after)));
  if (found && !range.after.empty() && cursor.key() == after) {
    LCCFS_TRY(found, cursor.next());
  }
  std::vector<std::pair<std::string, Bytes>> entries;
  while (found && cursor.key().starts_with(wanted)) {
    if (entries.size() >= range.limit) return KeyPage{std::move(entries), true};
    entries.emplace_back(cursor.key().substr(prefix.size()), cursor.value());
    LCCFS_TRY(found, cursor.next());
  }
  return KeyPage{std::move(entries), false};
}

}  // namespace

Result<Answer> apply(WriteTransaction& transaction, const MetaTxn& txn, bool growth_allowed) {
  if (auto form = check_form(txn); !form) return Answer(std::unexpected(std::move(form).error()));
  auto head = read_head(transaction, txn.object);
  if (!head) return Answer(std::unexpected(std::move(head).error()));
  if (auto allowed = check(transaction, txn, *head, growth_allowed); !allowed)
    return Answer(std::unexpected(std::move(allowed).error()));
  if (txn.mutations.empty()) return Applied{(*head)->version};

  LCCFS_TRY(const std::uint64_t version, take_version(transaction));
  if (std::holds_alternative<mutation::Remove>(txn.mutations.front())) {
    LCCFS_CHECK(remove_object(transaction, txn.object));
    return Applied{0};
  }
  ObjectHead changed = std::move(*head).value_or(ObjectHead{});
  for (const Mutation& mutation : txn.mutations) LCCFS_CHECK(mutate(transaction, txn.object, changed, mutation));
  changed.version = version;
  LCCFS_CHECK(transaction.put(transaction.tables().objects, txn.object, encode(changed)));
  return Applied{version};
}

Result<MetaSnapshot> query(const Transaction& transaction, const MetaRead& read) {
  LCCFS_CHECK(check_form(read));
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
    LCCFS_TRY(const auto stored, transaction.get(transaction.tables().keys, prefix + key));
    if (stored) snapshot.keys[key] = *stored;
  }
  return snapshot;
}

Result<bool> object_exists(const Transaction& transaction, const std::string& object) {
  LCCFS_TRY(const auto stored, transaction.get(transaction.tables().objects, object));
  return stored.has_value();
}

Result<std::vector<std::string>> object_names(const Transaction& transaction, const std::string& after,
                                              std::size_t limit) {
  std::vector<std::string> names;
  LCCFS_TRY(auto cursor, Cursor::open(transaction, transaction.tables().objects));
  LCCFS_TRY(bool found, cursor.seek(after));
  while (found && names.size() < limit) {
    if (cursor.key() != after) names.emplace_back(cursor.key());
    LCCFS_TRY(found, cursor.next());
  }
  return names;
}

}  // namespace lccfs::local
