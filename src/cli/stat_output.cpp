// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/output.h"
#include "format/layout.h"
#include "format/object_names.h"

namespace lccfs::cli {
namespace {

using Json = nlohmann::ordered_json;
using survey::InodeFacts;

constexpr std::uint64_t sector_bytes = 512;
constexpr std::array type_names{"?",    "regular file", "directory",        "symlink",
                                "fifo", "socket",       "character device", "block device"};

const char* type_name(FileType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < type_names.size() ? type_names[number] : type_names[0];
}

const char* state_name(const objects::Inode& inode) {
  if (inode.dead()) return "dead";
  return inode.sealed() ? "sealed" : "live";
}

std::string with_nanoseconds(TimeSpec time) {
  std::ostringstream fraction;
  fraction << '.' << std::setw(9) << std::setfill('0') << time.nanoseconds;
  return utc_text(time.seconds, fraction.str());
}

std::string token_text(Token token) {
  return std::to_string(token.instance.value) + "." + std::to_string(token.number);
}

std::string mode_text(std::uint32_t mode) {
  std::ostringstream text;
  text << std::oct << std::setw(4) << std::setfill('0') << mode;
  return text.str();
}

struct MapFacts {
  std::uint64_t may_exist = 0, there = 0, partly = 0;
};

MapFacts map_facts(const objects::AllocationMap& map) {
  MapFacts facts;
  for (const auto& [number, block] : map.blocks()) {
    facts.may_exist += block.may_exist.count();
    facts.there += block.believed_there.count();
    facts.partly += block.partly_there.size();
  }
  return facts;
}

std::uint64_t links_of(const objects::Inode& inode) { return inode.is_directory() ? 2 + inode.nsub : inode.attr.nlink; }

std::string name_text(const survey::NameOf& name) {
  if (!name.path.empty()) return printable(name.path);
  return "\"" + printable(name.name) + "\"" + (name.path_not_known.empty() ? ", of no path" : "");
}

std::string path_not_known_text(const survey::NameOf& name) {
  return name.path_not_known.empty() ? "" : "; its path is not known: " + printable(name.path_not_known);
}

class StatText {
 public:
  StatText(const InodeFacts& facts, std::uint64_t object_size_bytes)
      : facts_(facts), inode_(facts.inode), object_size_bytes_(object_size_bytes) {}

  std::string text() {
    line("inode", std::to_string(inode_.ino.value) + ", object " + format::inode_object(inode_.ino));
    line("type", type_name(inode_.attr.type));
    show_state();
    line("mode, owner",
         mode_text(inode_.attr.mode) + ", " + std::to_string(inode_.attr.uid) + ":" + std::to_string(inode_.attr.gid));
    line("links", links_of(inode_));
    show_content();
    line("atime", with_nanoseconds(inode_.atime));
    line("mtime", with_nanoseconds(inode_.mtime));
    line("ctime", with_nanoseconds(inode_.shown_ctime()));
    line("birth", with_nanoseconds(inode_.attr.birth) + ", by step " + token_text(inode_.attr.birth_token));
    show_names();
    for (const auto& attribute : facts_.attributes)
      line("attribute", printable(attribute.name) + ", " + count_text(attribute.size_bytes) + " bytes");
    if (facts_.directory) show_directory(*facts_.directory);
    if (inode_.is_regular()) show_file();
    if (facts_.open_at) show_clients(*facts_.open_at);
    return text_.str();
  }

 private:
  void line(const char* name, const auto& value) { text_ << std::left << std::setw(16) << name << value << "\n"; }

  void show_state() {
    const auto& state = inode_.state;
    if (!inode_.sealed()) return line("state", state_name(inode_));
    line("state", "sealed by step " + token_text(state.token) + ", about to go from " +
                      format::inode_object(state.parent) + ", \"" + printable(state.name) + "\"");
  }
  void show_content() {
    const auto type = inode_.attr.type;
    if (type == FileType::regular)
      line("size", count_text(inode_.size_bytes) + " bytes, as stored; occupies " +
                       size_text(inode_.map.blocks_512(object_size_bytes_, inode_.size_bytes) * sector_bytes));
    if (type == FileType::symlink) line("target", printable(inode_.payload));
    if (type == FileType::character_device || type == FileType::block_device)
      line("device", std::to_string(major(inode_.attr.rdev)) + ":" + std::to_string(minor(inode_.attr.rdev)));
  }
  void show_names() {
    for (const auto& name : facts_.names)
      line("name", name_text(name) + ", in " + format::inode_object(name.directory) + path_not_known_text(name));
    std::string pointers;
    for (const auto& pointer : facts_.pointers)
      add_word(pointers, format::inode_object(pointer.parent) + " by step " + token_text(pointer.token));
    if (!pointers.empty()) line("points back to", pointers);
  }
  void show_directory(const survey::DirectoryFacts& directory) {
    line("entries", count_text(directory.entries) + ", of these " + count_text(inode_.nsub) + " subdirectories");
    if (directory.marked != 0) line("moving away", count_text(directory.marked) + " entries");
    if (directory.detached != 0) line("detached", count_text(directory.detached) + " names to be cleaned up");
    if (directory.decisions != 0) line("decisions", count_text(directory.decisions));
  }
  void show_file() {
    const auto map = map_facts(inode_.map);
    line("data objects", count_text(map.there) + " believed there, " + count_text(map.partly) + " of them in part; " +
                             count_text(map.may_exist) + " may exist" +
                             (map.may_exist == 0 ? "" : ", from " + format::data_object(inode_.ino, first_object())));
    line("write lease", inode_.lease ? "client " + std::to_string(inode_.lease->value) : "none");
    if (!facts_.lock_state) return line("locks", "never used");
    const bool leased = facts_.lock_state->kind == format::LockStateRecord::Kind::leased;
    const auto keeper = std::to_string(facts_.lock_state->token.instance.value);
    line("locks", leased ? "kept by client " + keeper + " in its memory" : "of each client, as stored");
    for (const auto& [instance, locks] : facts_.locks) {
      for (const auto& lock : locks.locks) line("  client " + std::to_string(instance.value), lock_text(lock));
    }
  }
  void show_clients(const std::vector<survey::OpenAt>& clients) {
    for (const auto& one : clients) {
      line(one.answered ? "open at" : "not known", "client " + std::to_string(one.instance.value) + " on " +
                                                       printable(one.host) + ", " + printable(one.mount_id) +
                                                       (one.answered ? "" : " did not answer"));
    }
  }
  void line(const std::string& name, const std::string& value) { line(name.c_str(), value); }

  ObjectIndex first_object() const { return inode_.map.next_mapped({0}).value_or(ObjectIndex{0}); }
  static std::string lock_text(const format::LocksRecord::Lock& lock) {
    const std::string kind = lock.is_exclusive ? "exclusive" : "shared";
    if (lock.is_flock) return kind + " flock";
    return kind + ", bytes " + std::to_string(lock.first) + " to " + std::to_string(lock.last);
  }

  const InodeFacts& facts_;
  const objects::Inode& inode_;
  const std::uint64_t object_size_bytes_;
  std::ostringstream text_;
};

// ---- JSON

Json time_json(TimeSpec time) { return {{"seconds", time.seconds}, {"nanoseconds", time.nanoseconds}}; }

Json names_of_json(const InodeFacts& facts) {
  Json json = Json::array();
  for (const auto& name : facts.names) {
    json.push_back({{"directory", name.directory.value},
                    {"name", printable(name.name)},
                    {"path", name.path.empty() ? Json() : Json(printable(name.path))},
                    {"path_not_known", name.path_not_known.empty() ? Json() : Json(printable(name.path_not_known))}});
  }
  return json;
}

Json pointers_json(const InodeFacts& facts) {
  Json json = Json::array();
  for (const auto& pointer : facts.pointers)
    json.push_back({{"directory", pointer.parent.value}, {"step", token_text(pointer.token)}});
  return json;
}

Json locks_json(const InodeFacts& facts) {
  if (!facts.lock_state) return nullptr;
  Json held = Json::array();
  for (const auto& [instance, locks] : facts.locks) {
    for (const auto& lock : locks.locks) {
      held.push_back({{"client", instance.value},
                      {"kind", lock.is_flock ? "flock" : "range"},
                      {"exclusive", lock.is_exclusive},
                      {"first", lock.first},
                      {"last", lock.last}});
    }
  }
  const bool leased = facts.lock_state->kind == format::LockStateRecord::Kind::leased;
  return {{"kept_by", leased ? Json(facts.lock_state->token.instance.value) : Json()}, {"held", held}};
}

void add_file_json(Json& json, const InodeFacts& facts) {
  const auto map = map_facts(facts.inode.map);
  json["data_objects"] = {{"believed_there", map.there}, {"in_part", map.partly}, {"may_exist", map.may_exist}};
  json["write_lease"] = facts.inode.lease ? Json(facts.inode.lease->value) : Json();
  json["locks"] = locks_json(facts);
}

Json open_json(const std::optional<std::vector<survey::OpenAt>>& clients) {
  if (!clients) return nullptr;
  Json json = Json::array();
  for (const auto& one : *clients) {
    json.push_back({{"client", one.instance.value},
                    {"host", printable(one.host)},
                    {"mount_id", printable(one.mount_id)},
                    {"answered", one.answered}});
  }
  return json;
}

}  // namespace

std::string stat_as_text(const InodeFacts& facts, std::uint64_t object_size_bytes) {
  return StatText(facts, object_size_bytes).text();
}

std::string stat_as_json(const InodeFacts& facts, std::uint64_t object_size_bytes) {
  const auto& inode = facts.inode;
  Json json = {{"inode", inode.ino.value},
               {"object", format::inode_object(inode.ino)},
               {"type", type_name(inode.attr.type)},
               {"state", state_name(inode)},
               {"mode", inode.attr.mode},
               {"uid", inode.attr.uid},
               {"gid", inode.attr.gid},
               {"device", inode.attr.rdev},
               {"links", links_of(inode)},
               {"size_bytes", inode.size_bytes},
               {"occupied_bytes", inode.map.blocks_512(object_size_bytes, inode.size_bytes) * sector_bytes},
               {"atime", time_json(inode.atime)},
               {"mtime", time_json(inode.mtime)},
               {"ctime", time_json(inode.shown_ctime())},
               {"birth", time_json(inode.attr.birth)},
               {"birth_step", token_text(inode.attr.birth_token)},
               {"names", names_of_json(facts)},
               {"points_back", pointers_json(facts)}};
  json["attributes"] = Json::object();
  for (const auto& attribute : facts.attributes) json["attributes"][printable(attribute.name)] = attribute.size_bytes;
  if (inode.attr.type == FileType::symlink) json["target"] = printable(inode.payload);
  if (facts.directory) {
    json["entries"] = facts.directory->entries;
    json["subdirectories"] = inode.nsub;
    json["moving_away"] = facts.directory->marked;
    json["detached"] = facts.directory->detached;
    json["decisions"] = facts.directory->decisions;
  }
  if (inode.is_regular()) add_file_json(json, facts);
  json["open_at"] = open_json(facts.open_at);
  return json_page(json);
}

}  // namespace lccfs::cli
