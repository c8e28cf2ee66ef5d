// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/reclaim_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {

MetaTxn mark_unnamed_dead(Ino ino, std::uint64_t version) {
  return make(ino, "mark unnamed dead", guard::VersionIs{version}, set_state(format::StateRecord::Kind::dead));
}

MetaTxn trim_links(Ino ino, std::uint64_t version, const std::vector<std::string>& back_pointer_keys,
                   const std::optional<format::AttrRecord>& attr,
                   const std::optional<format::BackPointerRecord>& first) {
  auto txn = make(ino, "trim links", guard::VersionIs{version});
  for (const auto& key : back_pointer_keys) {
    if (key.empty()) {
      add(txn, mutation::RemoveXattr{xattr::parent});
    } else {
      add(txn, mutation::RemoveKey{key});
    }
  }
  if (attr) add(txn, set(xattr::attr, *attr));
  if (first) add(txn, set(xattr::parent, *first));
  return txn;
}

MetaTxn remove_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::optional<std::uint64_t>& nsub) {
  auto txn = make(directory, "remove dead names", guard::VersionIs{version});
  remove_keys(txn, keys);
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn detach_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::vector<Ino>& children, Token token) {
  auto txn = make(directory, "detach dead names", guard::VersionIs{version});
  remove_keys(txn, keys);
  set_nsub(txn, 0);
  for (const Ino child : children) {
    add(txn, mark(format::detached_key(child, token)));
  }
  return txn;
}

MetaTxn forget_removed_data(Ino ino, std::uint64_t version, std::uint64_t map_block, const format::MapBlock& left) {
  auto txn = make(ino, "forget removed data", guard::VersionIs{version});
  auto key = format::map_key(map_block);
  if (left.may_exist.none()) {
    add(txn, mutation::RemoveKey{std::move(key)});
  } else {
    add(txn, mutation::SetKey{std::move(key), encode(left)});
  }
  return txn;
}

MetaTxn remove_dead_inode(Ino ino, std::uint64_t version) {
  return make(ino, "remove dead inode", guard::VersionIs{version}, mutation::Remove{});
}

MetaTxn remove_traces(Ino directory, const std::vector<std::string>& keys) {
  auto txn = make(directory, "remove traces", guard::ObjectExists{});
  remove_keys(txn, keys);
  return txn;
}

}  // namespace lccfs::txn
