// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/text.h"
#include "cli/doctor_checks.h"

namespace lccfs::cli {

namespace {

using Json = nlohmann::json;

/// Null where there is none: a cluster of another version may answer otherwise.
template <class Value>
Value value_of(const Json& json, const char* name, Value otherwise) {
  if (!json.is_object()) return otherwise;
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<Value, std::string>) {
    return found->is_string() ? found->template get<std::string>() : otherwise;
  } else {
    return found->is_number() ? found->template get<Value>() : otherwise;
  }
}

struct Pool {
  std::string name, flags, autoscale;
  std::int64_t type = 0, size = 0, min_size = 0, pg_num = 0;
  bool is_ours = false;  ///< the application is enabled
  bool has_flag(const char* flag) const { return ("," + flags + ",").contains("," + std::string(flag) + ","); }
  bool is_erasure_coded() const { return type == 3; }
};

Pool pool_of(const Json& json) {
  Pool pool;
  pool.name = value_of<std::string>(json, "pool_name", "");
  pool.flags = value_of<std::string>(json, "flags_names", "");
  pool.autoscale = value_of<std::string>(json, "pg_autoscale_mode", "unknown");
  pool.type = value_of<std::int64_t>(json, "type", 0);
  pool.size = value_of<std::int64_t>(json, "size", 0);
  pool.min_size = value_of<std::int64_t>(json, "min_size", 0);
  pool.pg_num = value_of<std::int64_t>(json, "pg_num", 0);
  const auto applications = json.find("application_metadata");
  pool.is_ours = applications != json.end() && applications->is_object() && applications->contains("lccfs");
  return pool;
}

void check_copies(Diagnosis& diagnosis, const Pool& pool, const std::string& name) {
  const auto seen = "size " + std::to_string(pool.size) + ", min_size " + std::to_string(pool.min_size);
  const auto set = "run: ceph osd pool set " + pool.name + " ";
  if (pool.is_erasure_coded()) return diagnosis.ok(name + ", copies", "erasure-coded, " + seen);
  if (pool.size < 2) return diagnosis.warn(name + ", copies", seen + ": a lost disk is lost data", set + "size 3");
  if (pool.min_size < 2)
    return diagnosis.warn(name + ", copies", seen + ": it is written with one copy left", set + "min_size 2");
  if (pool.size < 3) return diagnosis.warn(name + ", copies", seen, set + "size 3");
  diagnosis.ok(name + ", copies", seen);
}

void check_kind(Diagnosis& diagnosis, const Pool& pool, const std::string& name, bool has_metadata) {
  if (!pool.is_erasure_coded()) return diagnosis.ok(name + ", kind", "replicated");
  if (has_metadata)
    return diagnosis.fail(name + ", kind", "erasure-coded: it cannot hold metadata",
                          "make the volume in a replicated pool, with lccfs mkfs --data-pool " + pool.name);
  if (pool.has_flag("ec_overwrites")) return diagnosis.ok(name + ", kind", "erasure-coded, with overwrites");
  diagnosis.fail(name + ", kind", "erasure-coded, without overwrites",
                 "run: ceph osd pool set " + pool.name + " allow_ec_overwrites true");
}

void check_room(Diagnosis& diagnosis, const Pool& pool, const std::string& name) {
  for (const char* flag : {"full", "full_quota"}) {
    if (pool.has_flag(flag))
      return diagnosis.fail(name + ", room", std::string("the pool is ") + flag + ": writes fail",
                            "add OSDs, raise the quota or remove files (docs/guide/operations.md)");
  }
  for (const char* flag : {"nearfull", "backfillfull"}) {
    if (pool.has_flag(flag))
      return diagnosis.warn(name + ", room", std::string("the pool is ") + flag, "add OSDs soon");
  }
  diagnosis.ok(name + ", room", "not near full");
}

void check_pool(Diagnosis& diagnosis, const Pool& pool, bool has_metadata) {
  const auto name = "pool " + printable(pool.name);
  check_kind(diagnosis, pool, name, has_metadata);
  check_copies(diagnosis, pool, name);
  check_room(diagnosis, pool, name);
  const auto groups = std::to_string(pool.pg_num) + " placement groups, autoscale " + pool.autoscale;
  if (pool.autoscale == "on") {
    diagnosis.ok(name + ", placement", groups);
  } else {
    diagnosis.warn(
        name + ", placement", groups,
        "see that the number fits the OSDs, or run: ceph osd pool set " + pool.name + " pg_autoscale_mode on");
  }
  if (pool.is_ours) return diagnosis.ok(name + ", application", "lccfs");
  diagnosis.warn(name + ", application", "lccfs is not enabled",
                 "run: ceph osd pool application enable " + pool.name + " lccfs");
}

/// "2026-11-24T02:16:04.123456+0000"
std::optional<double> seconds_of(const std::string& timestamp) {
  std::tm parts = {};
  const char* rest = strptime(timestamp.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  int hours = 0, minutes = 0, used = 0;
  char sign = '+';
  if (*rest == '.' && std::sscanf(rest, "%lf%n", &fraction, &used) == 1) rest += used;
  if (std::sscanf(rest, "%c%2d%2d", &sign, &hours, &minutes) != 3) return std::nullopt;
  const int offset = (hours * 60 + minutes) * 60 * (sign == '-' ? -1 : 1);
  return static_cast<double>(timegm(&parts) - offset) + fraction;
}

}  // namespace

void check_pools(Diagnosis& diagnosis, const std::string& osd_dump, const std::string& pool,
                 const std::string& data_pool) {
  const auto json = Json::parse(osd_dump, nullptr, false);
  const auto pools = json.is_object() ? json.value("pools", Json::array()) : Json::array();
  bool found = false;
  for (const auto& one : pools) {
    const auto described = pool_of(one);
    const bool has_metadata = described.name == pool || std::to_string(value_of<std::int64_t>(one, "pool", -1)) == pool;
    if (!has_metadata && (data_pool.empty() || described.name != data_pool)) continue;
    check_pool(diagnosis, described, has_metadata);
    found = true;
  }
  if (!found) diagnosis.warn("pools", "the monitors' answer does not tell of them", "see: ceph osd pool ls detail");
}

void check_clock(Diagnosis& diagnosis, const std::string& report, double asked_seconds, double answered_seconds) {
  constexpr double much_seconds = 300, some_seconds = 2;
  std::smatch found;
  std::optional<double> theirs;
  if (std::regex_search(report, found, std::regex(R"re("timestamp":\s*"([^"]{1,40})")re")))
    theirs = seconds_of(found[1]);
  if (!theirs) return diagnosis.warn("clock", "the monitors do not say what time it is", "compare with: ceph report");
  // It was looked at between the two.
  const double difference = *theirs < asked_seconds      ? asked_seconds - *theirs
                            : *theirs > answered_seconds ? *theirs - answered_seconds
                                                         : 0;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f s apart from the monitors'", difference);
  const auto* advice = "let chrony or ntp keep this host's time: times of files come from it";
  if (difference > much_seconds) return diagnosis.fail("clock", text.data(), advice);
  if (difference > some_seconds) return diagnosis.warn("clock", text.data(), advice);
  diagnosis.ok("clock", text.data());
}

}  // namespace lccfs::cli
