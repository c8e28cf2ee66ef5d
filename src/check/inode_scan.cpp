// SPDX-License-Identifier: LGPL-2.1-or-later
// Inode objects.
#include "check/volume_scan.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

constexpr char user_value_lead = 1;

/// One inode object into the view. Each handler answers false where key or value are none of the format's; what a
/// decoder refuses it reports itself.
class InodeScanner {
 public:
  InodeScanner(VolumeView& view, const WholeObject& object, InodeObject& inode)
      : view_(view), object_(object), inode_(inode) {}

  void scan() {
    for (const auto& [name, value] : object_.xattrs) scan_xattr(name, value);
    for (const char* name : {xattr::attr, xattr::state, xattr::atime, xattr::mtime, xattr::ctime}) need(name);
    inode_.payload_bytes = object_.payload.size();
    if (inode_.attr) scan_typed();
    for (const auto& [key, value] : object_.keys) {
      if (!scan_key(key, value)) corrupt("key " + printable(key) + " or its value is none of the format's");
    }
  }

 private:
  template <class Record>
  std::optional<Record> decode(const std::string& part, const Bytes& bytes) {
    return decode_part<Record>(view_, object_.name, part, bytes);
  }
  void corrupt(std::string text) { view_.report(Finding::Kind::corrupt, object_.name, std::move(text)); }
  void wrong_type(std::string text) { view_.report(Finding::Kind::wrong_type, object_.name, std::move(text)); }
  void need(const char* name) {
    if (!object_.xattrs.contains(name)) corrupt(std::string("xattr ") + name + " is missing");
  }
  void refuse(const char* name) {
    if (object_.xattrs.contains(name)) wrong_type(std::string("has an xattr ") + name);
  }

  void scan_xattr(const std::string& name, const Bytes& value) {
    const auto number = [&]() -> std::optional<std::uint64_t> {
      const auto record = decode<format::NumberRecord>(name, value);
      return record ? std::optional(record->value) : std::nullopt;
    };
    if (name == xattr::attr) {
      inode_.attr = decode<format::AttrRecord>(name, value);
    } else if (name == xattr::state) {
      inode_.state = decode<format::StateRecord>(name, value);
    } else if (name == xattr::parent) {
      if (const auto pointer = decode<format::BackPointerRecord>(name, value)) inode_.parents.insert(pointer->parent);
    } else if (name == xattr::size) {
      inode_.size_bytes = number();
    } else if (name == xattr::nsub) {
      inode_.nsub = number();
    } else if (name == xattr::lease) {
      if (const auto holder = number()) inode_.lease = InstanceId{*holder};
    } else if (name == xattr::fence) {
      number();
    } else if (name == xattr::atime || name == xattr::mtime || name == xattr::ctime || name == xattr::wtime) {
      decode<format::TimeRecord>(name, value);
    } else {
      corrupt("unknown xattr " + printable(name));
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
    if (inode_.is_sealed() && !inode_.is(FileType::directory)) wrong_type("is sealed, and no directory");
    if (inode_.size_bytes > format::file_size_limit_bytes) corrupt("its size is above the limit");
    if (!symlink && inode_.payload_bytes != 0) wrong_type("has a payload, and is no symlink");
    if (symlink && inode_.size_bytes && inode_.payload_bytes != *inode_.size_bytes) {
      corrupt("a symlink of size " + std::to_string(*inode_.size_bytes) + " whose target has " +
              std::to_string(inode_.payload_bytes) + " bytes");
    }
  }

  bool scan_key(const std::string& key, const Bytes& value) {
    const bool marker = value == format::marker_value;
    if (key.starts_with("p/")) {
      const auto pointer = format::parse_back_pointer_key(key);
      if (pointer) inode_.parents.insert(pointer->parent);
      return pointer && marker;
    }
    if (key.starts_with("l/")) return format::parse_step_number_key(key) && format::parse_step_number(value);
    if (key.starts_with("u/")) return scan_user_attribute(key.substr(2), value);
    if (key.starts_with("m/")) return scan_map(key, value);
    if (inode_.attr && !inode_.is(FileType::directory)) return false;
    if (key.starts_with("n/")) return scan_entry(key, value);
    if (key.starts_with("i/")) {
      const auto reverse = format::parse_reverse_key(key);
      if (reverse) inode_.reverse.emplace(reverse->ino, reverse->name);
      return reverse && marker;
    }
    if (key.starts_with("d/")) {
      const auto detached = format::parse_detached_key(key);
      if (detached) inode_.detached.insert(detached->ino);
      return detached && marker;
    }
    if (!format::parse_decision_key(key)) return false;
    inode_.has_decisions = true;
    decode<format::DecisionRecord>(key, value);
    return true;
  }

  bool scan_entry(const std::string& key, const Bytes& value) {
    const auto parsed = format::parse_entry_key(key);
    if (!parsed || parsed->name == "." || parsed->name == "..") return false;
    if (view_.super && parsed->hash != format::name_hash(view_.super->uuid, parsed->name)) return false;
    if (const auto entry = decode<format::EntryRecord>(printable(key), value)) {
      inode_.entries.emplace(parsed->name, *entry);
    }
    return true;
  }

  bool scan_map(const std::string& key, const Bytes& value) {
    const auto block = format::parse_map_key(key);
    if (!block || (inode_.attr && !inode_.is(FileType::regular))) return false;
    if (const auto bits = decode<format::MapBlock>(key, value)) inode_.map.emplace(*block, *bits);
    return true;
  }

  bool scan_user_attribute(const std::string& name, const Bytes& value) {
    if (name.empty() || name.size() > format::attribute_name_limit_bytes) return false;
    if (value.empty() || value[0] != user_value_lead || value.size() > format::attribute_value_limit_bytes + 1) {
      return false;
    }
    auto flags = format::attr_flag::user_attributes;
    if (name == "security.capability") flags |= format::attr_flag::capability;
    if (inode_.attr && (inode_.attr->flags & flags) != flags) {
      view_.report(Finding::Kind::denied_attribute, object_.name, "has " + printable(name) + ", but attr says no");
    }
    return true;
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
