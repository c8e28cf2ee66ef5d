// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/presence.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "base/process_stat.h"
#include "format/object_names.h"

namespace lccfs {

namespace {

/// Of the namespace in which start times count from the boot itself (include/linux/proc_ns.h).
constexpr std::uint64_t first_time_namespace = 0xEFFFFFFA;

/// 0: not known.
std::uint64_t inode_of(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

std::optional<format::ProcessRecord> read_own_process() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self", error);
  if (error || self != std::to_string(::getpid())) return std::nullopt;  // /proc is another namespace's
  const auto time_namespace = inode_of("/proc/self/ns/time");            // 0: a kernel without such
  if (time_namespace != 0 && time_namespace != first_time_namespace) return std::nullopt;
  format::ProcessRecord process;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> process.boot_id;
  process.pid_namespace = inode_of("/proc/self/ns/pid");
  const auto stat = read_process_stat("self");
  if (process.boot_id.empty() || process.pid_namespace == 0 || !stat) return std::nullopt;
  process.start_ticks = stat->start_ticks;
  return process;
}

class SystemProcesses final : public Processes {
 public:
  /// Read once by each thread: it never changes, and is wanted for each look at a client.
  std::optional<format::ProcessRecord> own() const override {
    thread_local std::pair<pid_t, std::optional<format::ProcessRecord>> known;  // of another process after a fork
    if (known.first != ::getpid() || !known.second) known = {::getpid(), read_own_process()};
    return known.second;
  }

  bool is_gone(const format::InstanceRecord& record) const override {
    const auto me = own();
    const auto& other = record.process;
    if (!me || !other || me->boot_id != other->boot_id || me->pid_namespace != other->pid_namespace) return false;
    if (record.host != host_name()) return false;  // a machine that was copied while it ran
    if (record.pid == 0 || record.pid > std::numeric_limits<pid_t>::max()) return false;
    if (record.pid == static_cast<std::uint64_t>(::getpid())) return me->start_ticks != other->start_ticks;
    if (::kill(static_cast<pid_t>(record.pid), 0) != 0) return errno == ESRCH;
    const auto stat = read_process_stat(std::to_string(record.pid));
    if (!stat) return false;  // hidden, or just gone: the next look shows
    const bool only_to_be_waited_for = (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
    return stat->start_ticks != other->start_ticks || only_to_be_waited_for;
  }
};

}  // namespace

const Processes& system_processes() {
  static const SystemProcesses processes;
  return processes;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

bool is_process_gone(const ObjectStore& store, const Processes& processes, const format::InstanceRecord& record) {
  return store.may_be_of_this_host(record.identity) && processes.is_gone(record);
}

Result<Presence> presence_of(ObjectStore& store, const Processes& processes, InstanceId id,
                             const format::InstanceRecord& record) {
  if (is_process_gone(store, processes, record)) return Presence::dead;
  for (const std::string& object : {std::string(format::super_object), format::session_object(id)}) {
    LCCFS_TRY(const auto presence, store.presence(object, record.identity));
    if (presence != Presence::absent) return presence;
  }
  return Presence::absent;
}

ObservedSeries::Time ObservedSeries::note(Time began, Time ended) {
  if (ended - began > limits_.longest_observation) {
    break_off();
    return Time::zero();
  }
  if (!begun_ || began - last_ended_ > limits_.longest_gap) first_ended_ = ended;
  begun_ = true;
  last_ended_ = ended;
  return std::max(Time::zero(), began - first_ended_);
}

bool Absences::absent(InstanceId whom, Time began, Time ended) {
  return series_.try_emplace(whom, limits).first->second.note(began, ended) >= gone_after;
}

}  // namespace lccfs
