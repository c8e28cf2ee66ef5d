// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/txn_form.h"

#include <string>
#include <string_view>
#include <variant>

#include "store/local/environment.h"

namespace lccfs::local {
namespace {

constexpr std::size_t object_name_limit_bytes = 255;

std::unexpected<Error> forbidden(const MetaTxn& txn, const std::string& what) {
  return failure(ErrorCode::invalid, std::string(txn.step) + " on " + txn.object + ": " + what);
}

Result<> check_key(const std::string& object, std::string_view key) {
  const std::size_t stored_bytes = object.size() + 1 + key.size();
  if (stored_bytes <= key_limit_bytes) return {};
  return failure(ErrorCode::invalid, object + ": a key of " + std::to_string(key.size()) +
                                         " bytes; the local store has room for " +
                                         std::to_string(key_limit_bytes - object.size() - 1) + " in this object");
}

/// A key that the guard or mutation is about; empty: none.
template <class Variant>
std::string_view key_of(const Variant& variant) {
  return std::visit(
      [](const auto& part) -> std::string_view {
        if constexpr (requires { part.key; }) {
          return part.key;
        } else {
          return {};
        }
      },
      variant);
}

template <class Variant>
bool sets_or_compares_nothing(const Variant& variant) {
  return std::visit(
      [](const auto& part) {
        using Part = std::decay_t<decltype(part)>;
        if constexpr (std::is_same_v<Part, guard::KeyLess>) {
          return false;  // nothing is below the empty value: the guard just fails, or passes on an absent key
        } else if constexpr (requires { part.value; }) {
          return part.value.empty();
        } else {
          return false;
        }
      },
      variant);
}

}  // namespace

Result<> check_object_name(const std::string& object) {
  if (object.empty() || object == "." || object == ".." || object.size() > object_name_limit_bytes ||
      object.find('/') != std::string::npos || object.find('\0') != std::string::npos)
    return failure(ErrorCode::invalid, "'" + object + "' cannot be the name of an object");
  return {};
}

Result<> check_form(const MetaTxn& txn) {
  LCCFS_CHECK(check_object_name(txn.object));
  for (const Guard& guard : txn.guards) {
    if (sets_or_compares_nothing(guard)) return forbidden(txn, "a guard on an empty value");
    LCCFS_CHECK(check_key(txn.object, key_of(guard)));
  }
  for (std::size_t i = 0; i < txn.mutations.size(); ++i) {
    const Mutation& mutation = txn.mutations[i];
    if (sets_or_compares_nothing(mutation)) return forbidden(txn, "an empty value");
    LCCFS_CHECK(check_key(txn.object, key_of(mutation)));
    if (std::holds_alternative<mutation::CreateExclusive>(mutation) && i > 0)
      return forbidden(txn, "create is not the first mutation");
    if (std::holds_alternative<mutation::Remove>(mutation) && txn.mutations.size() > 1)
      return forbidden(txn, "remove is not alone");
  }
  return {};
}

Result<> check_form(const MetaRead& read) {
  LCCFS_CHECK(check_object_name(read.object));
  for (const std::string& key : read.keys) LCCFS_CHECK(check_key(read.object, key));
  for (const KeyRange& range : read.ranges) {
    LCCFS_CHECK(check_key(read.object, range.prefix));
    LCCFS_CHECK(check_key(read.object, range.after));
  }
  return {};
}

}  // namespace lccfs::local
