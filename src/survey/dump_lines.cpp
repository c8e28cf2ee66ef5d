// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/dump_lines.h"

#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "format/layout.h"
#include "survey/base64.h"

namespace lccfs::survey {

namespace {

using Json = nlohmann::ordered_json;
using txn::LoadedInode;

constexpr std::string_view checksum_name = ",\"crc32c\":\"";
constexpr std::string_view line_end = "\"}";
constexpr std::size_t checksum_digits = 8;
constexpr std::size_t checksum_bytes = checksum_name.size() + checksum_digits + line_end.size();
constexpr std::array<const char*, 8> type_words{"",     "file",   "directory",        "symlink",
                                                "fifo", "socket", "character device", "block device"};

std::string hex_digits(std::uint32_t number) {
  std::string text(checksum_digits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
    *digit = "0123456789abcdef"[number & 15];
  return text;
}

std::uint32_t checksum_after(std::uint32_t before, std::string_view text) {
  return crc32c(hex_digits(before).append(text));
}

// ---- to JSON

/// As it is where people can read it; base64 otherwise.
Json text_json(const std::string& bytes) {
  if (printable(bytes) == bytes) return bytes;
  return {{"base64", to_base64(bytes)}};
}

Json time_as_json(TimeSpec time) { return Json::array({time.seconds, time.nanoseconds}); }

/// Runs of objects that are alike: [first, count, units], units of those that may exist.
Json map_json(const std::map<std::uint64_t, format::MapBlock>& blocks) {
  objects::AllocationMap map;
  for (const auto& [number, block] : blocks) map.set_block(number, block);
  Json runs = Json::array();
  std::uint64_t end = 0, last_units = 0;
  for (auto index = map.next_mapped({0}); index; index = map.next_mapped({index->value + 1})) {
    const auto units = map.units_there(*index);
    if (!runs.empty() && end == index->value && units == last_units) {
      runs.back()[1] = runs.back()[1].get<std::uint64_t>() + 1;
    } else {
      runs.push_back(Json::array({index->value, 1, units}));
    }
    end = index->value + 1;
    last_units = units;
  }
  return runs;
}

Json as_json(const DumpHeader& header) {
  return {{"lccfs_dump", dump_version},        {"uuid", header.uuid},
          {"label", text_json(header.label)},  {"object_size", header.object_size_bytes},
          {"next_number", header.next_number}, {"time", time_as_json(header.time)}};
}

Json as_json(const LoadedInode& inode) {
  const auto& attr = inode.attr;
  Json json = {{"inode", inode.ino.value},
               {"type", type_words.at(static_cast<std::size_t>(attr.type))},
               {"mode", attr.mode},
               {"uid", attr.uid},
               {"gid", attr.gid},
               {"links", attr.nlink},
               {"device", attr.rdev},
               {"size", inode.size_bytes},
               {"atime", time_as_json(inode.atime)},
               {"mtime", time_as_json(inode.mtime)},
               {"ctime", time_as_json(inode.ctime)},
               {"birth", time_as_json(attr.birth)}};
  json["parents"] = Json::array();
  for (const Ino parent : inode.parents) json["parents"].push_back(parent.value);
  json["target"] = text_json(inode.symlink_target);
  json["xattrs"] = Json::array();
  for (const auto& [name, value] : inode.attributes)
    json["xattrs"].push_back(Json::array({text_json(name), to_base64(value)}));
  json["map"] = map_json(inode.map_blocks);
  return json;
}

Json as_json(const DumpedEntries& entries) {
  Json names = Json::array();
  for (const auto& [name, ino, type] : entries.names)
    names.push_back(Json::array({text_json(name), ino.value, type_words.at(static_cast<std::size_t>(type))}));
  return {{"directory", entries.directory.value}, {"names", names}};
}

Json as_json(const DumpEnd& end) { return {{"end", true}, {"inodes", end.inodes}, {"left_out", end.left_out}}; }

// ---- from JSON

std::unexpected<Error> wrong(const std::string& what) { return failure(ErrorCode::invalid, what); }

Result<std::uint64_t> number_in(const Json& json, const char* what,
                                std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > most)
    return wrong(std::string(what) + " is out of range");
  return json.get<std::uint64_t>();
}

/// Null: it is not there.
const Json& member(const Json& json, const char* name) {
  static const Json nothing;
  const auto found = json.find(name);
  return found == json.end() ? nothing : *found;
}

Result<std::uint64_t> number_of(const Json& json, const char* name,
                                std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  return number_in(member(json, name), name, most);
}

/// One that a volume gives. It may have been given since the dump began.
Result<Ino> ino_in(const Json& json, const char* what) {
  LCCFS_TRY(const auto number, number_in(json, what, format::numbers_end - 2));
  if (number == 0) return wrong(std::string(what) + " is 0");
  return Ino{number};
}

Result<std::string> bytes_in(const Json& json, const char* what) {
  if (json.is_string()) {
    auto text = json.get<std::string>();
    const auto decoded = from_base64(text);
    if (decoded) return *decoded;
  }
  return wrong(std::string(what) + " is no base64");
}

Result<std::string> text_in(const Json& json, const char* what) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object()) return bytes_in(member(json, "base64"), what);
  return wrong(std::string(what) + " is no text");
}

Result<TimeSpec> time_of(const Json& json, const char* name) {
  constexpr std::uint64_t most_nanoseconds = 999'999'999;
  const auto& time = member(json, name);
  if (!time.is_array() || time.size() != 2 || !time[0].is_number_integer())
    return wrong(std::string(name) + " is no time");
  LCCFS_TRY(const auto nanoseconds, number_in(time[1], name, most_nanoseconds));
  return TimeSpec{time[0].get<std::int64_t>(), static_cast<std::uint32_t>(nanoseconds)};
}

Result<const Json*> list_of(const Json& json, const char* name) {
  const auto& list = member(json, name);
  if (!list.is_array()) return wrong(std::string(name) + " is no list");
  return &list;
}

Result<FileType> type_in(const Json& json) {
  for (std::size_t i = 1; i < type_words.size(); ++i) {
    if (json.is_string() && json.get_ref<const std::string&>() == type_words[i]) return static_cast<FileType>(i);
  }
  return wrong("there is no such type of inode");
}

Result<std::map<std::uint64_t, format::MapBlock>> map_of(const Json& json, std::uint32_t object_size_bytes) {
  const auto most_objects = format::object_count(object_size_bytes, format::file_size_limit_bytes);
  // A short line may ask for any amount of memory. No cluster has that many objects. An object takes half a byte in
  // memory; one that is there in part, 16.
  constexpr std::uint64_t most_mapped = std::uint64_t{1} << 32, most_in_part = std::uint64_t{1} << 28;
  LCCFS_TRY(const auto runs, list_of(json, "map"));
  objects::AllocationMap map;
  std::uint64_t end = 0, mapped = 0, in_part = 0;
  for (const auto& run : *runs) {
    if (!run.is_array() || run.size() != 3) return wrong("map has a run that is none");
    LCCFS_TRY(const auto first, number_in(run[0], "map", most_objects));
    LCCFS_TRY(const auto count, number_in(run[1], "map", most_objects - first));
    LCCFS_TRY(const auto units, number_in(run[2], "map"));
    if (count == 0 || first < end) return wrong("map is not in order");
    mapped += count;
    if (units != 0 && units != format::all_units) in_part += count;
    if (mapped > most_mapped || in_part > most_in_part) return wrong("map is too large");
    end = first + count;
    for (auto index = first; index < end; ++index) {
      map.set_may_exist({index});
      if (units != 0) map.set_units_there({index}, units);
    }
  }
  return map.blocks();
}

Result<std::map<std::string, Bytes>> attributes_of(const Json& json) {
  LCCFS_TRY(const auto list, list_of(json, "xattrs"));
  std::map<std::string, Bytes> attributes;
  for (const auto& one : *list) {
    if (!one.is_array() || one.size() != 2) return wrong("xattrs has one that is none");
    LCCFS_TRY(const auto name, text_in(one[0], "xattrs"));
    LCCFS_TRY(auto value, bytes_in(one[1], "xattrs"));
    if (!may_be_attribute(name, value)) return wrong("xattrs has a name or a value that is too long");
    attributes[name] = std::move(value);
  }
  return attributes;
}

Result<LoadedInode> check_parts(LoadedInode inode) {
  const auto type = inode.attr.type;
  const bool is_symlink = type == FileType::symlink;
  if (is_symlink != !inode.symlink_target.empty() || inode.symlink_target.size() > format::symlink_limit_bytes)
    return wrong("target is missing, too long or in the wrong place");
  if (is_symlink && inode.size_bytes != inode.symlink_target.size()) return wrong("size is not the target's");
  if (type != FileType::regular && !inode.map_blocks.empty()) return wrong("a map, and no file");
  if (type != FileType::regular && !is_symlink && inode.size_bytes != 0) return wrong("a size, and no file");
  if (inode.parents.empty() != (inode.ino == root_ino)) return wrong("no parents, or the root with one");
  if (inode.ino == root_ino && type != FileType::directory) return wrong("the root is no directory");
  for (const auto& [name, value] : inode.attributes) inode.attr.flags |= format::flags_of(name);
  inode.attr.birth_token = txn::token_of_load;
  return inode;
}

Result<LoadedInode> inode_of(const Json& json, std::uint32_t object_size_bytes) {
  constexpr std::uint32_t all_permissions = 07777;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  LoadedInode inode;
  auto& attr = inode.attr;
  LCCFS_TRY(inode.ino, ino_in(member(json, "inode"), "inode"));
  LCCFS_TRY(attr.type, type_in(member(json, "type")));
  LCCFS_TRY(const auto mode, number_of(json, "mode", all_permissions));
  LCCFS_TRY(const auto uid, number_of(json, "uid", most));
  LCCFS_TRY(const auto gid, number_of(json, "gid", most));
  LCCFS_TRY(const auto links, number_of(json, "links", most));
  attr.mode = static_cast<std::uint32_t>(mode);
  attr.uid = static_cast<std::uint32_t>(uid);
  attr.gid = static_cast<std::uint32_t>(gid);
  attr.nlink = static_cast<std::uint32_t>(links);
  LCCFS_TRY(attr.rdev, number_of(json, "device"));
  LCCFS_TRY(attr.birth, time_of(json, "birth"));
  LCCFS_TRY(inode.size_bytes, number_of(json, "size", format::file_size_limit_bytes));
  LCCFS_TRY(inode.atime, time_of(json, "atime"));
  LCCFS_TRY(inode.mtime, time_of(json, "mtime"));
  LCCFS_TRY(inode.ctime, time_of(json, "ctime"));
  LCCFS_TRY(inode.symlink_target, text_in(member(json, "target"), "target"));
  LCCFS_TRY(inode.attributes, attributes_of(json));
  LCCFS_TRY(inode.map_blocks, map_of(json, object_size_bytes));
  LCCFS_TRY(const auto parents, list_of(json, "parents"));
  for (const auto& parent : *parents) {
    LCCFS_TRY(const Ino ino, ino_in(parent, "parents"));
    inode.parents.insert(ino);
  }
  return check_parts(std::move(inode));
}

Result<DumpedEntries> entries_of(const Json& json) {
  DumpedEntries entries;
  LCCFS_TRY(entries.directory, ino_in(member(json, "directory"), "directory"));
  LCCFS_TRY(const auto list, list_of(json, "names"));
  for (const auto& one : *list) {
    if (!one.is_array() || one.size() != 3) return wrong("names has one that is none");
    LCCFS_TRY(auto name, text_in(one[0], "names"));
    if (name.empty() || name.size() > format::name_limit_bytes || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return wrong("names has one that cannot be a name");
    }
    LCCFS_TRY(const Ino ino, ino_in(one[1], "names"));
    LCCFS_TRY(const auto type, type_in(one[2]));
    entries.names.push_back({std::move(name), ino, type});
  }
  return entries;
}

Result<DumpHeader> header_of(const Json& json) {
  LCCFS_TRY(const auto version, number_of(json, "lccfs_dump"));
  if (version != dump_version)
    return failure(ErrorCode::unsupported, "a dump of version " + std::to_string(version) + "; this program knows " +
                                               std::to_string(dump_version));
  DumpHeader header;
  LCCFS_TRY(header.uuid, text_in(member(json, "uuid"), "uuid"));
  LCCFS_TRY(header.label, text_in(member(json, "label"), "label"));
  LCCFS_TRY(const auto object_size, number_of(json, "object_size", format::object_size_max_bytes));
  header.object_size_bytes = static_cast<std::uint32_t>(object_size);
  if (!std::has_single_bit(object_size) || object_size < format::object_size_min_bytes)
    return wrong("object_size is none that a volume can have");
  LCCFS_TRY(header.next_number, number_of(json, "next_number", format::numbers_end - 1));
  LCCFS_TRY(header.time, time_of(json, "time"));
  return header;
}

Result<DumpEnd> end_of(const Json& json) {
  DumpEnd end;
  LCCFS_TRY(end.inodes, number_of(json, "inodes"));
  LCCFS_TRY(end.left_out, number_of(json, "left_out"));
  return end;
}

}  // namespace

bool may_be_attribute(std::string_view name, std::string_view value) {
  return !name.empty() && name.size() <= format::attribute_name_limit_bytes && !name.contains('\0') &&
         value.size() <= format::attribute_value_limit_bytes;
}

std::string DumpWriter::line(const DumpLine& line) {
  auto text = json_text(std::visit([](const auto& one) { return as_json(one); }, line));
  text.pop_back();
  checksum_ = checksum_after(checksum_, text);
  return text.append(checksum_name).append(hex_digits(checksum_)).append(line_end) + "\n";
}

Result<DumpLine> DumpReader::read(std::string_view line) {
  if (line.size() < checksum_bytes || !line.starts_with('{')) return wrong("no line of a dump");
  const auto body = line.substr(0, line.size() - checksum_bytes);
  checksum_ = checksum_after(checksum_, body);
  const auto end = std::string(checksum_name).append(hex_digits(checksum_)).append(line_end);
  if (!line.ends_with(end)) return wrong("damaged, or not in its place: the checksum is wrong");
  const auto json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return wrong("no JSON");
  if (json.contains("inode")) return inode_of(json, object_size_bytes_);
  if (json.contains("directory")) return entries_of(json);
  if (json.contains("end")) return end_of(json);
  LCCFS_TRY(auto header, header_of(json));
  object_size_bytes_ = header.object_size_bytes;
  return header;
}

}  // namespace lccfs::survey
