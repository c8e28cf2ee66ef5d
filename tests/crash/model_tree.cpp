// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/model_tree.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "format/records.h"

namespace lccfs::crash {

using Kind = Call::Kind;

namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string text_of_answer(const Result<std::string>& answer) {
  return answer ? *answer : describe(answer.error().code);
}

/// "ok", if it went well.
Result<std::string> ok_after(const Result<>& result) {
  if (!result) return std::unexpected(result.error());
  return "ok";
}

FileType type_made(Kind kind) {
  if (kind == Kind::mkdir) return FileType::directory;
  if (kind == Kind::mkfifo) return FileType::fifo;
  return kind == Kind::symlink ? FileType::symlink : FileType::regular;
}

bool is_rename(Kind kind) { return kind == Kind::rename || kind == Kind::rename_no_replace || kind == Kind::exchange; }

/// A directory that no call moves.
bool stays(const std::string& directory) { return directory.empty() || directory == "/d"; }

/// Of a rename at most one of the two directories may move: whether it is the new one.
bool enters_what_moves(const Call& call) {
  return is_rename(call.kind) && stays(directory_of(call.path)) && !stays(directory_of(call.other));
}

}  // namespace

Result<ModelTree::Id> ModelTree::find(const std::string& path) const {
  if (path.empty()) return root;
  LCCFS_TRY(const Id parent, find(directory_of(path)));
  const Node& directory = nodes_.at(parent);
  if (!directory.is_directory()) return failure(ErrorCode::not_directory, path);
  const auto found = directory.names.find(name_of(path));
  if (found == directory.names.end()) return failure(ErrorCode::not_found, path);
  return found->second;
}

std::string ModelTree::perform(const Call& call) { return text_of_answer(act(call)); }

Result<std::string> ModelTree::act(const Call& call) {
  if (call.kind == Kind::link) {
    LCCFS_TRY(const Id id, find(call.path));
    return ok_after(link(id, std::nullopt, call));
  }
  const auto found = find(changes_an_inode(call.kind) ? call.path : directory_of(call.path));
  if (!found) return std::unexpected(found.error());
  return changes_an_inode(call.kind) ? change(nodes_.at(*found), call) : ok_after(act_in(*found, call));
}

std::optional<ModelTree::Id> ModelTree::id_of(const std::string& path) const {
  const auto found = find(path);
  return found ? std::optional(*found) : std::nullopt;
}

std::vector<ModelTree::Id> ModelTree::files() const {
  std::set<Id> ids;
  for (const auto& [id, node] : nodes_) {
    for (const auto& [name, child] : node.names) {
      if (nodes_.at(child).type == FileType::regular) ids.insert(child);
    }
  }
  return {ids.begin(), ids.end()};
}

std::optional<ModelTree::Id> ModelTree::look_up(const Call& call, const std::vector<Id>& found) const {
  const bool is_link = call.kind == Kind::link;
  if (found.size() == (is_link ? 2 : 1)) return std::nullopt;
  const bool wants_inode = (changes_an_inode(call.kind) || is_link) && found.empty();
  const auto directory = directory_of(is_link || enters_what_moves(call) ? call.other : call.path);
  if (!wants_inode && stays(directory)) return std::nullopt;
  return id_of(wants_inode ? call.path : directory);
}

std::string ModelTree::perform_on(const std::vector<Id>& all_found, const Call& call, const std::string& answered) {
  const Id found = all_found.front();
  if (call.kind == Kind::link) {
    const bool was_too_late = names_of(found) == 0 && answered == describe(ErrorCode::not_found);
    const auto parent = all_found.size() > 1 ? std::optional(all_found[1]) : std::nullopt;
    return was_too_late ? answered : text_of_answer(ok_after(link(found, parent, call)));
  }
  if (nodes_.at(found).is_directory() && nodes_.at(found).is_removed) return perform(call);  // the kernel looks again
  if (enters_what_moves(call)) {
    const auto from = find(directory_of(call.path));
    return text_of_answer(
        ok_after(from ? rename(nodes_.at(*from), found, call) : Result<>(std::unexpected(from.error()))));
  }
  return text_of_answer(changes_an_inode(call.kind) ? change(nodes_.at(found), call) : ok_after(act_in(found, call)));
}

Result<> ModelTree::act_in(Id id, const Call& call) {
  Node& directory = nodes_.at(id);
  if (!directory.is_directory()) return failure(ErrorCode::not_directory, call.path);
  if (directory.is_removed) return failure(ErrorCode::not_found, call.path);
  switch (call.kind) {
    case Kind::unlink:
    case Kind::rmdir:
      return remove(directory, call);
    case Kind::rename:
    case Kind::rename_no_replace:
    case Kind::exchange: {
      LCCFS_TRY(const Id to, find(directory_of(call.other)));
      return rename(directory, to, call);
    }
    default:
      return make(directory, call);
  }
}

Result<> ModelTree::make(Node& directory, const Call& call) {
  if (directory.names.contains(name_of(call.path))) return failure(ErrorCode::exists, call.path);
  Node made;
  made.type = type_made(call.kind);
  made.mode = call.kind == Kind::symlink ? 0777U : call.mode;
  if (call.kind == Kind::symlink) made.target = call.other;
  const Id id = nodes_.rbegin()->first + 1;
  directory.names[name_of(call.path)] = id;
  nodes_[id] = std::move(made);
  return {};
}

Result<> ModelTree::link(Id id, std::optional<Id> parent, const Call& call) {
  if (!parent || nodes_.at(*parent).is_removed) {  // the kernel looks again
    LCCFS_TRY(parent, find(directory_of(call.other)));
  }
  Node& directory = nodes_.at(*parent);
  if (!directory.is_directory()) return failure(ErrorCode::not_directory, call.other);
  if (directory.names.contains(name_of(call.other))) return failure(ErrorCode::exists, call.other);
  if (nodes_.at(id).is_directory()) return failure(ErrorCode::not_permitted, call.path);
  directory.names[name_of(call.other)] = id;
  nodes_.at(id).is_removed = false;
  return {};
}

unsigned ModelTree::names_of(Id id) const {
  unsigned names = 0;
  for (const auto& [parent, node] : nodes_) {
    for (const auto& [name, child] : node.names) names += child == id ? 1 : 0;
  }
  return names;
}

Result<> ModelTree::remove(Node& directory, const Call& call) {
  const auto found = directory.names.find(name_of(call.path));
  if (found == directory.names.end()) return failure(ErrorCode::not_found, call.path);
  Node& node = nodes_.at(found->second);
  if (call.kind == Kind::unlink && node.is_directory()) return failure(ErrorCode::is_directory, call.path);
  if (call.kind == Kind::rmdir && !node.is_directory()) return failure(ErrorCode::not_directory, call.path);
  if (!node.names.empty()) return failure(ErrorCode::not_empty, call.path);
  const Id id = found->second;
  directory.names.erase(found);
  node.is_removed = names_of(id) == 0;
  return {};
}

bool ModelTree::is_inside(Id id, Id above) const {
  if (id == above) return true;
  return std::ranges::any_of(nodes_.at(above).names, [&](const auto& entry) { return is_inside(id, entry.second); });
}

Result<> ModelTree::rename(Node& directory, Id to_directory, const Call& call) {
  Node& other_directory = nodes_.at(to_directory);
  if (!other_directory.is_directory()) return failure(ErrorCode::not_directory, call.other);
  auto &names = directory.names, &other_names = other_directory.names;
  const auto from = names.find(name_of(call.path));
  const auto to = other_names.find(name_of(call.other));
  if (from == names.end()) return failure(ErrorCode::not_found, call.path);
  if (to == other_names.end()) {
    if (call.kind == Kind::exchange) return failure(ErrorCode::not_found, call.other);
    if (is_inside(to_directory, from->second)) return failure(ErrorCode::invalid, call.other);
    other_names[name_of(call.other)] = from->second;
    names.erase(name_of(call.path));
    return {};
  }
  if (call.kind == Kind::rename_no_replace) return failure(ErrorCode::exists, call.other);
  if (from->second == to->second) return {};
  if (call.kind == Kind::exchange) {
    std::swap(from->second, to->second);
    return {};
  }
  const Node& moved = nodes_.at(from->second);
  Node& replaced = nodes_.at(to->second);
  if (moved.is_directory() && !replaced.is_directory()) return failure(ErrorCode::not_directory, call.other);
  if (!moved.is_directory() && replaced.is_directory()) return failure(ErrorCode::is_directory, call.other);
  if (is_inside(to_directory, from->second)) return failure(ErrorCode::invalid, call.other);
  if (!replaced.names.empty()) return failure(ErrorCode::not_empty, call.other);
  const Id replaced_id = to->second;
  to->second = from->second;
  names.erase(from);
  replaced.is_removed = names_of(replaced_id) == 0;
  return {};
}

Result<std::string> ModelTree::change(Node& node, const Call& call) const {
  const auto acl = node.xattrs.find(format::attribute::access_acl);
  if (call.kind == Kind::chmod) {
    node.mode = call.mode;
    if (acl != node.xattrs.end()) acl->second = encode(with_permissions_of(*decode_acl(acl->second), call.mode));
  } else if (call.kind == Kind::set_acl) {
    if (node.type == FileType::symlink) return failure(ErrorCode::unsupported, call.path);
    node.mode = mode_with(acl_with(call.mode), node.mode);
    node.xattrs[format::attribute::access_acl] = encode(acl_with(call.mode));
  } else if (call.kind == Kind::set_xattr) {
    node.xattrs[call.other] = Bytes(1, call.letter);
  } else if (call.kind == Kind::remove_xattr) {
    if (node.xattrs.erase(call.other) == 0) return failure(ErrorCode::no_attribute, call.path);
  } else {
    return change_bytes(node, call);
  }
  return "ok";
}

/// The bytes that it takes from its source.
Result<std::string> ModelTree::copied_by(const Node& target, const Call& call) const {
  LCCFS_TRY(const Id id, find(call.other));
  const std::string& source = nodes_.at(id).bytes;
  auto bytes = call.from_bytes < source.size() ? source.substr(call.from_bytes, call.size_bytes) : std::string();
  const bool overlaps =
      call.from_bytes < call.offset_bytes + bytes.size() && call.offset_bytes < call.from_bytes + bytes.size();
  if (&nodes_.at(id) == &target && overlaps) return failure(ErrorCode::invalid, call.path);
  return bytes;
}

Result<std::string> ModelTree::change_bytes(Node& node, const Call& call) const {
  if (node.is_directory()) return failure(ErrorCode::is_directory, call.path);
  if (call.kind == Kind::read) {
    const auto begin = std::min<std::uint64_t>(call.offset_bytes, node.bytes.size());
    return test::runs_of(node.bytes.substr(begin, call.size_bytes));
  }
  if (call.kind == Kind::truncate) {
    if (node.type != FileType::regular) return failure(ErrorCode::invalid, call.path);
    node.bytes.resize(call.size_bytes);
    return "ok";
  }
  if (call.kind == Kind::punch || call.kind == Kind::zero) {
    const auto end = call.offset_bytes + call.size_bytes;
    if (call.kind == Kind::zero && node.bytes.size() < end) node.bytes.resize(end);
    for (auto i = call.offset_bytes; i < std::min<std::uint64_t>(end, node.bytes.size()); ++i) node.bytes[i] = '\0';
    return "ok";
  }
  if (call.kind == Kind::copy) {
    LCCFS_TRY(const auto copied, copied_by(node, call));
    if (copied.empty()) return "ok";
    if (node.bytes.size() < call.offset_bytes + copied.size()) node.bytes.resize(call.offset_bytes + copied.size());
    node.bytes.replace(call.offset_bytes, copied.size(), copied);
    return "ok";
  }
  const auto begin = call.kind == Kind::append ? node.bytes.size() : call.offset_bytes;
  if (node.bytes.size() < begin + call.size_bytes) node.bytes.resize(begin + call.size_bytes);
  node.bytes.replace(begin, call.size_bytes, call.size_bytes, call.letter);
  return "ok";
}

bool ModelTree::change_within(const Call& call) {
  const auto found = find(call.path);
  if (!found) return false;
  Node& node = nodes_.at(*found);
  const auto size_bytes = node.bytes.size();
  const bool grows = call.offset_bytes + call.size_bytes > size_bytes;
  if (call.offset_bytes >= size_bytes || (call.kind == Kind::write && !grows)) return false;
  const auto done = change_bytes(node, call);
  node.bytes.resize(size_bytes);
  return done.has_value();
}

std::string ModelTree::line_of(Id id, const std::string& path) const {
  const Node& node = nodes_.at(id);
  constexpr char letters[] = "?fdlpscb";  // by FileType
  const auto subdirectories =
      std::ranges::count_if(node.names, [&](const auto& entry) { return nodes_.at(entry.second).is_directory(); });
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " %c%o %u", letters[static_cast<int>(node.type)], node.mode,
                node.is_directory() ? static_cast<unsigned>(subdirectories) + 2 : names_of(id));
  std::string line = path + numbers;
  if (node.type == FileType::symlink) line += " -> " + node.target;
  for (const auto& [name, value] : node.xattrs) line += " " + name + "=" + value;
  if (!node.bytes.empty()) line += " " + test::runs_of(node.bytes);
  return line;
}

void ModelTree::list(const Node& directory, const std::string& path, std::vector<std::string>& lines) const {
  for (const auto& [name, id] : directory.names) {
    const Node& node = nodes_.at(id);
    const auto below = path + "/" + name;
    lines.push_back(line_of(id, below));
    list(node, below, lines);
  }
}

std::string ModelTree::text() const {
  std::string text;
  for (const auto& [id, node] : nodes_) {
    text += "\n" + line_of(id, std::to_string(id)) + (node.is_removed ? " removed" : "");
    for (const auto& [name, child] : node.names) text += " " + name + "=" + std::to_string(child);
  }
  return text;
}

std::vector<std::string> ModelTree::lines() const {
  std::vector<std::string> lines{line_of(root, "/")};
  list(nodes_.at(root), "", lines);
  std::ranges::sort(lines);
  return lines;
}

}  // namespace lccfs::crash
