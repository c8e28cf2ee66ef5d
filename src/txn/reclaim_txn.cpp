// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/reclaim_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
namespace xattr = format::xattr;

namespace {

MetaTxn under_version(Ino ino, const char* step, std::uint64_t version) {
  return {format::inode_object(ino), step, {guard::VersionIs{version}}, {}};
}

}  // namespace

MetaTxn mark_unnamed_dead(Ino ino, std::uint64_t version) {
  MetaTxn txn = under_version(ino, "mark unnamed dead", version);
  format::StateRecord dead;
  dead.kind = format::StateRecord::Kind::dead;
  txn.mutations.emplace_back(mutation::SetXattr{xattr::state, encode(dead)});
  return txn;
}

MetaTxn trim_links(Ino ino, std::uint64_t version, const std::vector<std::string>& back_pointer_keys,
                   const std::optional<format::AttrRecord>& attr) {
  MetaTxn txn = under_version(ino, "trim links", version);
  for (const auto& key : back_pointer_keys) {
    if (key.empty()) {
      txn.mutations.emplace_back(mutation::RemoveXattr{xattr::parent});
    } else {
      txn.mutations.emplace_back(mutation::RemoveKey{key});
    }
  }
  if (attr) txn.mutations.emplace_back(mutation::SetXattr{xattr::attr, encode(*attr)});
  return txn;
}

MetaTxn remove_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::optional<std::uint64_t>& nsub) {
  MetaTxn txn = under_version(directory, "remove dead names", version);
  for (const auto& key : keys) txn.mutations.emplace_back(mutation::RemoveKey{key});
  if (nsub) txn.mutations.emplace_back(mutation::SetXattr{xattr::nsub, encode(format::NumberRecord{*nsub})});
  return txn;
}

MetaTxn detach_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::vector<Ino>& children, Token token) {
  MetaTxn txn = remove_dead_names(directory, version, keys, 0);
  txn.step = "detach dead names";
  for (const Ino child : children) {
    txn.mutations.emplace_back(mutation::SetKey{format::detached_key(child, token), Bytes(format::marker_value)});
  }
  return txn;
}

MetaTxn remove_dead_inode(Ino ino, std::uint64_t version) {
  MetaTxn txn = under_version(ino, "remove dead inode", version);
  txn.mutations.emplace_back(mutation::Remove{});
  return txn;
}

MetaTxn remove_traces(Ino directory, const std::vector<std::string>& keys) {
  MetaTxn txn{format::inode_object(directory), "remove traces", {guard::ObjectExists{}}, {}};
  for (const auto& key : keys) txn.mutations.emplace_back(mutation::RemoveKey{key});
  return txn;
}

}  // namespace lccfs::txn
