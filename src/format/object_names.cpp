// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/object_names.h"

#include <charconv>
#include <tuple>

#include "format/layout.h"
#include "format/records.h"
#include "format/siphash.h"

namespace lccfs::format {
namespace {

constexpr std::uint64_t smallest_hash = 3;  // 0: the start; 1 and 2: "." and ".."

// What names are made of. `put` writes one, `take` reads it off the front of a text, and refuses what `put` never
// writes.

/// A number of that many digits.
template <unsigned base, std::size_t width>
struct Padded {
  std::uint64_t value = 0;
  operator std::uint64_t() const { return value; }
};
using Hash = Padded<16, 16>;
using Digits = Padded<10, 20>;

template <unsigned base, std::size_t width>
void put(std::string& text, Padded<base, width> number) {
  std::string digits(width, '0');
  for (std::size_t i = width; i > 0 && number.value != 0; --i, number.value /= base) {
    digits[i - 1] = "0123456789abcdef"[number.value % base];
  }
  text += digits;
}
void put(std::string& text, std::string_view name) { text += name; }
void put(std::string& text, Ino ino) { text += std::to_string(ino.value); }
void put(std::string& text, InstanceId instance) { text += std::to_string(instance.value); }
void put(std::string& text, ObjectIndex index) { text += std::to_string(index.value); }
void put(std::string& text, Token token) {
  text += std::to_string(token.instance.value) + "." + std::to_string(token.number);
}

bool take(std::string_view& text, std::uint64_t& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}
/// Without leading zeros.
bool take_decimal(std::string_view& text, std::uint64_t& number) {
  const bool leading_zero = text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
  return !leading_zero && take(text, number);
}
template <unsigned base, std::size_t width>
bool take(std::string_view& text, Padded<base, width>& number) {
  const auto before = text;
  if (!take(text, number.value, base)) return false;
  std::string made;
  put(made, number);
  return before.substr(0, before.size() - text.size()) == made;
}
bool take(std::string_view& text, std::string& name) {
  name = std::exchange(text, {});
  return !name.empty() && name.size() <= name_limit_bytes && name.find_first_of({"/\0", 2}) == std::string::npos;
}
bool take(std::string_view& text, Ino& ino) { return take_decimal(text, ino.value) && ino.value != 0; }
bool take(std::string_view& text, InstanceId& instance) {
  return take_decimal(text, instance.value) && instance.value != 0;
}
bool take(std::string_view& text, ObjectIndex& index) { return take_decimal(text, index.value); }
bool take(std::string_view& text, Token& token) {
  if (!take_decimal(text, token.instance.value) || !text.starts_with('.')) return false;
  text.remove_prefix(1);
  return take_decimal(text, token.number);
}

/// How a name is made of its fields, and what these are when it is read back.
template <class Parsed, class... Fields>
struct Shape {
  const char* pattern;  // each '*' is a field

  std::string make(const auto&... values) const {
    std::string text;
    const char* at = pattern;
    const auto put_next = [&](const auto& value) {
      for (; *at != '*'; ++at) text += *at;
      put(text, value);
      ++at;
    };
    (put_next(values), ...);
    return text;
  }
  std::optional<Parsed> parse(std::string_view text) const {
    const char* at = pattern;
    const auto take_next = [&](auto& value) {
      for (; *at != '*'; ++at) {
        if (!text.starts_with(*at)) return false;
        text.remove_prefix(1);
      }
      ++at;
      return take(text, value);
    };
    return std::apply(
        [&](auto... values) -> std::optional<Parsed> {
          if (!(take_next(values) && ...) || !text.empty()) return std::nullopt;
          return Parsed{std::move(values)...};
        },
        std::tuple<Fields...>());
  }
};

constexpr Shape<InodeName, Ino> inode_shape{"Inode.*"};
constexpr Shape<DataName, Ino, ObjectIndex> data_shape{"Data.*.*"};
constexpr Shape<SessionName, InstanceId> session_shape{"Session.*"};
constexpr Shape<EntryKey, Hash, std::string> entry_shape{"n/*/*"};
constexpr Shape<ReverseKey, Ino, std::string> reverse_shape{"i/*/*"};
constexpr Shape<DetachedKey, Ino, Token> detached_shape{"d/*/*"};
constexpr Shape<Token, Token> decision_shape{"x/*"};
constexpr Shape<BackPointerKey, Ino, Token> back_pointer_shape{"p/*/*"};
constexpr Shape<InstanceId, InstanceId> step_number_shape{"l/*"};
constexpr Shape<std::string, std::string> user_attribute_shape{"u/*"};
constexpr Shape<std::uint64_t, Hash> map_shape{"m/*"};
constexpr Shape<InstanceId, InstanceId> locks_shape{"k/*"};
constexpr Shape<InstanceId, InstanceId> opener_shape{"o/*"};
constexpr Shape<InstanceId, InstanceId> instance_shape{"s/*"};
constexpr Shape<std::uint64_t, Digits> queue_shape{"q/*"};
constexpr Shape<std::uint64_t, Digits> step_number_value_shape{"*"};

}  // namespace

std::string inode_object(Ino ino) { return inode_shape.make(ino); }
std::string data_object(Ino ino, ObjectIndex index) { return data_shape.make(ino, index); }
std::string session_object(InstanceId instance) { return session_shape.make(instance); }

std::optional<ObjectName> parse_object_name(std::string_view name) {
  if (name == super_object) return SuperName{};
  if (name == alloc_object) return AllocName{};
  if (const auto session = session_shape.parse(name)) return session;
  if (const auto inode = inode_shape.parse(name)) return inode;
  return data_shape.parse(name);
}

std::uint64_t name_hash(const VolumeUuid& uuid, std::string_view name) {
  const std::uint64_t hash = siphash(uuid, name) >> 1;  // 63 bits: the kernel refuses larger directory cookies
  return hash < smallest_hash ? smallest_hash : hash;
}

std::string entry_key(const VolumeUuid& uuid, std::string_view name) {
  return entry_shape.make(Hash{name_hash(uuid, name)}, name);
}
std::string reverse_key(Ino ino, std::string_view name) { return reverse_shape.make(ino, name); }
std::string detached_key(Ino ino, Token token) { return detached_shape.make(ino, token); }
std::string detached_prefix(Ino ino) {
  const auto key = detached_key(ino, {});
  return key.substr(0, key.rfind('/') + 1);
}
std::string decision_key(Token token) { return decision_shape.make(token); }
std::string back_pointer_key(Ino parent, Token token) { return back_pointer_shape.make(parent, token); }
std::string step_number_key(InstanceId instance) { return step_number_shape.make(instance); }
std::string user_attribute_key(std::string_view name) { return user_attribute_shape.make(name); }
std::string map_key(std::uint64_t block) { return map_shape.make(Hash{block}); }
std::string locks_key(InstanceId instance) { return locks_shape.make(instance); }
std::string opener_key(InstanceId instance) { return opener_shape.make(instance); }
std::string instance_key(InstanceId instance) { return instance_shape.make(instance); }
std::string queue_key(std::uint64_t number) { return queue_shape.make(Digits{number}); }
std::string step_number_value(std::uint64_t number) { return step_number_value_shape.make(Digits{number}); }
// '0' is the byte after '/'.
std::string entry_cursor_key(std::uint64_t hash) {
  std::string key = "n/";
  put(key, Hash{hash});
  return key + "0";
}

std::optional<EntryKey> parse_entry_key(std::string_view key) {
  auto parsed = entry_shape.parse(key);
  if (parsed && (parsed->hash < smallest_hash || parsed->hash >> 63 != 0)) return std::nullopt;
  return parsed;
}
std::optional<ReverseKey> parse_reverse_key(std::string_view key) { return reverse_shape.parse(key); }
std::optional<DetachedKey> parse_detached_key(std::string_view key) { return detached_shape.parse(key); }
std::optional<BackPointerKey> parse_back_pointer_key(std::string_view key) { return back_pointer_shape.parse(key); }
std::optional<Token> parse_decision_key(std::string_view key) { return decision_shape.parse(key); }
std::optional<InstanceId> parse_step_number_key(std::string_view key) { return step_number_shape.parse(key); }
std::optional<InstanceId> parse_instance_key(std::string_view key) { return instance_shape.parse(key); }
std::optional<InstanceId> parse_locks_key(std::string_view key) { return locks_shape.parse(key); }
std::optional<InstanceId> parse_opener_key(std::string_view key) { return opener_shape.parse(key); }
std::optional<std::uint64_t> parse_queue_key(std::string_view key) { return queue_shape.parse(key); }
// From there on the numbers of objects, and the offsets of their bytes, would wrap.
std::optional<std::uint64_t> parse_map_key(std::string_view key) {
  const auto block = map_shape.parse(key);
  return block && *block < most_map_blocks(object_size_min_bytes) ? block : std::nullopt;
}
std::optional<std::uint64_t> parse_step_number(std::string_view value) { return step_number_value_shape.parse(value); }

}  // namespace lccfs::format
