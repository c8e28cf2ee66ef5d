// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/object_names.h"

#include <charconv>

#include "format/records.h"
#include "format/siphash.h"

namespace lccfs::format {
namespace {

constexpr std::size_t hash_digits = 16;
constexpr std::size_t number_digits = 20;
constexpr std::uint64_t smallest_hash = 3;  // 0: the start; 1 and 2: "." and ".."

std::string padded(std::uint64_t value, int base, std::size_t width) {
  std::string digits(width, '0');
  for (std::size_t i = width; i > 0 && value != 0; --i) {
    digits[i - 1] = "0123456789abcdef"[value % static_cast<unsigned>(base)];
    value /= static_cast<unsigned>(base);
  }
  return digits;
}

/// Takes what names are made of off the front of a text; one failure fails all that follows.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Parser& literal(std::string_view expected) {
    if (rest_.starts_with(expected)) {
      rest_.remove_prefix(expected.size());
    } else {
      good_ = false;
    }
    return *this;
  }
  /// Decimal, without leading zeros.
  Parser& number(std::uint64_t& value) {
    if (rest_.size() > 1 && rest_[0] == '0' && rest_[1] >= '0' && rest_[1] <= '9') good_ = false;
    return digits(value, 10);
  }
  Parser& fixed_number(std::uint64_t& value, int base, std::size_t width) {
    const auto before = rest_;
    digits(value, base);
    const auto used = before.size() - rest_.size();
    if (used != width || before.substr(0, used) != padded(value, base, width)) good_ = false;
    return *this;
  }
  Parser& ino(Ino& ino) {
    number(ino.value);
    if (ino.value == 0) good_ = false;
    return *this;
  }
  Parser& instance(InstanceId& instance) {
    number(instance.value);
    if (instance.value == 0) good_ = false;
    return *this;
  }
  Parser& token(Token& token) { return number(token.instance.value).literal(".").number(token.number); }
  Parser& name(std::string& name) {
    name = std::string(rest_);
    if (name.empty() || name.size() > name_limit_bytes) good_ = false;
    if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos) good_ = false;
    rest_ = {};
    return *this;
  }
  bool done() const { return good_ && rest_.empty(); }

 private:
  Parser& digits(std::uint64_t& value, int base) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc{}) {
      good_ = false;
    } else {
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    }
    return *this;
  }

  std::string_view rest_;
  bool good_ = true;
};

std::string text(Token token) { return std::to_string(token.instance.value) + "." + std::to_string(token.number); }

}  // namespace

std::string inode_object(Ino ino) { return "Inode." + std::to_string(ino.value); }

std::string data_object(Ino ino, ObjectIndex index) {
  return "Data." + std::to_string(ino.value) + "." + std::to_string(index.value);
}

std::string session_object(InstanceId instance) { return "Session." + std::to_string(instance.value); }

std::optional<ObjectName> parse_object_name(std::string_view name) {
  if (name == super_object) return SuperName{};
  if (name == alloc_object) return AllocName{};
  InstanceId instance;
  Ino ino;
  ObjectIndex index;
  if (Parser(name).literal("Session.").instance(instance).done()) return SessionName{instance};
  if (Parser(name).literal("Inode.").ino(ino).done()) return InodeName{ino};
  if (Parser(name).literal("Data.").ino(ino).literal(".").number(index.value).done()) return DataName{ino, index};
  return std::nullopt;
}

std::uint64_t name_hash(const VolumeUuid& uuid, std::string_view name) {
  const std::uint64_t hash = siphash(uuid, name) >> 1;  // 63 bits: the kernel refuses larger directory cookies
  return hash < smallest_hash ? smallest_hash : hash;
}

std::string entry_key(const VolumeUuid& uuid, std::string_view name) {
  return "n/" + padded(name_hash(uuid, name), 16, hash_digits) + "/" + std::string(name);
}

std::string reverse_key(Ino ino, std::string_view name) {
  return "i/" + std::to_string(ino.value) + "/" + std::string(name);
}

std::string detached_key(Ino ino, Token token) { return "d/" + std::to_string(ino.value) + "/" + text(token); }

std::string decision_key(Token token) { return "x/" + text(token); }

std::string back_pointer_key(Ino parent, Token token) {
  return "p/" + std::to_string(parent.value) + "/" + text(token);
}

std::string step_number_key(InstanceId instance) { return "l/" + std::to_string(instance.value); }

std::string user_attribute_key(std::string_view name) { return "u/" + std::string(name); }

std::string map_key(std::uint64_t block) { return "m/" + padded(block, 16, hash_digits); }

std::string instance_key(InstanceId instance) { return "s/" + std::to_string(instance.value); }

std::string queue_key(std::uint64_t number) { return "q/" + padded(number, 10, number_digits); }

std::string step_number_value(std::uint64_t number) { return padded(number, 10, number_digits); }

std::optional<std::uint64_t> parse_step_number(std::string_view value) {
  std::uint64_t number = 0;
  if (!Parser(value).fixed_number(number, 10, number_digits).done()) return std::nullopt;
  return number;
}

std::string entry_cursor_key(std::uint64_t hash) {
  return "n/" + padded(hash, 16, hash_digits) + "0";  // '0' is the byte behind '/'
}

std::optional<EntryKey> parse_entry_key(std::string_view key) {
  EntryKey parsed{};
  const bool good =
      Parser(key).literal("n/").fixed_number(parsed.hash, 16, hash_digits).literal("/").name(parsed.name).done();
  if (!good || parsed.hash < smallest_hash || parsed.hash >> 63 != 0) return std::nullopt;
  return parsed;
}

std::optional<ReverseKey> parse_reverse_key(std::string_view key) {
  ReverseKey parsed{};
  if (!Parser(key).literal("i/").ino(parsed.ino).literal("/").name(parsed.name).done()) return std::nullopt;
  return parsed;
}

std::optional<DetachedKey> parse_detached_key(std::string_view key) {
  DetachedKey parsed{};
  if (!Parser(key).literal("d/").ino(parsed.ino).literal("/").token(parsed.token).done()) return std::nullopt;
  return parsed;
}

std::optional<BackPointerKey> parse_back_pointer_key(std::string_view key) {
  BackPointerKey parsed{};
  if (!Parser(key).literal("p/").ino(parsed.parent).literal("/").token(parsed.token).done()) {
    return std::nullopt;
  }
  return parsed;
}

std::optional<Token> parse_decision_key(std::string_view key) {
  Token token;
  if (!Parser(key).literal("x/").token(token).done()) return std::nullopt;
  return token;
}

std::optional<InstanceId> parse_step_number_key(std::string_view key) {
  InstanceId instance;
  if (!Parser(key).literal("l/").instance(instance).done()) return std::nullopt;
  return instance;
}

std::optional<InstanceId> parse_instance_key(std::string_view key) {
  InstanceId instance;
  if (!Parser(key).literal("s/").instance(instance).done()) return std::nullopt;
  return instance;
}

std::optional<std::uint64_t> parse_queue_key(std::string_view key) {
  std::uint64_t number = 0;
  if (!Parser(key).literal("q/").fixed_number(number, 10, number_digits).done()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_map_key(std::string_view key) {
  std::uint64_t block = 0;
  if (!Parser(key).literal("m/").fixed_number(block, 16, hash_digits).done()) return std::nullopt;
  return block;
}

}  // namespace lccfs::format
