// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/volume_facts.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "format/object_names.h"
#include "objects/object.h"
#include "objects/super.h"

namespace lccfs::check {

using objects::Object;
namespace xattr = format::xattr;

namespace {

/// nullopt: it is not there.
Result<std::optional<Object>> read_whole(ObjectStore& store, const std::string& name) {
  MetaRead read{.object = name, .payload = true, .xattrs = true, .ranges = {{}}};
  return objects::find_object(objects::reader_of(store), std::move(read), 1);
}

const std::vector<std::pair<std::string, Bytes>>& keys_of(const Object& object) {
  return object.ranges.front().entries;
}

/// One of the volume's own objects.
class ObjectCheck {
 public:
  ObjectCheck(const Object& object, Sink& sink) : object_(object), sink_(sink) {}
  ~ObjectCheck() { sink_.report(std::move(findings_)); }
  ObjectCheck(const ObjectCheck&) = delete;
  ObjectCheck& operator=(const ObjectCheck&) = delete;

  template <class Record>
  std::optional<Record> needed_xattr(const char* name) {
    const auto found = object_.xattrs.find(name);
    if (found != object_.xattrs.end()) return decode<Record>({found->first, found->second});
    findings_.push_back(missing_part(object_.name, name));
    return std::nullopt;
  }
  std::optional<std::uint64_t> needed_number(const char* name,
                                             Result<std::uint64_t> (*decode_number)(std::string_view)) {
    if (!needed_xattr<format::NumberRecord>(name)) return std::nullopt;
    const auto& [part, value] = *object_.xattrs.find(name);
    const auto number = decode_number(value);
    if (number) return *number;
    findings_.push_back(finding_on(Kind::corrupt, object_.name, {part, value}, number.error().context));
    return std::nullopt;
  }
  template <class Record>
  std::optional<Record> decode(const Part& part) {
    return decode_part<Record>(findings_, object_.name, part);
  }
  void refuse(const Part& part) {
    findings_.push_back(finding_on(Kind::unknown_part, object_.name, part, "none of the format's"));
  }
  void refuse_other_xattrs(const std::set<std::string>& known) {
    for (const auto& [name, value] : object_.xattrs) {
      if (!known.contains(name)) refuse({name, value});
    }
    if (object_.payload.empty()) return;
    findings_.push_back(
        {.kind = Kind::corrupt, .object = object_.name, .text = "has a payload", .seen = as_seen(object_.payload)});
  }

 private:
  const Object& object_;
  Sink& sink_;
  std::vector<Finding> findings_;
};

void check_super(const Object& object, Sink& sink, VolumeFacts& facts) {
  ObjectCheck check(object, sink);
  facts.super = check.needed_xattr<format::SuperRecord>(xattr::super);
  facts.fences = check.needed_number(xattr::fences, format::decode_fence_number);
  check.refuse_other_xattrs({xattr::super, xattr::fences});
  for (const auto& [key, value] : keys_of(object)) {
    if (key == format::rename_lock_key) {
      const auto lock = check.decode<format::RenameLockRecord>({key, value, true});
      if (lock) facts.see_number(lock->token.instance.value);
      continue;
    }
    const auto instance = format::parse_instance_key(key);
    if (!instance) {
      check.refuse({key, value, true});
      continue;
    }
    facts.records.insert(*instance);
    facts.see_number(instance->value);
    const auto record = check.decode<format::InstanceRecord>({key, value, true});
    if (record) facts.fence.see(record->fence_number);
  }
}

void check_alloc(const Object& object, Sink& sink, VolumeFacts& facts) {
  ObjectCheck check(object, sink);
  facts.next_number = check.needed_number(xattr::next, format::decode_next_number);
  check.refuse_other_xattrs({xattr::next});
  for (const auto& [key, value] : keys_of(object)) check.refuse({key, value, true});
}

std::vector<format::QueueItem> check_session(const Object& object, Sink& sink) {
  ObjectCheck check(object, sink);
  check.refuse_other_xattrs({});
  std::vector<format::QueueItem> queue;
  for (const auto& [key, value] : keys_of(object)) {
    if (!format::parse_queue_key(key)) {
      check.refuse({key, value, true});
    } else if (const auto item = check.decode<format::QueueItem>({key, value, true})) {
      queue.push_back(*item);
    }
  }
  return queue;
}

Result<std::optional<Object>> read_needed(ObjectStore& store, Sink& sink, const char* name) {
  LCCFS_TRY(auto object, read_whole(store, name));
  if (!object) sink.report({Kind::missing_object, name, "is not there"});
  return object;
}

/// What looks like damage may be a feature that this version does not know.
Result<> expect_known_features(const Object& super) {
  const auto record = super.optional<format::SuperRecord>(xattr::super);
  if (!record && record.error().code == ErrorCode::unsupported) return std::unexpected(record.error());
  return record && *record ? format::check_features(**record, false) : Result<>();
}

}  // namespace

void QueueIndex::add(const format::QueueItem& item) {
  if (item.kind == format::QueueItem::Kind::inode) inodes_.insert(item.ino);
  if (item.kind == format::QueueItem::Kind::directory) directories_.insert(item.ino);
  if (item.kind != format::QueueItem::Kind::range) return;
  Ino first = item.ino, end = item.end;
  auto next = ranges_.upper_bound(end);
  while (next != ranges_.begin() && std::prev(next)->second >= first) {
    --next;
    first = std::min(first, next->first);
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  ranges_.emplace(first, end);
}

bool QueueIndex::leads_to(Ino ino) const { return inodes_.contains(ino) || has_in_a_range(ino); }

bool QueueIndex::has_in_a_range(Ino ino) const {
  const auto next = ranges_.upper_bound(ino);
  return next != ranges_.begin() && ino < std::prev(next)->second;
}

Result<> read_volume_facts(ObjectStore& store, Sink& sink, VolumeFacts& facts) {
  LCCFS_TRY(const auto super, read_needed(store, sink, format::super_object));
  if (super) {
    LCCFS_CHECK(expect_known_features(*super));
    check_super(*super, sink, facts);
  }
  if (facts.super) LCCFS_CHECK(objects::use_data_pool(store, *facts.super));
  LCCFS_TRY(const auto alloc, read_needed(store, sink, format::alloc_object));
  if (alloc) check_alloc(*alloc, sink, facts);
  for (const auto instance : facts.records) {
    LCCFS_TRY(const auto session, read_whole(store, format::session_object(instance)));
    if (!session) continue;  // its record is written first, and removed last
    for (const auto& item : check_session(*session, sink)) {
      facts.queue.add(item);
      if (item.kind == format::QueueItem::Kind::range) facts.see_number(item.end.value - 1);
    }
  }
  return {};
}

Result<> check_stray_session(ObjectStore& store, Sink& sink, InstanceId instance) {
  LCCFS_TRY(const auto session, read_whole(store, format::session_object(instance)));
  if (!session) return {};
  sink.report({Kind::stray_session, session->name, "Super has no record of this instance", instance.value});
  check_session(*session, sink);
  return {};
}

void check_counters(const VolumeFacts& facts, Sink& sink) {
  if (facts.next_number && facts.number.value() >= *facts.next_number) {
    sink.report({Kind::number_not_given, format::alloc_object,
                 "hands out " + std::to_string(*facts.next_number) + " next, and " +
                     std::to_string(facts.number.value()) + " is in use",
                 facts.number.value()});
  }
  if (facts.fences && facts.fence.value() > *facts.fences) {
    sink.report({Kind::fences_behind, format::super_object,
                 "counts " + std::to_string(*facts.fences) + " fences, and there is one of number " +
                     std::to_string(facts.fence.value()),
                 facts.fence.value()});
  }
}

}  // namespace lccfs::check
