// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/write_operation.h"

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace lccfs::rados {
namespace {

using librados::bufferlist;

class GuardBuilder {
 public:
  explicit GuardBuilder(librados::ObjectWriteOperation& operation) : operation_(operation) {}

  void operator()(const guard::ObjectExists&) { operation_.assert_exists(); }
  void operator()(const guard::VersionIs& guard) {
    operation_.assert_exists();  // else a missing object would answer like one that has changed
    // No object has version 0, and RADOS refuses to compare with it; a version ahead of all fails as it should.
    operation_.assert_version(guard.version != 0 ? guard.version : std::numeric_limits<std::uint64_t>::max());
  }
  void operator()(const guard::XattrEquals& guard) {
    operation_.cmpxattr(guard.name.c_str(), LIBRADOS_CMPXATTR_OP_EQ, to_bufferlist(guard.value));
  }
  void operator()(const guard::XattrAbsent& guard) {
    operation_.cmpxattr(guard.name.c_str(), LIBRADOS_CMPXATTR_OP_EQ, bufferlist());
  }
  void operator()(const guard::KeyAbsent& guard) { compare(guard.key, {}, LIBRADOS_CMPXATTR_OP_EQ); }
  void operator()(const guard::KeyPresent& guard) { compare(guard.key, {}, LIBRADOS_CMPXATTR_OP_GT); }
  void operator()(const guard::KeyEquals& guard) { compare(guard.key, guard.value, LIBRADOS_CMPXATTR_OP_EQ); }
  void operator()(const guard::KeyLess& guard) { compare(guard.key, guard.value, LIBRADOS_CMPXATTR_OP_LT); }

  void finish() {
    if (!comparisons_.empty()) operation_.omap_cmp(comparisons_, nullptr);
    comparisons_.clear();
  }

 private:
  /// RADOS takes one comparison of each key at a time.
  void compare(const std::string& key, const Bytes& value, int how) {
    if (comparisons_.contains(key)) finish();
    comparisons_.emplace(key, std::pair(to_bufferlist(value), how));
  }

  librados::ObjectWriteOperation& operation_;
  std::map<std::string, std::pair<bufferlist, int>> comparisons_;
};

class MutationBuilder {
 public:
  explicit MutationBuilder(librados::ObjectWriteOperation& operation) : operation_(operation) {}

  void operator()(const mutation::CreateExclusive&) { operation_.create(true); }
  void operator()(const mutation::Remove&) { operation_.remove(); }
  void operator()(const mutation::SetPayload& mutation) { operation_.write_full(to_bufferlist(mutation.payload)); }
  void operator()(const mutation::SetXattr& mutation) {
    operation_.setxattr(mutation.name.c_str(), to_bufferlist(mutation.value));
  }
  void operator()(const mutation::RemoveXattr& mutation) { operation_.rmxattr(mutation.name.c_str()); }
  void operator()(const mutation::SetKey& mutation) {
    finish_removals();
    values_[mutation.key] = to_bufferlist(mutation.value);
  }
  void operator()(const mutation::RemoveKey& mutation) {
    finish_values();
    removals_.insert(mutation.key);
  }

  void finish() {
    finish_values();
    finish_removals();
  }

 private:
  void finish_values() {
    if (!values_.empty()) operation_.omap_set(values_);
    values_.clear();
  }
  void finish_removals() {
    if (!removals_.empty()) operation_.omap_rm_keys(removals_);
    removals_.clear();
  }

  librados::ObjectWriteOperation& operation_;
  std::map<std::string, bufferlist> values_;
  std::set<std::string> removals_;
};

}  // namespace

librados::bufferlist to_bufferlist(const Bytes& bytes) {
  bufferlist list;
  list.append(bytes.data(), static_cast<unsigned>(bytes.size()));
  return list;
}

void build(const MetaTxn& txn, librados::ObjectWriteOperation& operation) {
  GuardBuilder guards(operation);
  for (const Guard& guard : txn.guards) std::visit(guards, guard);
  guards.finish();
  MutationBuilder mutations(operation);
  for (const Mutation& mutation : txn.mutations) std::visit(mutations, mutation);
  mutations.finish();
}

}  // namespace lccfs::rados
