// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/common/meta_object.h"

#include <variant>

namespace lccfs {
namespace {

template <class Part>
constexpr bool may_be_empty = !requires(const Part& part) { part.value; };
template <>
constexpr bool may_be_empty<guard::KeyLess> = true;  // nothing is below the empty value: it just fails

bool has_empty_value(const auto& guard_or_mutation) {
  return std::visit(
      []<class Part>(const Part& part) {
        if constexpr (may_be_empty<Part>) {
          return false;
        } else {
          return part.value.empty();
        }
      },
      guard_or_mutation);
}

template <class... Alternatives>
bool is(const Mutation& mutation) {
  return (std::holds_alternative<Alternatives>(mutation) || ...);
}

std::unexpected<Error> refused(ErrorCode code, const MetaTxn& txn, const char* why) {
  return failure(code, std::string(txn.step) + " on " + txn.object + ": " + why);
}

Result<> check_form(const MetaTxn& txn) {
  for (const Guard& guard : txn.guards)
    if (has_empty_value(guard)) return refused(ErrorCode::invalid, txn, "a guard on an empty value");
  for (const Mutation& mutation : txn.mutations) {
    if (has_empty_value(mutation)) return refused(ErrorCode::invalid, txn, "an empty value");
    if (is<mutation::CreateExclusive>(mutation) && &mutation != &txn.mutations.front())
      return refused(ErrorCode::invalid, txn, "create is not the first mutation");
    if (is<mutation::Remove>(mutation) && txn.mutations.size() > 1)
      return refused(ErrorCode::invalid, txn, "remove is not alone");
  }
  return {};
}

class GuardHolds {
 public:
  GuardHolds(const MetaHead& head, const MetaKeys& keys) : head_(head), keys_(keys) {}

  Result<bool> operator()(const guard::ObjectExists&) const { return true; }
  Result<bool> operator()(const guard::VersionIs& guard) const { return head_.version == guard.version; }
  Result<bool> operator()(const guard::XattrEquals& guard) const { return xattr(guard.name) == guard.value; }
  Result<bool> operator()(const guard::XattrAbsent& guard) const { return xattr(guard.name).empty(); }
  Result<bool> operator()(const guard::KeyAbsent& guard) const {
    return key(guard.key, [](auto value) { return value.empty(); });
  }
  Result<bool> operator()(const guard::KeyPresent& guard) const {
    return key(guard.key, [](auto value) { return !value.empty(); });
  }
  Result<bool> operator()(const guard::KeyEquals& guard) const {
    return key(guard.key, [&](auto value) { return value == guard.value; });
  }
  Result<bool> operator()(const guard::KeyLess& guard) const {
    return key(guard.key, [&](auto value) { return value.empty() || value < guard.value; });
  }

 private:
  /// Empty: absent.
  std::string_view xattr(const std::string& name) const {
    const auto found = head_.xattrs.find(name);
    return found == head_.xattrs.end() ? std::string_view() : found->second;
  }
  Result<bool> key(const std::string& name, auto test) const {
    LCCFS_TRY(const auto value, keys_.get(name));
    return test(value.value_or(std::string_view()));
  }

  const MetaHead& head_;
  const MetaKeys& keys_;
};

struct Mutator {
  MetaHead& head;
  MetaKeys& keys;

  Result<> operator()(const mutation::CreateExclusive&) { return {}; }
  Result<> operator()(const mutation::Remove&) { return {}; }
  Result<> operator()(const mutation::SetPayload& mutation) {
    head.payload = mutation.payload;
    return {};
  }
  Result<> operator()(const mutation::SetXattr& mutation) {
    head.xattrs[mutation.name] = mutation.value;
    return {};
  }
  Result<> operator()(const mutation::RemoveXattr& mutation) {
    head.xattrs.erase(mutation.name);
    return {};
  }
  Result<> operator()(const mutation::SetKey& mutation) { return keys.set(mutation.key, mutation.value); }
  Result<> operator()(const mutation::RemoveKey& mutation) { return keys.remove(mutation.key); }
};

}  // namespace

bool creates(const MetaTxn& txn) {
  return !txn.mutations.empty() && is<mutation::CreateExclusive>(txn.mutations.front());
}

bool removes(const MetaTxn& txn) { return !txn.mutations.empty() && is<mutation::Remove>(txn.mutations.front()); }

Result<> may_apply(const MetaTxn& txn, const MetaHead* head, const MetaKeys& keys) {
  LCCFS_CHECK(check_form(txn));
  const bool makes_none =
      txn.mutations.empty() || is<mutation::Remove, mutation::RemoveXattr, mutation::RemoveKey>(txn.mutations.front());
  if (!head && (makes_none || !txn.guards.empty())) return refused(ErrorCode::not_found, txn, "no such object");
  for (const Guard& guard : txn.guards) {
    LCCFS_TRY(const bool holds, std::visit(GuardHolds(*head, keys), guard));
    if (!holds) return refused(ErrorCode::guard_failed, txn, "a guard does not hold");
  }
  if (head && creates(txn)) return refused(ErrorCode::exists, txn, "exists");
  return {};
}

Result<> mutate(const MetaTxn& txn, MetaHead& head, MetaKeys& keys) {
  for (const Mutation& mutation : txn.mutations) LCCFS_CHECK(std::visit(Mutator{head, keys}, mutation));
  return {};
}

}  // namespace lccfs
