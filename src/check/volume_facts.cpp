// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/volume_facts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "format/object_names.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

constexpr std::uint32_t keys_at_once = 1024;

struct WholeObject {
  std::string name;
  Bytes payload;
  std::map<std::string, Bytes> xattrs;
  std::map<std::string, Bytes> keys;
};

/// All pages of its keys at one version. nullopt: it is not there.
Result<std::optional<WholeObject>> read_whole(ObjectStore& store, const std::string& name) {
  for (;;) {
    auto first =
        store.query({.object = name, .payload = true, .xattrs = true, .ranges = {{"", "", keys_at_once}}, .keys = {}});
    if (!first && first.error().code == ErrorCode::not_found) return std::nullopt;
    if (!first) return std::unexpected(std::move(first).error());
    WholeObject whole{name, std::move(first->payload), std::move(first->xattrs), {}};
    KeyPage page = std::move(first->ranges.front());
    bool same_version = true;
    for (;;) {
      whole.keys.insert(page.entries.begin(), page.entries.end());
      if (!page.more || page.entries.empty()) break;
      auto next = store.query({.object = name, .ranges = {{"", page.entries.back().first, keys_at_once}}, .keys = {}});
      if (!next && next.error().code != ErrorCode::not_found) return std::unexpected(std::move(next).error());
      same_version = next && next->version == first->version;
      if (!same_version) break;
      page = std::move(next->ranges.front());
    }
    if (same_version) return whole;
  }
}

/// One of the volume's own objects.
class ObjectCheck {
 public:
  ObjectCheck(const WholeObject& object, Sink& sink) : object_(object), sink_(sink) {}
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
  template <class Record>
  std::optional<Record> decode(const Part& part) {
    return decode_part<Record>(findings_, object_.name, part);
  }
  void refuse(const Part& part) {
    findings_.push_back(finding_on(Kind::unknown_part, object_.name, part, "none of the format's"));
  }
  void refuse_value(const Part& part, const Error& error) {
    findings_.push_back(finding_on(Kind::corrupt, object_.name, part, error.context));
  }
  void refuse_other_xattrs(const std::set<std::string>& known) {
    for (const auto& [name, value] : object_.xattrs) {
      if (!known.contains(name)) refuse({name, value});
    }
    if (object_.payload.empty()) return;
    findings_.push_back(
        {.kind = Kind::corrupt, .object = object_.name, .text = "has a payload", .seen = object_.payload});
  }

 private:
  const WholeObject& object_;
  Sink& sink_;
  std::vector<Finding> findings_;
};

void check_super(const WholeObject& object, Sink& sink, VolumeFacts& facts) {
  ObjectCheck check(object, sink);
  facts.super = check.needed_xattr<format::SuperRecord>(xattr::super);
  if (check.needed_xattr<format::NumberRecord>(xattr::fences)) {
    const auto& [name, value] = *object.xattrs.find(xattr::fences);
    const auto fences = format::decode_fence_number(value);
    if (fences) facts.fences = *fences;
    if (!fences) check.refuse_value({name, value}, fences.error());
  }
  check.refuse_other_xattrs({xattr::super, xattr::fences});
  for (const auto& [key, value] : object.keys) {
    const auto instance = format::parse_instance_key(key);
    if (!instance) {
      check.refuse({key, value, true});
      continue;
    }
    facts.records.insert(*instance);
    facts.number.see(instance->value);
    const auto record = check.decode<format::InstanceRecord>({key, value, true});
    if (record) facts.fence.see(record->fence_number);
  }
}

void check_alloc(const WholeObject& object, Sink& sink, VolumeFacts& facts) {
  ObjectCheck check(object, sink);
  if (check.needed_xattr<format::NumberRecord>(xattr::next)) {
    const auto& [name, value] = *object.xattrs.find(xattr::next);
    const auto next = format::decode_next_number(value);
    if (next) facts.next_number = *next;
    if (!next) check.refuse_value({name, value}, next.error());
  }
  check.refuse_other_xattrs({xattr::next});
  for (const auto& [key, value] : object.keys) check.refuse({key, value, true});
}

std::vector<format::QueueItem> check_session(const WholeObject& object, Sink& sink) {
  ObjectCheck check(object, sink);
  check.refuse_other_xattrs({});
  std::vector<format::QueueItem> queue;
  for (const auto& [key, value] : object.keys) {
    if (!format::parse_queue_key(key)) {
      check.refuse({key, value, true});
    } else if (const auto item = check.decode<format::QueueItem>({key, value, true})) {
      queue.push_back(*item);
    }
  }
  return queue;
}

Result<std::optional<WholeObject>> read_needed(ObjectStore& store, Sink& sink, const char* name) {
  LCCFS_TRY(auto object, read_whole(store, name));
  if (!object) sink.report({.kind = Kind::missing_object, .object = name, .text = "is not there"});
  return object;
}

/// What looks like damage may be a feature that this version does not know.
Result<> expect_known_features(const WholeObject& super) {
  const auto found = super.xattrs.find(xattr::super);
  if (found == super.xattrs.end()) return {};
  const auto record = format::decode<format::SuperRecord>(found->second);
  if (record) return format::check_features(*record, false);
  return record.error().code == ErrorCode::unsupported ? Result<>(std::unexpected(record.error())) : Result<>();
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

bool QueueIndex::leads_to(Ino ino) const {
  if (inodes_.contains(ino)) return true;
  const auto behind = ranges_.upper_bound(ino);
  return behind != ranges_.begin() && ino < std::prev(behind)->second;
}

Result<> read_volume_facts(ObjectStore& store, Sink& sink, VolumeFacts& facts) {
  LCCFS_TRY(const auto super, read_needed(store, sink, format::super_object));
  if (super) {
    LCCFS_CHECK(expect_known_features(*super));
    check_super(*super, sink, facts);
  }
  if (facts.super && !facts.super->data_pool.empty()) LCCFS_CHECK(store.use_data_pool(facts.super->data_pool));
  LCCFS_TRY(const auto alloc, read_needed(store, sink, format::alloc_object));
  if (alloc) check_alloc(*alloc, sink, facts);
  for (const auto instance : facts.records) {
    LCCFS_TRY(const auto session, read_whole(store, format::session_object(instance)));
    if (!session) continue;  // its record is written first, and removed last
    for (const auto& item : check_session(*session, sink)) {
      facts.queue.add(item);
      if (item.kind == format::QueueItem::Kind::range) facts.number.see(item.end.value - 1);
    }
  }
  return {};
}

Result<> check_stray_session(ObjectStore& store, Sink& sink, InstanceId instance) {
  LCCFS_TRY(const auto session, read_whole(store, format::session_object(instance)));
  if (!session) return {};
  sink.report({.kind = Kind::stray_session,
               .object = session->name,
               .text = "Super has no record of this instance",
               .number = instance.value});
  check_session(*session, sink);
  return {};
}

void check_counters(const VolumeFacts& facts, Sink& sink) {
  if (facts.next_number && facts.number.value() >= *facts.next_number) {
    sink.report({.kind = Kind::number_not_given,
                 .object = format::alloc_object,
                 .text = "hands out " + std::to_string(*facts.next_number) + " next, and " +
                         std::to_string(facts.number.value()) + " is in use",
                 .number = facts.number.value()});
  }
  if (facts.fences && facts.fence.value() > *facts.fences) {
    sink.report({.kind = Kind::fences_behind,
                 .object = format::super_object,
                 .text = "counts " + std::to_string(*facts.fences) + " fences, and there is one of number " +
                         std::to_string(facts.fence.value()),
                 .number = facts.fence.value()});
  }
}

}  // namespace lccfs::check
