// SPDX-License-Identifier: LGPL-2.1-or-later
// Names of objects and keys: what a parser takes is what the format makes.
#include <string>

#include "format/object_names.h"
#include "fuzz/round_trip.h"

namespace lccfs::format {
namespace {

std::string made(const SuperName&) { return super_object; }
std::string made(const AllocName&) { return alloc_object; }
std::string made(const SessionName& name) { return session_object(name.instance); }
std::string made(const InodeName& name) { return inode_object(name.ino); }
std::string made(const DataName& name) { return data_object(name.ino, name.index); }

void parse_all(std::string_view text) {
  const auto same = [text](const std::string& again) { fuzz::require(again == text); };
  if (const auto name = parse_object_name(text)) same(std::visit([](const auto& n) { return made(n); }, *name));
  if (const auto key = parse_entry_key(text)) {
    const auto cursor = entry_cursor_key(key->hash);
    same(cursor.substr(0, cursor.size() - 1) + "/" + key->name);
  }
  if (const auto key = parse_reverse_key(text)) same(reverse_key(key->ino, key->name));
  if (const auto key = parse_detached_key(text)) same(detached_key(key->ino, key->token));
  if (const auto key = parse_back_pointer_key(text)) same(back_pointer_key(key->parent, key->token));
  if (const auto token = parse_decision_key(text)) same(decision_key(*token));
  if (const auto instance = parse_step_number_key(text)) same(step_number_key(*instance));
  if (const auto instance = parse_instance_key(text)) same(instance_key(*instance));
  if (const auto number = parse_queue_key(text)) same(queue_key(*number));
  if (const auto block = parse_map_key(text)) same(map_key(*block));
  if (const auto instance = parse_locks_key(text)) same(locks_key(*instance));
  if (const auto instance = parse_opener_key(text)) same(opener_key(*instance));
  if (const auto number = parse_step_number(text)) same(step_number_value(*number));
}

}  // namespace
}  // namespace lccfs::format

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lccfs::format::parse_all({reinterpret_cast<const char*>(data), size});
  return 0;
}
