// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The poll: all instances with a record, and what they answered to one notify on Super (docs/PROTOCOL.md section 2).
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs {

/// How long an instance has to answer.
inline constexpr std::chrono::seconds answer_timeout{10};

struct Member {
  enum class Standing {
    expired,   ///< fenced or ended
    answered,  ///< lives; what it said is in `lowest_running` and `open`
    silent,    ///< lives as far as its record says, and did not answer
  };
  InstanceId id;
  format::InstanceRecord record;
  Bytes raw;  ///< the record as it was read
  Standing standing = Standing::silent;
  std::uint64_t lowest_running = 0;  ///< its numbers below this one are retired
  std::set<Ino> open;
  bool fenced_now = false;  ///< it was gone, and has been fenced for this poll
  bool is_for_others =
      false;  ///< silent: this instance could not look for it, or may not fence it; another may be able to

  void heard(const format::PollReply& reply);
};

struct PollResult {
  std::vector<Member> members;
  std::uint64_t fences = 0;  ///< Super's counter, as it was read with the records

  bool all_answered() const;  ///< none is silent
  bool is_open(Ino ino) const;
};

/// Super's fence counter, out of its xattrs.
Result<std::uint64_t> fences_in(MetaSnapshot& super);

/// Of a key in Super, and its value. corrupt: it is no record of an instance.
Result<std::pair<InstanceId, format::InstanceRecord>> instance_of(const std::string& key, const Bytes& value);

/// The records alone: all live instances count as silent.
Result<PollResult> read_members(ObjectStore& store);

/// Reads the records, then asks. Fences no instance. Blocks while an instance is silent, for ten seconds at most. An
/// instance that is not on it has begun later than this call, or has no record and is expired.
Result<PollResult> poll_liveness(ObjectStore& store, const format::LivenessPoll& call);

}  // namespace lccfs
