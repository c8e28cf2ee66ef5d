// SPDX-License-Identifier: LGPL-2.1-or-later
// Names of objects, and of the keys inside them (docs/FORMAT.md). Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "lccfs/types.h"

namespace lccfs::format {

inline constexpr const char* super_object = "Super";
inline constexpr const char* alloc_object = "Alloc";

std::string inode_object(Ino ino);                    // Inode.<ino>
std::string data_object(Ino ino, ObjectIndex index);  // Data.<ino>.<index>
std::string session_object(InstanceId instance);      // Session.<instance>

struct SuperName {};
struct AllocName {};
struct SessionName {
  InstanceId instance;
};
struct InodeName {
  Ino ino;
};
struct DataName {
  Ino ino;
  ObjectIndex index;
};
using ObjectName = std::variant<SuperName, AllocName, SessionName, InodeName, DataName>;
/// nullopt: not a name that this format makes (numbers are decimal without leading zeros, ino > 0).
std::optional<ObjectName> parse_object_name(std::string_view name);

/// The key of names' hashes: the volume's uuid. SipHash-2-4, cut to 63 bits, and never 0, 1 or 2.
using VolumeUuid = std::array<std::uint8_t, 16>;
std::uint64_t name_hash(const VolumeUuid& uuid, std::string_view name);

// Keys of a directory's omap. A name is kept as it is after the last '/': it may hold any byte but '/' and NUL.
std::string entry_key(const VolumeUuid& uuid, std::string_view name);  // n/<16 hex digits>/<name>
std::string reverse_key(Ino ino, std::string_view name);               // i/<ino>/<name>
std::string detached_prefix(Ino ino);                                  // d/<ino>/
std::string detached_key(Ino ino, Token token);                        // d/<ino>/<token>
std::string decision_key(Token token);                                 // x/<token>
// Keys of any inode's omap.
std::string back_pointer_key(Ino parent, Token token);  // p/<parent>/<token>
std::string step_number_key(InstanceId instance);       // l/<instance>
std::string user_attribute_key(std::string_view name);  // u/<name>
std::string map_key(std::uint64_t block);               // m/<16 hex digits>: in order of the blocks
std::string locks_key(InstanceId instance);             // k/<instance>
std::string opener_key(InstanceId instance);            // o/<instance>
// Keys of Super and of session objects.
inline constexpr const char* rename_lock_key = "rename";
std::string instance_key(InstanceId instance);  // s/<instance>
std::string queue_key(std::uint64_t number);    // q/<20 digits>

/// The value of l/: fixed width, so that numbers compare as bytes.
std::string step_number_value(std::uint64_t number);  // 20 digits
std::optional<std::uint64_t> parse_step_number(std::string_view value);

/// The key after which a listing of `n/` continues after every name with this hash.
std::string entry_cursor_key(std::uint64_t hash);

struct EntryKey {
  std::uint64_t hash;
  std::string name;
};
struct ReverseKey {
  Ino ino;
  std::string name;
};
struct DetachedKey {
  Ino ino;
  Token token;
};
struct BackPointerKey {
  Ino parent;
  Token token;
};
std::optional<EntryKey> parse_entry_key(std::string_view key);
std::optional<ReverseKey> parse_reverse_key(std::string_view key);
std::optional<DetachedKey> parse_detached_key(std::string_view key);
std::optional<BackPointerKey> parse_back_pointer_key(std::string_view key);
std::optional<Token> parse_decision_key(std::string_view key);
std::optional<InstanceId> parse_step_number_key(std::string_view key);
std::optional<InstanceId> parse_instance_key(std::string_view key);
std::optional<std::uint64_t> parse_queue_key(std::string_view key);
/// nullopt as well: no file is that large, whatever the volume's object size.
std::optional<std::uint64_t> parse_map_key(std::string_view key);
std::optional<InstanceId> parse_locks_key(std::string_view key);
std::optional<InstanceId> parse_opener_key(std::string_view key);

}  // namespace lccfs::format
