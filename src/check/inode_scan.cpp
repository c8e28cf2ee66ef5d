// SPDX-License-Identifier: LGPL-2.1-or-later
// Inode objects.
#include <algorithm>

#include "check/volume_scan.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

using Kind = Finding::Kind;

constexpr char user_value_lead = 1;

/// One inode object into the view.
class InodeScanner {
 public:
  InodeScanner(VolumeView& view, const WholeObject& object, InodeObject& inode)
      : view_(view), object_(object), inode_(inode) {}

  void scan() {
    for (const auto& [name, value] : object_.xattrs) scan_xattr({name, value});
    for (const char* name : {xattr::attr, xattr::state, xattr::atime, xattr::mtime, xattr::ctime}) need(name);
    inode_.payload_bytes = object_.payload.size();
    if (inode_.attr) scan_typed();
    for (const auto& [key, value] : object_.keys) scan_key({key, value, true});
  }

 private:
  template <class Record>
  std::optional<Record> decode(const Part& part) {
    return decode_part<Record>(view_, object_.name, part);
  }
  void corrupt(const Part& part, const std::string& why) { report_part(view_, Kind::corrupt, object_.name, part, why); }
  void unknown(const Part& part) {
    report_part(view_, Kind::unknown_part, object_.name, part, "none of the format's here");
  }
  void corrupt_xattr(const char* name, const std::string& why) {
    const auto found = object_.xattrs.find(name);
    corrupt({found->first, found->second}, why);
  }
  void corrupt_payload(std::string why) {
    view_.report({.kind = Kind::corrupt, .object = object_.name, .text = std::move(why), .seen = object_.payload});
  }
  void need(const char* name) {
    if (object_.xattrs.contains(name)) return;
    view_.report({.kind = Kind::missing_part,
                  .object = object_.name,
                  .text = std::string("xattr ") + name + " is missing",
                  .part = name});
  }
  void refuse(const char* name) {
    const auto found = object_.xattrs.find(name);
    if (found != object_.xattrs.end()) unknown({found->first, found->second});
  }

  void scan_xattr(const Part& part) {
    const auto number = [&]() -> std::optional<std::uint64_t> {
      const auto record = decode<format::NumberRecord>(part);
      return record ? std::optional(record->value) : std::nullopt;
    };
    const std::string& name = part.name;
    if (name == xattr::attr) {
      inode_.attr = decode<format::AttrRecord>(part);
    } else if (name == xattr::state) {
      inode_.state = decode<format::StateRecord>(part);
    } else if (name == xattr::parent) {
      if (const auto pointer = decode<format::BackPointerRecord>(part)) inode_.parents.insert(pointer->parent);
    } else if (name == xattr::size) {
      inode_.size_bytes = number();
    } else if (name == xattr::nsub) {
      inode_.nsub = number();
    } else if (name == xattr::lease) {
      if (const auto holder = number()) inode_.lease = InstanceId{*holder};
    } else if (name == xattr::fence) {
      view_.highest_fence = std::max(view_.highest_fence, number().value_or(0));
    } else if (name == xattr::atime || name == xattr::mtime || name == xattr::ctime || name == xattr::wtime) {
      decode<format::TimeRecord>(part);
    } else {
      unknown(part);
    }
  }

  void scan_typed() {
    const bool regular = inode_.is(FileType::regular);
    const bool symlink = inode_.is(FileType::symlink);
    if (regular || symlink) {
      need(xattr::size);
    } else {
      refuse(xattr::size);
    }
    inode_.is(FileType::directory) ? need(xattr::nsub) : refuse(xattr::nsub);
    if (!regular) {
      for (const char* name : {xattr::wtime, xattr::lease, xattr::fence}) refuse(name);
    }
    if (inode_.is_sealed() && !inode_.is(FileType::directory)) corrupt_xattr(xattr::state, "sealed, and no directory");
    if (inode_.size_bytes > format::file_size_limit_bytes) corrupt_xattr(xattr::size, "above the limit");
    if (!symlink && inode_.payload_bytes != 0) corrupt_payload("has a payload, and is no symlink");
    if (symlink && inode_.size_bytes && inode_.payload_bytes != *inode_.size_bytes) {
      corrupt_payload("a symlink of size " + std::to_string(*inode_.size_bytes) + " whose target has " +
                      std::to_string(inode_.payload_bytes) + " bytes");
    }
  }

  void scan_key(const Part& part) {
    const std::string& key = part.name;
    const bool may_have_names = !inode_.attr || inode_.is(FileType::directory);
    const bool may_have_map = !inode_.attr || inode_.is(FileType::regular);
    if (key.starts_with("p/")) {
      const auto pointer = format::parse_back_pointer_key(key);
      if (pointer) inode_.parents.insert(pointer->parent);
      scan_marker(part, pointer.has_value());
    } else if (key.starts_with("l/")) {
      if (!format::parse_step_number_key(key)) return unknown(part);
      if (!format::parse_step_number(part.value)) corrupt(part, "no number of 20 digits");
    } else if (key.starts_with("u/")) {
      scan_user_attribute(part);
    } else if (key.starts_with("m/") && may_have_map) {
      scan_map(part);
    } else if (may_have_names) {
      scan_directory_key(part);
    } else {
      unknown(part);
    }
  }

  void scan_marker(const Part& part, bool known) {
    if (!known) return unknown(part);
    if (part.value != format::marker_value) corrupt(part, "not the byte 01");
  }

  void scan_directory_key(const Part& part) {
    const std::string& key = part.name;
    if (key.starts_with("n/")) {
      scan_entry(part);
    } else if (key.starts_with("i/")) {
      const auto reverse = format::parse_reverse_key(key);
      if (reverse) inode_.reverse.emplace(reverse->ino, reverse->name);
      scan_marker(part, reverse.has_value());
    } else if (key.starts_with("d/")) {
      const auto detached = format::parse_detached_key(key);
      if (detached) inode_.detached.insert(detached->ino);
      scan_marker(part, detached.has_value());
    } else if (format::parse_decision_key(key)) {
      inode_.has_decisions = true;
      decode<format::DecisionRecord>(part);
    } else {
      unknown(part);
    }
  }

  void scan_entry(const Part& part) {
    const auto parsed = format::parse_entry_key(part.name);
    if (!parsed || parsed->name == "." || parsed->name == "..") return unknown(part);
    if (view_.super && parsed->hash != format::name_hash(view_.super->uuid, parsed->name)) {
      return corrupt(part, "not the hash of the name");
    }
    if (const auto entry = decode<format::EntryRecord>(part)) inode_.entries.emplace(parsed->name, *entry);
  }

  void scan_map(const Part& part) {
    const auto block = format::parse_map_key(part.name);
    if (!block) return unknown(part);
    if (const auto bits = decode<format::MapBlock>(part)) inode_.map.emplace(*block, *bits);
  }

  void scan_user_attribute(const Part& part) {
    const auto name = std::string_view(part.name).substr(2);
    if (name.empty() || name.size() > format::attribute_name_limit_bytes) return unknown(part);
    if (part.value.empty() || part.value[0] != user_value_lead) return corrupt(part, "does not start with the byte 01");
    if (part.value.size() > format::attribute_value_limit_bytes + 1) return corrupt(part, "too long");
    auto flags = format::attr_flag::user_attributes;
    if (name == "security.capability") flags |= format::attr_flag::capability;
    if (!inode_.attr || (inode_.attr->flags & flags) == flags) return;
    report_part(view_, Kind::denied_attribute, object_.name, part, "attr says that there is none");
  }

  VolumeView& view_;
  const WholeObject& object_;
  InodeObject& inode_;
};

}  // namespace

void scan_inode(VolumeView& view, Ino ino, const WholeObject& object) {
  InodeScanner(view, object, view.inodes[ino]).scan();
}

}  // namespace lccfs::check
