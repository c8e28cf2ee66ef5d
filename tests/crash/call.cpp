// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/call.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>

#include "format/records.h"
#include "support/acls.h"

namespace lccfs::crash {

namespace {

const char* name_of(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::create:
      return "create";
    case Call::Kind::mkfile:
      return "mkfile";
    case Call::Kind::mkdir:
      return "mkdir";
    case Call::Kind::mkfifo:
      return "mkfifo";
    case Call::Kind::symlink:
      return "symlink";
    case Call::Kind::link:
      return "link";
    case Call::Kind::unlink:
      return "unlink";
    case Call::Kind::rmdir:
      return "rmdir";
    case Call::Kind::rename:
      return "rename";
    case Call::Kind::rename_no_replace:
      return "rename-no-replace";
    case Call::Kind::exchange:
      return "exchange";
    case Call::Kind::chmod:
      return "chmod";
    case Call::Kind::write:
      return "write";
    case Call::Kind::append:
      return "append";
    case Call::Kind::read:
      return "read";
    case Call::Kind::truncate:
      return "truncate";
    case Call::Kind::punch:
      return "punch";
    case Call::Kind::zero:
      return "zero";
    case Call::Kind::copy:
      return "copy";
    case Call::Kind::set_xattr:
      return "set-xattr";
    case Call::Kind::remove_xattr:
      return "remove-xattr";
    case Call::Kind::set_acl:
      return "set-acl";
  }
  return "?";
}

template <class T>
bool is_stale(const Result<T>& result) {
  return !result && result.error().code == ErrorCode::stale;
}

Result<std::string> read(const Call& call, test::Paths& at) {
  LCCFS_TRY(const HandleId handle, at.open(call.path, O_RDONLY));
  auto bytes = at.read(handle, call.offset_bytes, call.size_bytes);
  at.close(handle);
  return bytes;
}

bool is_of_a_range(Call::Kind kind) {
  return kind == Call::Kind::punch || kind == Call::Kind::zero || kind == Call::Kind::copy;
}

Result<> once(const Call& call, test::Paths& at) {
  switch (call.kind) {
    case Call::Kind::create:
      return at.make_file(call.path, call.mode);
    case Call::Kind::mkfile:
      return at.make_node(call.path, {FileType::regular, call.mode, 0, ""});
    case Call::Kind::mkdir:
      return at.make_node(call.path, {FileType::directory, call.mode, 0, ""});
    case Call::Kind::mkfifo:
      return at.make_node(call.path, {FileType::fifo, call.mode, 0, ""});
    case Call::Kind::symlink:
      return at.make_node(call.path, {FileType::symlink, call.mode, 0, call.other});
    case Call::Kind::link:
      return at.link(call.path, call.other);
    case Call::Kind::unlink:
      return at.unlink(call.path);
    case Call::Kind::rmdir:
      return at.rmdir(call.path);
    case Call::Kind::rename:
      return at.rename(call.path, call.other);
    case Call::Kind::rename_no_replace:
      return at.rename(call.path, call.other, RenameMode::no_replace);
    case Call::Kind::exchange:
      return at.rename(call.path, call.other, RenameMode::exchange);
    case Call::Kind::chmod:
      return at.chmod(call.path, call.mode);
    case Call::Kind::write:
      return at.write(call.path, call.offset_bytes, std::string(call.size_bytes, call.letter));
    case Call::Kind::append:
      return at.write(call.path, 0, std::string(call.size_bytes, call.letter), O_WRONLY | O_APPEND);
    case Call::Kind::read:
      LCCFS_CHECK(read(call, at));
      return {};
    case Call::Kind::truncate:
      return at.truncate(call.path, call.size_bytes);
    case Call::Kind::punch:
      return at.fallocate(call.path, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, call.offset_bytes, call.size_bytes);
    case Call::Kind::zero:
      return at.fallocate(call.path, FALLOC_FL_ZERO_RANGE, call.offset_bytes, call.size_bytes);
    case Call::Kind::copy:
      return at.copy(call.other, call.from_bytes, call.path, call.offset_bytes, call.size_bytes);
    case Call::Kind::set_xattr:
      return at.set_xattr(call.path, call.other, Bytes(1, call.letter));
    case Call::Kind::remove_xattr:
      return at.remove_xattr(call.path, call.other);
    case Call::Kind::set_acl:
      return at.set_xattr(call.path, format::attribute::access_acl, encode(acl_with(call.mode)));
  }
  return {};
}

}  // namespace

Acl acl_with(std::uint32_t mode) {
  return with_permissions_of(test::acl_of("u::---,u:7:r-x,g::r--,m::---,o::---"), mode);
}

bool changes_an_inode(Call::Kind kind) {
  using Kind = Call::Kind;
  return kind == Kind::chmod || kind == Kind::write || kind == Kind::append || kind == Kind::read ||
         kind == Kind::truncate || kind == Kind::set_xattr || kind == Kind::remove_xattr || kind == Kind::set_acl ||
         is_of_a_range(kind);
}

std::vector<Call> pieces_of(const Call& call, std::uint64_t object_size_bytes) {
  if (call.kind == Call::Kind::write) return {call};
  if (!is_of_a_range(call.kind)) return {};
  std::vector<Call> pieces;
  const auto end = call.offset_bytes + call.size_bytes;
  for (auto at = call.offset_bytes; at < end; at = pieces.back().offset_bytes + pieces.back().size_bytes) {
    Call piece = call;
    piece.offset_bytes = at;
    piece.from_bytes = call.from_bytes + (at - call.offset_bytes);
    piece.size_bytes = std::min(end - at, object_size_bytes - at % object_size_bytes);
    if (call.kind == Call::Kind::copy) {  // what is a hole there goes before what is data
      piece.size_bytes = std::min(piece.size_bytes, object_size_bytes - piece.from_bytes % object_size_bytes);
    }
    pieces.push_back(piece);
  }
  return pieces;
}

Result<> on_names(const std::function<Result<>()>& once) {
  auto result = once();
  if (is_stale(result)) result = once();
  if (is_stale(result)) return failure(ErrorCode::not_found, result.error().context);
  return result;
}

Result<> Call::operator()(test::Paths& at) const {
  if (!changes_an_inode(kind)) return on_names([&] { return once(*this, at); });
  auto result = once(*this, at);
  if (is_stale(result)) result = once(*this, at);
  return result;
}

std::string Call::perform(test::Paths& at) const {
  if (kind != Kind::read) return text_of((*this)(at));
  auto bytes = read(*this, at);
  if (is_stale(bytes)) bytes = read(*this, at);
  return bytes ? test::runs_of(*bytes) : describe(bytes.error().code);
}

std::string text_of(const Call& call) {
  std::string text = name_of(call.kind) + (" " + call.path);
  if (!call.other.empty()) text += " " + call.other;
  if (call.mode != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, " %o", call.mode);
    text += mode;
  }
  if (call.kind == Call::Kind::copy) text += " from " + std::to_string(call.from_bytes);
  if (call.kind == Call::Kind::write || call.kind == Call::Kind::read || is_of_a_range(call.kind))
    text += " at " + std::to_string(call.offset_bytes);
  if (call.size_bytes != 0 || call.kind == Call::Kind::truncate) text += " " + std::to_string(call.size_bytes);
  if (call.letter != 0) text += call.letter;
  return text;
}

std::string text_of(const Result<>& result) { return result ? "ok" : describe(result.error().code); }

}  // namespace lccfs::crash
