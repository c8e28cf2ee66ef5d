// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "fuse/subdirectory.h"
#include "options/command_line.h"

namespace lccfs::fuse {
namespace {

struct Switch {
  std::string_view word;
  bool MountOptions::*member;
  bool value;
};

constexpr std::array switches = {
    Switch{"ro", &MountOptions::read_only, true},
    Switch{"rw", &MountOptions::read_only, false},
    Switch{"nosuid", &MountOptions::no_suid, true},
    Switch{"suid", &MountOptions::no_suid, false},
    Switch{"nodev", &MountOptions::no_dev, true},
    Switch{"dev", &MountOptions::no_dev, false},
    Switch{"noexec", &MountOptions::no_exec, true},
    Switch{"exec", &MountOptions::no_exec, false},
    Switch{"nogc", &MountOptions::collect_garbage, false},
    Switch{"gc", &MountOptions::collect_garbage, true},
    Switch{"allow_other", &MountOptions::allow_other, true},
    Switch{"end_when_fenced", &MountOptions::end_when_fenced, true},
};

// Said for mount(8), systemd and people, or true anyway (access times are never kept, permissions always checked).
constexpr std::array<std::string_view, 20> without_effect = {
    "defaults", "auto",       "noauto",   "nofail",     "_netdev",
    "user",     "nouser",     "users",    "owner",      "group",
    "async",    "silent",     "loud",     "noatime",    "nodiratime",
    "relatime", "norelatime", "lazytime", "nolazytime", "default_permissions"};

bool has_no_effect(std::string_view word) {
  return word.empty() || word.starts_with("x-") || word.starts_with("comment=") ||
         std::ranges::find(without_effect, word) != without_effect.end();
}

constexpr std::uint64_t most_idle_leases = 1'000'000;

Result<std::uint64_t> parse_readahead(const std::string& text) {
  constexpr std::uint64_t page_bytes = 4096;
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  LCCFS_TRY(const std::uint64_t size_bytes, options::parse_size(text));
  if (size_bytes % page_bytes == 0 && size_bytes <= most_bytes) return size_bytes;
  return failure(ErrorCode::invalid, text + " is not a multiple of 4K, up to 1G");
}

/// Names that are not stored yet are never forgotten, and take up to some 2 MiB.
Result<std::uint64_t> parse_names_memory(const std::string& text) {
  constexpr std::uint64_t least_bytes = 8 << 20;
  LCCFS_TRY(const std::uint64_t size_bytes, options::parse_size(text));
  if (size_bytes >= least_bytes) return size_bytes;
  return failure(ErrorCode::invalid, text + " is less than 8M");
}

Result<Names> parse_names(const std::string& text) {
  if (text == "behind") return Names::behind;
  if (text == "leased") return Names::leased;
  if (text == "sync") return Names::sync;
  return failure(ErrorCode::invalid, text + " is neither behind nor leased nor sync");
}

Result<std::string> parse_subdirectory(const std::string& text) {
  LCCFS_CHECK(names_in(text));
  return text;
}

template <class Option, class Value>
Result<> set(Option& option, const std::string& name, const Result<Value>& value) {
  if (!value) return failure(ErrorCode::invalid, name + ": " + value.error().context);
  option = static_cast<Option>(*value);
  return {};
}

Result<> said(const std::string& name, const Result<>& stored) {
  return stored ? stored : failure(ErrorCode::invalid, name + ": " + stored.error().context);
}

Result<> add_word(const std::string& word, MountOptions& options) {
  if (const auto* found = std::ranges::find(switches, word, &Switch::word); found != switches.end()) {
    options.*found->member = found->value;
    return {};
  }
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos) {
    const std::string value = word.substr(equals + 1);
    if (name == "entry_timeout") return set(options.entry_ttl, name, options::parse_seconds(value));
    if (name == "attr_timeout") return set(options.attributes_ttl, name, options::parse_seconds(value));
    if (name == "dirty_limit") return set(options.dirty_limit_bytes, name, options::parse_size(value));
    if (name == "idle_leases") return set(options.idle_leases, name, options::parse_number(value, 0, most_idle_leases));
    if (name == "names") return set(options.names, name, parse_names(value));
    if (name == "names_memory") return set(options.names_memory_bytes, name, parse_names_memory(value));
    if (name == "subdir") return set(options.subdirectory, name, parse_subdirectory(value));
    if (name == "metrics_port") return said(name, daemon::metrics_port(options.monitor)(value));
    if (name == "metrics_address") return said(name, daemon::metrics_address(options.monitor)(value));
    if (name == "slow_ms") return said(name, daemon::slow_ms(options.monitor)(value));
    if (name == "readahead") return set(options.readahead_bytes, name, parse_readahead(value));
  }
  if (has_no_effect(word)) return {};
  return failure(ErrorCode::invalid, "unknown mount option '" + word + "'; lccfs-fuse(8) lists them");
}

}  // namespace

Result<> add_mount_options(const std::string& list, MountOptions& options) {
  std::string word;
  for (auto c = list.begin(); c != list.end(); ++c) {
    if (*c == ',') {
      LCCFS_CHECK(add_word(std::exchange(word, ""), options));
    } else {
      const bool is_escaped = *c == '\\' && c + 1 != list.end() && (c[1] == ',' || c[1] == '\\');
      word.push_back(is_escaped ? *++c : *c);
    }
  }
  return word.empty() ? Result<>() : add_word(word, options);
}

}  // namespace lccfs::fuse
