// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of Super, Alloc and session objects, and the messages between instances.
#include <bit>

#include "format/codec.h"
#include "format/records.h"

namespace lccfs::format {
namespace {
constexpr std::string_view magic = "LCCFSvol";
constexpr std::uint64_t known_incompat = 0;
constexpr std::uint64_t known_ro_compat = 0;
constexpr std::size_t text_limit_bytes = 255;
constexpr std::size_t identity_limit_bytes = 4096;
constexpr std::size_t boot_id_limit_bytes = 64;
constexpr std::uint8_t version_with_process = 2;  // of an instance's record

void put_inodes(RecordWriter& out, const std::vector<Ino>& inodes) {
  out.put(static_cast<std::uint32_t>(inodes.size()));
  for (const Ino ino : inodes) out.put(ino.value);
}

std::vector<Ino> inodes_in(RecordReader& in) {
  const auto count = in.get<std::uint32_t>();
  in.require(count <= roll_call_limit, "too many inodes");
  std::vector<Ino> inodes;
  for (std::uint32_t i = 0; i < count && in.good(); ++i) inodes.push_back(Ino{in.get<std::uint64_t>()});
  return inodes;
}

}  // namespace

Bytes encode(const SuperRecord& super) {
  RecordWriter out;
  out.put_raw(magic);
  out.put(super.version);
  out.put(super.compat);
  out.put(super.ro_compat);
  out.put(super.incompat);
  out.put_raw({reinterpret_cast<const char*>(super.uuid.data()), super.uuid.size()});
  out.put_string(super.label);
  out.put(super.object_size_bytes);
  out.put_string(super.data_pool);
  out.put(super.grace_seconds);
  out.put_time(super.birth);
  return out.finish();
}

template <>
Result<SuperRecord> decode(std::string_view bytes) {
  RecordReader in("super", bytes);
  SuperRecord super;
  in.version();
  in.require(in.raw(magic.size()) == magic, "not the magic of a volume");
  super.version = in.get<std::uint32_t>();
  if (in.good() && super.version > format_version) {
    return failure(ErrorCode::unsupported, "super: the volume has format " + std::to_string(super.version) +
                                               ", this version knows " + std::to_string(format_version) +
                                               ": use a newer one");
  }
  in.require(super.version == format_version, "no such format");
  super.compat = in.get<std::uint64_t>();
  super.ro_compat = in.get<std::uint64_t>();
  super.incompat = in.get<std::uint64_t>();
  const auto uuid = in.raw(super.uuid.size());
  std::copy(uuid.begin(), uuid.end(), super.uuid.begin());
  super.label = in.string(text_limit_bytes);
  super.object_size_bytes = in.get<std::uint32_t>();
  in.require(std::has_single_bit(super.object_size_bytes) && super.object_size_bytes >= object_size_min_bytes &&
                 super.object_size_bytes <= object_size_max_bytes,
             "object size out of range");
  super.data_pool = in.string(text_limit_bytes);
  super.grace_seconds = in.get<std::uint32_t>();
  super.birth = in.time();
  LCCFS_CHECK(in.finish());
  return super;
}

Result<> check_features(const SuperRecord& super, bool read_only) {
  if ((super.incompat & ~known_incompat) != 0) {
    return failure(ErrorCode::unsupported, "the volume uses features that this version does not know: use a newer one");
  }
  if (!read_only && (super.ro_compat & ~known_ro_compat) != 0) {
    return failure(ErrorCode::unsupported,
                   "the volume uses features that this version can only read: mount it with -o ro, or use a newer one");
  }
  return {};
}

Bytes encode(const NumberRecord& number) {
  RecordWriter out;
  out.put(number.value);
  return out.finish();
}

template <>
Result<NumberRecord> decode(std::string_view bytes) {
  RecordReader in("number", bytes);
  NumberRecord number;
  in.version();
  number.value = in.get<std::uint64_t>();
  LCCFS_CHECK(in.finish());
  return number;
}

Result<std::uint64_t> decode_next_number(std::string_view bytes) {
  const auto next = decode<NumberRecord>(bytes);
  if (!next) return std::unexpected(next.error());
  if (next->value >= first_number && next->value < numbers_end) return next->value;
  return failure(ErrorCode::corrupt, "number: " + std::to_string(next->value) + " is none that may be handed out");
}

Result<std::uint64_t> decode_fence_number(std::string_view bytes) {
  const auto number = decode<NumberRecord>(bytes);
  if (!number) return std::unexpected(number.error());
  if (number->value < fences_end) return number->value;
  return failure(ErrorCode::corrupt, "number: " + std::to_string(number->value) + " is more fences than there can be");
}

Error damage_of(const std::string& part, const Error& error) {
  const std::string advice = error.code == ErrorCode::corrupt ? ": the volume is damaged: run lccfs-fsck" : "";
  return {error.code, part + ": " + error.context + advice, error.outcome};
}

Result<SuperRecord> super_in(const std::map<std::string, Bytes>& xattrs) {
  const auto found = xattrs.find(xattr::super);
  Result<SuperRecord> super = failure(ErrorCode::corrupt, "its xattr is missing");
  if (found != xattrs.end()) super = decode<SuperRecord>(found->second);
  if (super) return super;
  auto damage = damage_of("Super", super.error());
  if (damage.code == ErrorCode::corrupt)
    damage.context += ", which corrects one byte; else put a copy back (lccfs-fsck(8))";
  return std::unexpected(std::move(damage));
}

Bytes encode(const InstanceRecord& record) {
  RecordWriter out(record.process ? version_with_process : record_version);
  out.put_string(record.host);
  out.put(record.pid);
  out.put_string(record.version);
  out.put_time(record.since);
  out.put_string(record.identity);
  out.put_string(record.mount_id);
  out.put(static_cast<std::uint8_t>(record.state));
  out.put(record.fence_number);
  if (record.process) {
    out.put_string(record.process->boot_id);
    out.put(record.process->pid_namespace);
    out.put(record.process->start_ticks);
  }
  return out.finish();
}

template <>
Result<InstanceRecord> decode(std::string_view bytes) {
  RecordReader in("instance", bytes);
  InstanceRecord record;
  const auto version = in.version(version_with_process);
  record.host = in.string(identity_limit_bytes);
  record.pid = in.get<std::uint64_t>();
  record.version = in.string(text_limit_bytes);
  record.since = in.time();
  record.identity = in.string(identity_limit_bytes);
  record.mount_id = in.string(identity_limit_bytes);
  record.state = in.enumeration(InstanceRecord::State::ended);
  record.fence_number = in.get<std::uint64_t>();
  in.require(record.fence_number < fences_end, "more fences than there can be");
  in.require(record.fence_number == 0 || record.state == InstanceRecord::State::fenced,
             "a fence number, but not fenced");
  if (version == version_with_process) {
    auto& process = record.process.emplace();
    process.boot_id = in.string(boot_id_limit_bytes);
    process.pid_namespace = in.get<std::uint64_t>();
    process.start_ticks = in.get<std::uint64_t>();
  }
  LCCFS_CHECK(in.finish());
  return record;
}

Bytes encode(const QueueItem& item) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(item.kind));
  out.put(item.ino.value);
  out.put(item.end.value);
  out.put_time(item.time);
  return out.finish();
}

template <>
Result<QueueItem> decode(std::string_view bytes) {
  RecordReader in("queue item", bytes);
  QueueItem item;
  in.version();
  item.kind = in.enumeration(QueueItem::Kind::inode);
  item.ino.value = in.get<std::uint64_t>();
  in.require(item.ino.value != 0, "no inode");
  item.end.value = in.get<std::uint64_t>();
  in.require((item.kind == QueueItem::Kind::range) == (item.end.value != 0), "an end, but no range");
  in.require(item.end.value == 0 || item.ino < item.end, "an empty range");
  item.time = in.time();
  LCCFS_CHECK(in.finish());
  return item;
}

Bytes encode(const Question& question) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(question.kind));
  out.put(question.ino.value);
  out.put(static_cast<std::uint8_t>(question.from_open ? 1 : 0));
  return out.finish();
}

template <>
Result<Question> decode(std::string_view bytes) {
  RecordReader in("question", bytes);
  Question question;
  in.version();
  question.kind = in.enumeration(Question::Kind::store_attributes);
  question.ino.value = in.get<std::uint64_t>();
  const auto from_open = in.get<std::uint8_t>();
  in.require(from_open <= 1, "no such value");
  question.from_open = from_open == 1;
  LCCFS_CHECK(in.finish());
  return question;
}

Bytes encode(const Answer& answer) {
  RecordWriter out;
  out.put(static_cast<std::uint8_t>(answer.kind));
  return out.finish();
}

template <>
Result<Answer> decode(std::string_view bytes) {
  RecordReader in("answer", bytes);
  Answer answer;
  in.version();
  answer.kind = in.enumeration(Answer::Kind::busy);
  LCCFS_CHECK(in.finish());
  return answer;
}

Bytes encode(const RollCall& call) {
  RecordWriter out;
  out.put(call.asker.value);
  put_inodes(out, call.inodes);
  return out.finish();
}

template <>
Result<RollCall> decode(std::string_view bytes) {
  RecordReader in("roll call", bytes);
  RollCall call;
  in.version();
  call.asker.value = in.get<std::uint64_t>();
  call.inodes = inodes_in(in);
  LCCFS_CHECK(in.finish());
  return call;
}

Bytes encode(const RollReply& reply) {
  RecordWriter out;
  out.put(reply.instance.value);
  out.put(reply.lowest_running);
  put_inodes(out, reply.open);
  return out.finish();
}

template <>
Result<RollReply> decode(std::string_view bytes) {
  RecordReader in("roll reply", bytes);
  RollReply reply;
  in.version();
  reply.instance.value = in.get<std::uint64_t>();
  reply.lowest_running = in.get<std::uint64_t>();
  reply.open = inodes_in(in);
  LCCFS_CHECK(in.finish());
  return reply;
}

}  // namespace lccfs::format
