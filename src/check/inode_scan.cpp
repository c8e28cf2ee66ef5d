// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/inode_scan.h"

#include <algorithm>
#include <bitset>
#include <memory>
#include <utility>

#include "check/sink.h"
#include "format/layout.h"
#include "format/object_names.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

constexpr char user_value_lead = 1;
const std::bitset<format::MapBlock::objects> first_bits(~std::uint64_t{0});  // SmallFile::most_objects

class InodeScan {
 public:
  InodeScan(const VolumeFacts& facts, Ino ino, objects::Object head)
      : facts_(facts),
        most_map_blocks_(
            format::most_map_blocks(facts.super ? facts.super->object_size_bytes : format::object_size_min_bytes)),
        ino_(ino),
        head_(std::move(head)) {
    for (const auto& [name, value] : head_.xattrs) scan_xattr({name, value});
    for (const char* name : {xattr::attr, xattr::state, xattr::atime, xattr::mtime, xattr::ctime}) need(name);
    if (result_.summary.type) scan_typed();
  }

  Ino ino() const { return ino_; }
  std::uint64_t version() const { return head_.version; }
  void take_keys(const std::vector<std::pair<std::string, Bytes>>& keys) {
    for (const auto& [key, value] : keys) scan_key({key, value, true});
  }
  /// After the last page.
  ScannedInode finish() {
    if (is(FileType::directory)) judge_subdirectories();
    judge_traces();
    if (is(FileType::regular)) note_small_file();
    return std::move(result_);
  }

 private:
  bool is(FileType type) const { return result_.summary.type == type; }

  // -- words
  template <class Record>
  std::optional<Record> decode(const Part& part) {
    return decode_part<Record>(result_.findings, head_.name, part);
  }
  void corrupt(const Part& part, const std::string& why) {
    result_.findings.push_back(finding_on(Kind::corrupt, head_.name, part, why));
  }
  void corrupt_xattr(const char* name, const std::string& why) {
    const auto found = head_.xattrs.find(name);
    corrupt({found->first, found->second}, why);
  }
  void corrupt_payload(const std::string& why) {
    result_.findings.push_back(
        {.kind = Kind::corrupt, .object = head_.name, .text = why, .seen = as_seen(head_.payload)});
  }
  void unknown(const Part& part) {
    result_.findings.push_back(finding_on(Kind::unknown_part, head_.name, part, "none of the format's here"));
  }
  void see(InstanceId instance) {
    result_.highest_instance = std::max(result_.highest_instance, given_number(instance));
  }
  template <class Record>
  void scan_token(const Part& part) {
    if (const auto record = decode<Record>(part)) see(record->token.instance);
  }
  void need(const char* name) {
    if (!head_.xattrs.contains(name)) result_.findings.push_back(missing_part(head_.name, name));
  }
  void refuse(const char* name) {
    const auto found = head_.xattrs.find(name);
    if (found != head_.xattrs.end()) unknown({found->first, found->second});
  }

  // -- xattrs and payload
  void scan_xattr(const Part& part) {
    const auto number = [&]() -> std::optional<std::uint64_t> {
      const auto record = decode<format::NumberRecord>(part);
      return record ? std::optional(record->value) : std::nullopt;
    };
    auto& summary = result_.summary;
    const std::string& name = part.name;
    if (name == xattr::attr) {
      const auto attr = decode<format::AttrRecord>(part);
      if (!attr) return;
      summary.type = attr->type;
      summary.nlink = attr->nlink;
      summary.birth_token = attr->birth_token;
      flags_ = attr->flags;
      see(attr->birth_token.instance);
    } else if (name == xattr::state) {
      const auto state = decode<format::StateRecord>(part);
      if (!state) return;
      summary.state = state->kind;
      see(state->token.instance);
    } else if (name == xattr::parent) {
      const auto pointer = decode<format::BackPointerRecord>(part);
      if (!pointer) return;
      summary.first_parent = pointer->parent;
      summary.add_pointer(pointer->parent, pointer->token);
      see(pointer->token.instance);
    } else if (name == xattr::size) {
      size_bytes_ = number();
    } else if (name == xattr::nsub) {
      nsub_ = number();
    } else if (name == xattr::lease) {
      return;  // whose record it is depends on the type
    } else if (name == xattr::fence) {
      if (!number()) return;
      const auto fence = format::decode_fence_number(part.value);
      if (!fence) return corrupt(part, fence.error().context);
      result_.highest_fence = *fence;
    } else if (name == xattr::locks) {
      scan_token<format::LockStateRecord>(part);
    } else if (name == xattr::behind) {
      scan_token<format::DirectoryLeaseRecord>(part);
    } else if (name == xattr::taken) {
      scan_token<format::TakenRecord>(part);
    } else if (name == xattr::atime || name == xattr::mtime || name == xattr::ctime || name == xattr::wtime) {
      decode<format::TimeRecord>(part);
    } else {
      unknown(part);
    }
  }

  void scan_typed() {
    const bool regular = is(FileType::regular);
    regular || is(FileType::symlink) ? need(xattr::size) : refuse(xattr::size);
    is(FileType::directory) ? need(xattr::nsub) : refuse(xattr::nsub);
    if (!regular) {
      for (const char* name : {xattr::wtime, xattr::fence, xattr::locks, xattr::taken}) refuse(name);
    }
    scan_lease();
    if (result_.summary.is_sealed() && !is(FileType::directory))
      corrupt_xattr(xattr::state, "sealed, and no directory");
    if (ino_ == root_ino && !is(FileType::directory)) corrupt_xattr(xattr::attr, "the root is no directory");
    if (ino_ == root_ino && (result_.summary.is_dead() || result_.summary.is_sealed()))
      corrupt_xattr(xattr::state, "the root is not live");
    if (size_bytes_ > format::file_size_limit_bytes) corrupt_xattr(xattr::size, "above the limit");
    scan_payload();
  }

  /// Held, or left by an instance that is expired: neither is a finding.
  void scan_lease() {
    const auto found = head_.xattrs.find(xattr::lease);
    if (found == head_.xattrs.end()) return;
    const Part part{found->first, found->second};
    if (is(FileType::directory)) {
      scan_token<format::DirectoryLeaseRecord>(part);
    } else if (is(FileType::regular)) {
      if (const auto holder = decode<format::NumberRecord>(part)) see(InstanceId{holder->value});
    } else {
      unknown(part);
    }
  }

  void scan_payload() {
    if (!is(FileType::symlink)) {
      if (!head_.payload.empty()) corrupt_payload("has a payload, and is no symlink");
    } else if (size_bytes_ && head_.payload.size() != *size_bytes_) {
      corrupt_payload("a symlink of size " + std::to_string(*size_bytes_) + " whose target has " +
                      std::to_string(head_.payload.size()) + " bytes");
    }
  }

  // -- keys
  void scan_key(const Part& part) {
    const std::string& key = part.name;
    const bool may_have_names = !result_.summary.type || is(FileType::directory);
    const bool may_have_map = !result_.summary.type || is(FileType::regular);
    if (key.starts_with("p/")) {
      const auto pointer = format::parse_back_pointer_key(key);
      if (pointer) result_.summary.add_pointer(pointer->parent, pointer->token);
      if (scan_marker(part, pointer.has_value())) see(pointer->token.instance);
    } else if (key.starts_with("l/")) {
      scan_step_number(part);
    } else if (key.starts_with("u/")) {
      scan_user_attribute(part);
    } else if (key.starts_with("m/") && may_have_map) {
      scan_map(part);
    } else if (key.starts_with("k/") && may_have_map) {
      scan_locks(part);
    } else if (key.starts_with("o/") && may_have_map) {
      const auto opener = format::parse_opener_key(key);
      if (scan_marker(part, opener.has_value())) see(*opener);
    } else if (may_have_names) {
      scan_directory_key(part);
    } else {
      unknown(part);
    }
  }

  /// False: reported.
  bool scan_marker(const Part& part, bool known) {
    if (!known) return unknown(part), false;
    if (part.value != format::marker_value) return corrupt(part, "not the byte 01"), false;
    return true;
  }

  void scan_step_number(const Part& part) {
    const auto instance = format::parse_step_number_key(part.name);
    if (!instance) return unknown(part);
    if (!format::parse_step_number(part.value)) return corrupt(part, "no number of 20 digits");
    see(*instance);
  }

  void scan_locks(const Part& part) {
    const auto instance = format::parse_locks_key(part.name);
    if (!instance) return unknown(part);
    if (decode<format::LocksRecord>(part)) see(*instance);
  }

  void scan_directory_key(const Part& part) {
    const std::string& key = part.name;
    if (key.starts_with("n/")) {
      scan_entry(part);
    } else if (key.starts_with("i/")) {
      scan_reverse(part);
    } else if (key.starts_with("d/")) {
      const auto detached = format::parse_detached_key(key);
      result_.has_detached = result_.has_detached || detached;
      if (scan_marker(part, detached.has_value())) see(detached->token.instance);
    } else if (const auto decided = format::parse_decision_key(key)) {
      result_.has_decisions = true;
      if (decode<format::DecisionRecord>(part)) see(decided->instance);
    } else {
      unknown(part);
    }
  }

  static bool can_be_a_name(const std::string& name) { return name != "." && name != ".."; }

  void scan_entry(const Part& part) {
    const auto parsed = format::parse_entry_key(part.name);
    if (!parsed || !can_be_a_name(parsed->name)) return unknown(part);
    if (facts_.super && parsed->hash != format::name_hash(facts_.super->uuid, parsed->name)) {
      return corrupt(part, "not the hash of the name");
    }
    const auto entry = decode<format::EntryRecord>(part);
    if (!entry) return;
    result_.entries += link(ino_, entry->ino, entry->type);
    result_.names += name_link(entry->ino, parsed->hash, entry->mark ? hash_of(part.value) : 0);
    if (entry->type == FileType::directory) ++result_.subdirectories;
    see(entry->token.instance);
    if (entry->mark) see(entry->mark->token.instance);
  }

  void scan_reverse(const Part& part) {
    const auto reverse = format::parse_reverse_key(part.name);
    if (!reverse || !can_be_a_name(reverse->name)) return unknown(part);
    const bool marked = format::marked_entry(part.value, reverse->ino).has_value();
    result_.reverse += name_link(reverse->ino, hash_of(reverse->name), marked ? hash_of(part.value) : 0);
    if (!marked) scan_marker(part, true);
  }

  /// Of a name, or of what stands under it. Without Super no two are compared.
  std::uint64_t hash_of(std::string_view text) const {
    return facts_.super ? format::name_hash(facts_.super->uuid, text) : 0;
  }

  void scan_map(const Part& part) {
    const auto block = format::parse_map_key(part.name);
    if (!block || *block >= most_map_blocks_) return unknown(part);
    const auto bits = decode<format::MapBlock>(part);
    if (bits && *block == 0) first_objects_ = (bits->may_exist & first_bits).to_ullong();
    has_further_objects_ =
        has_further_objects_ || !bits || (*block == 0 ? bits->may_exist & ~first_bits : bits->may_exist).any();
  }

  void scan_user_attribute(const Part& part) {
    const auto name = std::string_view(part.name).substr(2);
    if (name.empty() || name.size() > format::attribute_name_limit_bytes) return unknown(part);
    if (part.value.empty() || part.value[0] != user_value_lead) return corrupt(part, "does not start with the byte 01");
    if (part.value.size() > format::attribute_value_limit_bytes + 1) return corrupt(part, "too long");
    const auto needed = format::flags_of(name);
    if (!result_.summary.type || (flags_ & needed) == needed) return;
    result_.findings.push_back(finding_on(Kind::denied_attribute, head_.name, part, "attr says that there is none"));
  }

  // -- after all keys
  void note_small_file() {
    if (!size_bytes_ || *size_bytes_ > format::file_size_limit_bytes || has_further_objects_) return;
    result_.small_file = SmallFile{.ino = ino_,
                                   .size_bytes = *size_bytes_ & format::file_size_limit_bytes,
                                   .is_leased = head_.xattrs.contains(xattr::lease),
                                   .may_exist = first_objects_};
  }

  /// Those of a dead one are not counted: the collector takes its names page by page.
  void judge_subdirectories() {
    const auto found = result_.subdirectories;
    if (!nsub_ || *nsub_ == found || result_.summary.is_dead()) return;
    result_.findings.push_back({Kind::subdirectories, head_.name,
                                "nsub is " + std::to_string(*nsub_) + ", and there are " + std::to_string(found),
                                found});
  }

  void judge_traces() {
    if ((!result_.has_detached && !result_.has_decisions) || facts_.queue.names_directory(ino_)) return;
    result_.findings.push_back({Kind::lost_trace, head_.name, "has d/ or x/ keys, and no directory item"});
  }

  const VolumeFacts& facts_;
  const std::uint64_t most_map_blocks_;
  const Ino ino_;
  const objects::Object head_;
  std::uint32_t flags_ = 0;
  std::optional<std::uint64_t> size_bytes_, nsub_;
  std::uint64_t first_objects_ = 0;  // bits of the map
  bool has_further_objects_ = false;
  ScannedInode result_;
};

class InodeReader {
 public:
  InodeReader(ReadWindow& window, const VolumeFacts& facts, const OnInode& on_inode)
      : window_(window), facts_(facts), on_inode_(on_inode) {}

  Result<> read(Ino ino) const {
    const KeyRange range{"", "", keys_at_once};
    MetaRead read{.object = format::inode_object(ino), .payload = true, .xattrs = true, .ranges = {range}};
    return window_.query(std::move(read), [reader = *this, ino, range](ReadWindow::Found answer) -> Result<> {
      if (!answer) return {};  // it was listed while a client removed it
      const auto page = std::move(answer->ranges.front());
      return reader.take_page(std::make_unique<InodeScan>(reader.facts_, ino, std::move(*answer)), range, page);
    });
  }

 private:
  static constexpr std::uint32_t keys_at_once = 64;  // values of up to 64 KiB are among them
  static constexpr std::uint32_t short_ones_at_once = 1024;

  /// Of names and blocks of the map there may be millions, with short values: where a page ends among them, the rest of
  /// them is read by themselves, in larger pages.
  static std::optional<KeyRange> range_after(const KeyRange& range, const KeyPage& page) {
    const bool is_last = !page.more || page.entries.empty();
    if (is_last && range.prefix.empty()) return std::nullopt;
    const std::string& last = page.entries.empty() ? range.after : page.entries.back().first;
    const auto prefix = last.substr(0, 2);
    const bool is_short = prefix == "d/" || prefix == "i/" || prefix == "m/" || prefix == "n/";
    if (is_last || !is_short) return KeyRange{"", last, keys_at_once};
    return KeyRange{prefix, last, short_ones_at_once};
  }

  /// All pages are of one version, or the object is read again.
  Result<> take_page(std::unique_ptr<InodeScan> scan, const KeyRange& range, const KeyPage& page) const {
    scan->take_keys(page.entries);
    const auto next_range = range_after(range, page);
    if (!next_range) {
      on_inode_(scan->ino(), scan->finish());
      return {};
    }
    MetaRead read{.object = format::inode_object(scan->ino()), .ranges = {*next_range}};
    auto take = [reader = *this, scan = std::move(scan), range = *next_range](ReadWindow::Found next) mutable {
      if (!next || next->version != scan->version()) return reader.read(scan->ino());
      return reader.take_page(std::move(scan), range, next->ranges.front());
    };
    return window_.query(std::move(read), std::move(take));
  }

  ReadWindow& window_;
  const VolumeFacts& facts_;
  const OnInode& on_inode_;
};

}  // namespace

Result<> scan_inode(ReadWindow& window, const VolumeFacts& facts, Ino ino, const OnInode& on_inode) {
  return InodeReader(window, facts, on_inode).read(ino);
}

}  // namespace lccfs::check
