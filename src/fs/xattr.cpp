// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Extended attributes, u/ keys of the inode: get 1 read; list 1 read for each 1,024; none where the inode is this client's
// alone, and has none. Where names are trusted (entry_ttl), an inode that was read lately without any is not read for one.
// Set and remove 1 write each; a set after the first one, 1 read more.
//
//  # | object  | step                                                                                        | then
//  - | Inode.X | [set user attribute] guard the key as the mode asks; the key, ctime. If it sets a flag too  | COMMIT
//    |         | (below): guard `attr` as read, and set the flag in the same step                            |
//  - | Inode.X | [remove user attribute] guard the key is there; remove it, ctime. If it has a flag of its   | COMMIT
//    |         | own: [change attr] instead, guard `attr` as read; remove key and flag                       |
//
// The first key of an inode sets the flag user_attributes, which stays. security.capability and the ACLs
// (posix_acl.cpp) have flags of their own, which are set and removed with their keys.
#include "fs/namespace.h"
#include "txn/attribute_txn.h"

namespace lccfs {

namespace {

// listxattr(2) hands out 64 KiB: beyond that no name could be listed. The rest is room for clients that add names at
// the same time.
constexpr std::size_t names_limit_bytes = 60U << 10;

Error no_attribute(Ino ino, const std::string& name) {
  return {ErrorCode::no_attribute, format::inode_object(ino) + " has no attribute " + name, Outcome::definite};
}

}  // namespace

/// nullopt: it has none of that name.
Result<std::optional<Bytes>> Namespace::read_attribute(Ino ino, const std::string& name) {
  const auto key = format::user_attribute_key(name);
  LCCFS_TRY(const auto view, metadata_.read_existing(ino, {.keys = {key}}));
  files_.attributes_changed(view);  // an open file is not asked about again for a while
  const auto found = view.keys.find(key);
  if (found == view.keys.end()) return std::nullopt;
  return found->second;
}

/// The flags of an inode that no other client may change, or knows of.
std::optional<std::uint32_t> Namespace::own_flags_of(Ino ino) {
  if (const auto held = metadata_.held_directory(ino)) return held->attr.flags;
  if (const auto unshared = metadata_.unshared(ino)) return unshared->attr.flags;
  return std::nullopt;
}

/// As of a read that is younger than that.
bool Namespace::had_no_flags(Ino ino, std::uint32_t flags, std::chrono::nanoseconds trusted_for) {
  look_anew_at(ino);
  const auto held = metadata_.in_memory(ino);
  const bool is_old = held && now() - held->sent >= trusted_for;
  if (!held || (is_old && !metadata_.unshared(ino))) return false;
  return (held->attr.flags & flags) == 0;
}

/// The kernel believes attributes for a while, ACLs among them; where it believes names, too, it may as well believe that
/// an inode has no xattrs: `ls -l` asks each for its label.
bool Namespace::knows_no_xattr(Ino ino, std::string_view name) {
  if (name == format::attribute::capability) return files_.has_capability(ino) == false;
  if (is_acl(name)) return had_no_flags(ino, format::own_flag_of(name), options_.attributes_ttl);
  if (own_flags_of(ino) == 0U) return true;
  const auto names_ttl = options_.entry_ttl.value_or(std::chrono::nanoseconds(0));
  if (names_ttl == std::chrono::nanoseconds(0)) return false;
  return had_no_flags(ino, UINT32_MAX, std::min(names_ttl, options_.attributes_ttl));
}

Result<Bytes> Namespace::get_xattr(Ino ino, const std::string& name) {
  LCCFS_CHECK(check_attribute_name(name));
  if (knows_no_xattr(ino, name)) return std::unexpected(no_attribute(ino, name));
  LCCFS_TRY(const auto value, read_attribute(ino, name));
  if (!value) return std::unexpected(no_attribute(ino, name));
  if (is_acl(name)) LCCFS_CHECK(stored_acl(ino, name, *value));
  return txn::user_attribute_value(*value);
}

Result<std::vector<std::string>> Namespace::list_xattrs(Ino ino) {
  if (own_flags_of(ino) == 0U) return std::vector<std::string>();
  const std::string prefix = format::user_attribute_key("");
  std::vector<std::string> names;
  const auto add = [&](const std::string& key, const Bytes&) -> Result<> {
    names.push_back(key.substr(prefix.size()));
    return {};
  };
  LCCFS_CHECK(or_stale(objects::for_each_key(instance_.reader(), format::inode_object(ino), prefix, add)));
  return names;
}

/// A step on extended attributes, which a directory's lease covers.
Result<StepResult> Namespace::run_on(const Inode& inode, MetaTxn step) {
  if (!inode.is_directory()) return metadata_.run(std::move(step));
  return or_stale(leases_.run_or_make_way(inode.ino, std::move(step)));
}

/// Whether all names could still be listed with this one.
Result<> Namespace::check_room_for(Ino ino, const std::string& name) {
  LCCFS_TRY(const auto others, list_xattrs(ino));
  std::size_t total_bytes = name.size() + 1;
  for (const auto& other : others) {
    if (other == name) return {};
    total_bytes += other.size() + 1;
  }
  if (total_bytes <= names_limit_bytes) return {};
  return failure(ErrorCode::no_space,
                 format::inode_object(ino) + ": the names of its attributes would be too long to list");
}

/// Why a step was refused that changes this attribute; nothing: it may be tried again.
Result<> Namespace::explain_refusal(Ino ino, const std::string& name, XattrMode mode) {
  LCCFS_TRY(const auto value, read_attribute(ino, name));
  if (mode == XattrMode::replace && !value) return std::unexpected(no_attribute(ino, name));
  if (mode != XattrMode::create || !value) return {};
  return failure(ErrorCode::exists, format::inode_object(ino) + " has the attribute " + name);
}

Result<> Namespace::set_xattr(Ino ino, const std::string& name, const Bytes& value, XattrMode mode, SetgidBit setgid,
                              const Caller& caller) {
  LCCFS_CHECK(check_writable(options_));
  LCCFS_CHECK(check_attribute_name(name));
  if (value.size() > format::attribute_value_limit_bytes) {
    return failure(ErrorCode::range_too_small, "attribute value of over 64 KiB");
  }
  LCCFS_CHECK(check_as_told(ino));
  if (is_acl(name)) return set_acl(caller, ino, name, value, setgid);
  return set_attribute(ino, name, value, mode, [](format::AttrRecord&) -> Result<> { return {}; });
}

Result<> Namespace::set_attribute(Ino ino, const std::string& name, const Bytes& value, XattrMode mode,
                                  const EditAttr& edit) {
  const HeldDirectories::NoChangesBehind none(leases_.held, ino);
  bool is_refused = false;
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    LCCFS_TRY(const auto known, metadata_.existing(ino));
    if ((known->attr.flags & format::attr_flag::user_attributes) != 0) LCCFS_CHECK(check_room_for(ino, name));
    Inode view = *known;
    view.attr.flags |= format::flags_of(name);
    if (const auto allowed = edit(view.attr); !allowed) {
      if (std::exchange(is_refused, true)) return allowed;
      LCCFS_CHECK(metadata_.read_existing(ino));  // what memory has may be old
      continue;
    }
    view.ctime = wall_time();
    view.sent = now();
    txn::UserAttribute attribute{ino,          name,      value, mode == XattrMode::create, mode == XattrMode::replace,
                                 std::nullopt, view.ctime};
    if (known->attr.flags != view.attr.flags || format::own_flag_of(name) != 0) {
      attribute.attr = txn::AttrChange{known->attr_raw, view.attr};
      view.attr_raw = encode(view.attr);
    }
    const auto step = run_on(*known, txn::set_user_attribute(attribute));
    if (!step || step->version == 0) metadata_.inodes.drop(ino);  // it may be applied, flags and all
    if (!step) return std::unexpected(step.error());
    if (step->decided == Decided::refused) {
      LCCFS_CHECK(explain_refusal(ino, name, mode));
      continue;
    }
    view.version = step->version;
    if (attribute.attr && step->version == 0) {  // applied, but by an answer that was lost
      LCCFS_TRY(view, read_inode(instance_, ino));
    }
    if (attribute.attr) {
      attr_changed(view);
    } else {
      metadata_.inodes.change(ino, step->version, [&view](Inode& kept) { kept.ctime = view.ctime; });
    }
    return {};
  }
}

Result<> Namespace::remove_with_flag(Ino ino, const std::string& name, const EditAttr& allowed) {
  const auto flag = format::own_flag_of(name);
  const auto drop_flag = [&](format::AttrRecord& attr) -> Result<> {
    if (allowed) LCCFS_CHECK(allowed(attr));
    if ((attr.flags & flag) == 0) return std::unexpected(no_attribute(ino, name));
    attr.flags &= ~flag;
    return {};
  };
  return or_stale(change_attr_of(ino, drop_flag));
}

Result<> Namespace::remove_xattr(Ino ino, const std::string& name, const Caller& caller) {
  LCCFS_CHECK(check_writable(options_));
  LCCFS_CHECK(check_attribute_name(name));
  LCCFS_CHECK(check_as_told(ino));
  if (is_acl(name)) return remove_acl(caller, ino, name);
  if (format::own_flag_of(name) != 0) return remove_with_flag(ino, name);
  LCCFS_TRY(const auto known, metadata_.existing(ino));
  const HeldDirectories::NoChangesBehind none(leases_.held, ino);
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    const auto time = wall_time();
    LCCFS_TRY(const auto step, run_on(*known, txn::remove_user_attribute(ino, name, time)));
    if (step.decided == Decided::refused) {
      LCCFS_CHECK(explain_refusal(ino, name, XattrMode::replace));
      continue;
    }
    metadata_.inodes.change(ino, step.version, [time](Inode& kept) { kept.ctime = time; });
    return {};
  }
}

}  // namespace lccfs
