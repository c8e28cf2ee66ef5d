// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of Super, Alloc and session objects, and the messages between instances.
#include "format/codec.h"
#include "format/features.h"

namespace lccfs::format {

constexpr std::string_view magic = "LCCFSvol";
constexpr std::size_t text_limit_bytes = 255;
constexpr std::size_t identity_limit_bytes = 4096;
constexpr std::size_t boot_id_limit_bytes = 64;
constexpr std::uint8_t version_with_process = 2;  // of an instance's record
constexpr std::uint8_t version_with_others = 2;   // of a question: and with the number of its work
constexpr std::uint8_t version_with_work = 2;     // of an answer

void fields(auto& io, Is<SuperRecord> auto& super) {
  io.begin("super").version();
  io.constant(magic, "not the magic of a volume");
  io(super.version);
  io.know(super.version <= format_version, "the volume has format " + std::to_string(super.version) +
                                               ", this version knows " + std::to_string(format_version) +
                                               ": use a newer one");
  io.require(super.version == format_version, "no such format");
  io(super.compat, super.ro_compat, super.incompat);
  io.raw(super.uuid);
  io.string(super.label, text_limit_bytes);
  io(super.object_size_bytes);
  io.require(std::has_single_bit(super.object_size_bytes) && super.object_size_bytes >= object_size_min_bytes &&
                 super.object_size_bytes <= object_size_max_bytes,
             "object size out of range");
  io.string(super.data_pool, text_limit_bytes);
  io(super.grace_seconds, super.birth);
}
LCCFS_RECORD(SuperRecord)

Result<> check_features(const SuperRecord& super, bool read_only) {
  const auto unknown = [&super](FeatureMask mask) { return super.*mask & ~known_bits(mask); };
  const auto names = [&unknown](FeatureMask mask) { return feature_names(mask, unknown(mask)); };
  if ((super.incompat & being_loaded) != 0) {
    return failure(
        ErrorCode::unsupported,
        "the volume is to be loaded, or a load was cut short: run lccfs load, once more with the same dump; or "
        "remove its objects and make it anew");
  }
  if (unknown(&SuperRecord::incompat) != 0) {
    return failure(ErrorCode::unsupported, "the volume uses features that this version does not know (incompat " +
                                               names(&SuperRecord::incompat) + "): use a newer one");
  }
  if (!read_only && unknown(&SuperRecord::ro_compat) != 0) {
    return failure(ErrorCode::unsupported, "the volume uses features that this version can only read (ro-compat " +
                                               names(&SuperRecord::ro_compat) +
                                               "): mount it with -o ro, or use a newer one");
  }
  return {};
}

void fields(auto& io, Is<NumberRecord> auto& number) {
  io.begin("number").version();
  io(number.value);
}
LCCFS_RECORD(NumberRecord)

static Result<std::uint64_t> decode_number(std::string_view bytes, std::uint64_t first, std::uint64_t end,
                                           const char* otherwise) {
  LCCFS_TRY(const auto number, decode<NumberRecord>(bytes));
  if (number.value >= first && number.value < end) return number.value;
  return failure(ErrorCode::corrupt, "number: " + std::to_string(number.value) + otherwise);
}

Result<std::uint64_t> decode_next_number(std::string_view bytes) {
  return decode_number(bytes, first_number, numbers_end, " is none that may be handed out");
}

Result<std::uint64_t> decode_fence_number(std::string_view bytes) {
  return decode_number(bytes, 0, fences_end, " is more fences than there can be");
}

Error damage_of(const std::string& part, const Error& error) {
  const std::string advice = error.code == ErrorCode::corrupt ? ": the volume is damaged: run lccfs-fsck" : "";
  return {error.code, part + ": " + error.context + advice, error.outcome};
}

Result<SuperRecord> super_in(const std::map<std::string, Bytes>& xattrs) {
  const auto found = xattrs.find(xattr::super);
  Result<SuperRecord> super = failure(ErrorCode::corrupt, "its xattr is missing");
  if (found != xattrs.end()) super = decode<SuperRecord>(found->second);
  if (super) {
    LCCFS_CHECK(check_features(*super, true));
    return super;
  }
  auto damage = damage_of("Super", super.error());
  if (damage.code == ErrorCode::corrupt)
    damage.context += ", which corrects one byte; else put a copy back (lccfs-fsck(8))";
  return std::unexpected(std::move(damage));
}

void fields(auto& io, Is<RenameLockRecord> auto& lock) {
  io.begin("rename lock").version();
  io.enumeration(lock.kind, RenameLockRecord::Kind::held);
  io(lock.token, lock.to);
  io.require(lock.to.value != 0, "no directory");
}
LCCFS_RECORD(RenameLockRecord)

void fields(auto& io, Is<ProcessRecord> auto& process) {
  io.string(process.boot_id, boot_id_limit_bytes);
  io(process.pid_namespace, process.start_ticks);
}

void fields(auto& io, Is<InstanceRecord> auto& record) {
  const auto version =
      io.begin("instance").version(record.process ? version_with_process : record_version, version_with_process);
  io.string(record.host, identity_limit_bytes);
  io(record.pid);
  io.string(record.version, text_limit_bytes);
  io(record.since);
  io.string(record.identity, identity_limit_bytes);
  io.string(record.mount_id, identity_limit_bytes);
  io.enumeration(record.state, InstanceRecord::State::ended);
  io(record.fence_number);
  io.require(record.fence_number < fences_end, "more fences than there can be");
  io.require(record.fence_number == 0 || record.state == InstanceRecord::State::fenced,
             "a fence number, but not fenced");
  if (version == version_with_process) io(io.present(record.process));
}
LCCFS_RECORD(InstanceRecord)

void fields(auto& io, Is<QueueItem> auto& item) {
  io.begin("queue item").version();
  io.enumeration(item.kind, QueueItem::Kind::inode);
  io(item.ino);
  io.require(item.ino.value != 0, "no inode");
  io(item.end);
  io.require((item.kind == QueueItem::Kind::range) == (item.end.value != 0), "an end, but no range");
  io.require(item.end.value == 0 || item.ino < item.end, "an empty range");
  io.require(item.end.value == 0 || item.end.value - item.ino.value <= QueueItem::most_numbers,
             "no client takes so many numbers");
  io(item.time);
}
LCCFS_RECORD(QueueItem)

void fields(auto& io, Is<Question> auto& question) {
  const auto version =
      io.begin("question")
          .version(question.others.empty() && question.work == 0 ? record_version : version_with_others,
                   version_with_others);
  using Kind = Question::Kind;
  io.enumeration(question.kind, Kind::release_directory);
  io(question.ino, question.from_open);
  if (question.kind >= Kind::share_locks && question.kind <= Kind::file_changed) io(question.asker);
  if (version != version_with_others) return;
  io.list(question.others, question_limit - 1, "too many inodes");
  io(question.work);
  io.require(!question.others.empty() || question.work != 0, "version 1 could say it");
}
LCCFS_RECORD(Question)

void fields(auto& io, Is<Answer> auto& answer) {
  const auto version =
      io.begin("answer").version(answer.work == 0 ? record_version : version_with_work, version_with_work);
  io.enumeration(answer.kind, Answer::Kind::busy);
  if (version != version_with_work) return;
  io(answer.work);
  io.require(answer.work != 0, "version 1 could say it");
}
LCCFS_RECORD(Answer)

void fields(auto& io, Is<LivenessPoll> auto& call) {
  io.begin("liveness poll").version();
  io(call.asker);
  io.list(call.inodes, poll_limit, "too many inodes");
}
LCCFS_RECORD(LivenessPoll)

void fields(auto& io, Is<PollReply> auto& reply) {
  io.begin("poll reply").version();
  io(reply.instance, reply.lowest_running);
  io.list(reply.open, poll_limit, "too many inodes");
}
LCCFS_RECORD(PollReply)

}  // namespace lccfs::format
