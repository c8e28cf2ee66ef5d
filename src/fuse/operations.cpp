// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/operations.h"

#include <linux/capability.h>
#include <linux/xattr.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/process_rights.h"
#include "fuse/answers.h"
#include "fuse/convert.h"
#include "fuse/kernel_channel.h"
#include "fuse/request.h"
#include "fuse/serving.h"
#include "fuse/tagged_handle.h"

namespace lccfs::fuse {
namespace {

// The biggest request that libfuse 3.14 negotiates (256 pages).
constexpr unsigned max_write_bytes = 1U << 20;
// Direct requests and readahead of all files together. Beyond this number (the kernel's own is 12) requests wait in the
// kernel, also those for a file whose OSD lives; from three quarters on there is no readahead. So it is far above what
// hangs on an OSD that is away. Each request has its buffer: a program with 4096 direct writes of 1 MiB in flight holds
// 4 GiB, and the mount holds as much.
constexpr unsigned max_background_requests = 4096;
// Names that the kernel keeps until it is told otherwise.
constexpr std::chrono::minutes kept_for{10};
// What the shortest name takes in a listing: so many more entries than this never fit.
constexpr std::size_t shortest_entry_bytes = 32;

Serving& serving_of(fuse_req_t request) { return *static_cast<Serving*>(fuse_req_userdata(request)); }

Ino ino_of(fuse_req_t request, fuse_ino_t number) { return serving_of(request).ino_of(number); }

Caller caller_of(fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  return {.uid = context->uid, .gid = context->gid, .umask = context->umask, .pid = context->pid};
}

/// As the kernel asks before it reads a trusted.* attribute: who is root of a user namespace that he has made is not.
bool is_administrator(const Caller& caller) {
  return is_capable_here(caller.pid, CAP_SYS_ADMIN).value_or(caller.uid == 0);
}

void refuse(fuse_req_t raw, int error_number) { fuse_reply_err(raw, error_number); }

/// Of the request that the receiving thread has just received: its caller is let go if that is killed meanwhile. Not
/// where the kernel keeps others off until the answer, as it does for changes of names and attributes: two such could be
/// under way then.
void let_go_if_killed(fuse_req_t raw, const fuse_file_info* info = nullptr, std::uint64_t lock_ticket = 0) {
  Serving& serving = serving_of(raw);
  serving.killed_callers.began(raw, {.number = serving.handshake.received,
                                     .thread = fuse_req_ctx(raw)->pid,
                                     .handle = info == nullptr ? 0 : info->fh,
                                     .lock_ticket = lock_ticket});
}

/// One that the receiving thread does not hand on at once: it answers what memory knows.
Request begin(fuse_req_t raw, Kind kind, fuse_ino_t ino, std::string_view name = {}) {
  Request request(raw, kind, Subject(ino_of(raw, ino), name), serving_of(raw));
  request.belongs_to(serving_of(raw).directory_of(ino_of(raw, ino)));
  return request;
}

/// Where the client holds the directory or the file, memory answers them.
bool is_mostly_brief(Kind kind) {
  constexpr Kind brief[] = {Kind::mknod,       Kind::mkdir,   Kind::symlink,  Kind::create,   Kind::unlink,
                            Kind::rmdir,       Kind::open,    Kind::flush,    Kind::setattr,  Kind::opendir,
                            Kind::releasedir,  Kind::release, Kind::getxattr, Kind::setxattr, Kind::listxattr,
                            Kind::removexattr, Kind::rename};
  return std::ranges::find(brief, kind) != std::end(brief);
}

/// What a request is about: an inode, or a name in that directory.
struct About {
  About(fuse_ino_t number) : ino(number) {}
  About(fuse_ino_t directory, const char* entry) : ino(directory), name(entry) {}
  fuse_ino_t ino;
  const char* name = "";
};

/// Runs `work(Serving&, Request)`, which may block on the store: on the pool, or as the receiver has it. It owns its
/// arguments: libfuse uses their memory again as soon as the operation returns.
template <class Work>
void serve(fuse_req_t raw, Kind kind, About about, Work work) {
  Serving& serving = serving_of(raw);
  const Ino ino = ino_of(raw, about.ino);
  auto served = [&serving, ino, request = Request(raw, kind, Subject(ino, about.name), serving),
                 work = std::move(work)]() mutable {
    request.belongs_to(serving.directory_of(ino));
    work(serving, std::move(request));
  };
  if (is_mostly_brief(kind) && serving.receiver.may_serve_here(serving.session_fd)) {
    serving.receiver.serve(std::move(served));
  } else {
    serving.pool.post(std::move(served));
  }
}

/// Of an open file, which says itself below which directory it is.
Request request_of(fuse_req_t raw, Kind kind, fuse_ino_t ino, const fuse_file_info* info) {
  Request request(raw, kind, Subject(ino_of(raw, ino)), serving_of(raw));
  request.belongs_to(directory_of(info));
  return request;
}

void answer(Serving&, Request request, const Result<>& result) { request.finish(result); }

/// `body(value)` is what the kernel gets.
template <class Value, class Body>
void answer_with(Request request, const Result<Value>& result, Body body) {
  if (!result) return request.fail(result.error());
  request.answer(body(*result));
}

void answer(Serving&, Request request, const Result<AttributesReply>& attributes) {
  answer_with(std::move(request), attributes, attributes_answer);
}

void answer(Serving&, Request request, const Result<VolumeUsage>& usage) {
  answer_with(std::move(request), usage, usage_answer);
}

void answer(Serving&, Request request, const Result<std::string>& bytes) {
  if (!bytes) return request.fail(bytes.error());
  request.answer(*bytes);
}

/// The session does not end before this does, though the request was answered: for completions of the store.
class StillServing {
 public:
  explicit StillServing(Serving& serving) : serving_(serving) { ++serving_.in_flight; }
  ~StillServing() { --serving_.in_flight; }
  StillServing(const StillServing&) = delete;
  StillServing& operator=(const StillServing&) = delete;

 private:
  Serving& serving_;
};

/// Of a name in `parent`.
void answer_entry(Serving& serving, Request request, Ino parent, const std::string& name,
                  const Result<EntryReply>& entry) {
  if (!entry) return request.fail(entry.error());
  EntryReply told = *entry;
  const Ino ino = told.attributes.ino;
  const bool is_directory = told.attributes.type == FileType::directory;
  if (is_directory && serving.fs.begin_to_keep(parent, name, ino, serving.lookups.has(ino))) {
    told.entry_ttl = kept_for;
    told.attributes_ttl = {};  // nothing would drop these: it does not know the inode yet
  }
  request.belongs_to(serving.tell(parent, name, told));
  if (!request.answer(entry_answer(told))) serving.forget(ino, 1);
}

/// `serve` of `fs.method(arguments...)`: answers what it says.
template <class Method, class... Arguments>
void call(fuse_req_t raw, Kind kind, About about, Method method, Arguments... arguments) {
  serve(raw, kind, about, [method, ... arguments = std::move(arguments)](Serving& serving, Request request) {
    if constexpr (std::is_void_v<std::invoke_result_t<Method, FileSystem&, const Arguments&...>>) {
      (serving.fs.*method)(arguments...);
      request.finish({});
    } else {
      answer(serving, std::move(request), (serving.fs.*method)(arguments...));
    }
  });
}

/// What the kernel sends because a handle is closed. `method` lets go of it, once nothing uses it any more.
void release_with(fuse_req_t raw, Kind kind, fuse_ino_t ino, const fuse_file_info* info,
                  void (FileSystem::*method)(HandleId)) {
  Serving& serving = serving_of(raw);
  if (!serving.killed_callers.has_left_some_of(info->fh)) return call(raw, kind, ino, method, handle_of(info));
  auto until_done = std::make_shared<StillServing>(serving);
  auto release = [&serving, method, handle = handle_of(info), until_done = std::move(until_done)] {
    (serving.fs.*method)(handle);
  };
  serving.pool.post([&serving, handle = handle_of(info), until_done = std::make_shared<StillServing>(serving)] {
    serving.fs.disown_locks(handle, std::nullopt, serving.next_nobody());
  });
  if (!serving.killed_callers.after_those_of(info->fh, release)) serving.pool.post(std::move(release));
  request_of(raw, kind, ino, info).finish({});
}

// Not the kernel's writeback cache: it never believes a size that another client changed. ACLs come with the umask,
// which a default ACL stands in for: both are taken off here.
// File handles lead to any inode by its number: not where the mount is to show a part of the volume.
void init(void* user_data, fuse_conn_info* connection) {
  auto& serving = *static_cast<Serving*>(user_data);
  serving.handshake.minor = connection->proto_minor;
  constexpr unsigned by_handle = FUSE_CAP_EXPORT_SUPPORT;
  constexpr unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                              FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS |
                              FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK |
                              FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS;
  const bool shows_all = serving.root == root_ino;
  connection->want = (shows_all ? wanted | by_handle : wanted) & connection->capable;
  connection->max_write = max_write_bytes;
  connection->max_background = max_background_requests;
}

void statfs(fuse_req_t raw, fuse_ino_t ino) {
  let_go_if_killed(raw);
  call(raw, Kind::statfs, ino, &FileSystem::usage);
}

// -- names

void lookup(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  let_go_if_killed(raw);
  Serving& serving = serving_of(raw);
  std::string wanted(name);
  auto answer = [&serving, parent = ino_of(raw, parent), wanted,
                 request = begin(raw, Kind::lookup, parent, name)](std::optional<Result<EntryReply>> known) mutable {
    const StillServing until_all_is_told(serving);
    if (known) return answer_entry(serving, std::move(request), parent, wanted, *known);
    serving.pool.post([&serving, parent, wanted = std::move(wanted), request = std::move(request)]() mutable {
      answer_entry(serving, std::move(request), parent, wanted, serving.fs.lookup(parent, wanted));
    });
  };
  serving.fs.known_entry(ino_of(raw, parent), wanted, std::move(answer));
}

void forget(fuse_req_t raw, fuse_ino_t ino, std::uint64_t count) {
  serving_of(raw).forget(ino_of(raw, ino), count);
  fuse_reply_none(raw);
}

void forget_multi(fuse_req_t raw, std::size_t count, fuse_forget_data* forgotten) {
  for (std::size_t i = 0; i < count; ++i) serving_of(raw).forget(ino_of(raw, forgotten[i].ino), forgotten[i].nlookup);
  fuse_reply_none(raw);
}

void make_node(fuse_req_t raw, Kind kind, fuse_ino_t parent, const char* name, NewNode node) {
  serve(raw, kind, {parent, name},
        [caller = caller_of(raw), parent = ino_of(raw, parent), name = std::string(name), node = std::move(node)](
            Serving& serving, Request request) {
          answer_entry(serving, std::move(request), parent, name, serving.fs.make_node(caller, parent, name, node));
        });
}

void mknod(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const std::optional<FileType> type = type_of(mode);
  if (!type) return refuse(raw, EINVAL);
  make_node(raw, Kind::mknod, parent, name,
            {.type = *type, .mode = mode & 07777, .rdev = device, .symlink_target = ""});
}

void mkdir(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode) {
  make_node(raw, Kind::mkdir, parent, name,
            {.type = FileType::directory, .mode = mode & 07777, .rdev = 0, .symlink_target = ""});
}

void symlink(fuse_req_t raw, const char* target, fuse_ino_t parent, const char* name) {
  make_node(raw, Kind::symlink, parent, name,
            {.type = FileType::symlink, .mode = 0777, .rdev = 0, .symlink_target = target});
}

void create(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  serve(raw, Kind::create, {parent, name},
        [caller = caller_of(raw), parent = ino_of(raw, parent), name = std::string(name), mode, flags = info->flags](
            Serving& serving, Request request) {
          const Result<CreateReply> made = serving.fs.create(caller, parent, name, mode & 07777, flags);
          if (!made) return request.fail(made.error());
          const auto directory = serving.tell(parent, name, made->entry);
          request.belongs_to(directory);
          CreateReply told = *made;
          told.open.handle = tagged(made->open.handle, directory);
          if (request.answer(create_answer(told, flags))) return;
          serving.fs.release(made->open.handle);
          serving.forget(made->entry.attributes.ino, 1);
        });
}

void unlink(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  call(raw, Kind::unlink, {parent, name}, &FileSystem::unlink, ino_of(raw, parent), std::string(name));
}

void rmdir(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  call(raw, Kind::rmdir, {parent, name}, &FileSystem::rmdir, ino_of(raw, parent), std::string(name));
}

void rename(fuse_req_t raw, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned flags) {
  const std::optional<RenameMode> mode = to_rename_mode(flags);
  if (!mode) return refuse(raw, EINVAL);
  call(raw, Kind::rename, {parent, name}, &FileSystem::rename, ino_of(raw, parent), std::string(name),
       ino_of(raw, new_parent), std::string(new_name), *mode);
}

void link(fuse_req_t raw, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  serve(raw, Kind::link, {parent, name},
        [ino = ino_of(raw, ino), parent = ino_of(raw, parent), name = std::string(name)](Serving& serving,
                                                                                         Request request) {
          answer_entry(serving, std::move(request), parent, name, serving.fs.link(ino, parent, name));
        });
}

void readlink(fuse_req_t raw, fuse_ino_t ino) {
  let_go_if_killed(raw);
  call(raw, Kind::readlink, ino, &FileSystem::read_link, ino_of(raw, ino));
}

// -- directories

void opendir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info*) {
  let_go_if_killed(raw);
  serve(raw, Kind::opendir, ino, [ino = ino_of(raw, ino)](Serving& serving, Request request) {
    const Result<HandleId> handle = serving.fs.open_directory(ino);
    if (!handle) return request.fail(handle.error());
    const auto told = tagged(*handle, serving.directory_of(ino));
    if (!request.answer(open_directory_answer(told))) serving.fs.release_directory(*handle);
  });
}

/// As many entries as fit.
std::string pack(fuse_req_t raw, const std::vector<DirectoryEntry>& entries, std::size_t size_bytes) {
  std::string packed(size_bytes, '\0');
  std::size_t used = 0;
  for (const DirectoryEntry& entry : entries) {
    struct stat values = {};
    values.st_ino = entry.ino.value;
    values.st_mode = type_bits(entry.type);
    const std::size_t needed = fuse_add_direntry(raw, packed.data() + used, size_bytes - used, entry.name.c_str(),
                                                 &values, static_cast<off_t>(entry.cookie));
    if (needed > size_bytes - used) break;  // it was not added
    used += needed;
  }
  packed.resize(used);
  return packed;
}

void readdir(fuse_req_t raw, fuse_ino_t ino, std::size_t size_bytes, off_t cookie, fuse_file_info* info) {
  let_go_if_killed(raw, info);
  serve(raw, Kind::readdir, ino,
        [raw, handle = handle_of(info), size_bytes, cookie](Serving& serving, Request request) {
          const auto entries =
              serving.fs.read_directory(handle, static_cast<std::uint64_t>(cookie), size_bytes / shortest_entry_bytes);
          if (!entries) return request.fail(entries.error());
          request.answer(pack(raw, *entries, size_bytes));
        });
}

/// A directory whose name the kernel may keep, for no other reason.
std::optional<EntryReply> kept_entry(Serving& serving, Ino parent, const DirectoryEntry& entry) {
  if (entry.type != FileType::directory) return std::nullopt;
  const auto attributes = serving.fs.begin_to_keep_listed(parent, entry.name, entry.ino);
  return attributes ? std::optional(EntryReply{*attributes, kept_for, {}}) : std::nullopt;
}

/// The kernel holds an inode for each entry that it is told with attributes.
void readdirplus(fuse_req_t raw, fuse_ino_t ino, std::size_t size_bytes, off_t cookie, fuse_file_info* info) {
  let_go_if_killed(raw, info);
  serve(raw, Kind::readdirplus, ino,
        [parent = ino_of(raw, ino), handle = handle_of(info), size_bytes, cookie](Serving& serving, Request request) {
          std::size_t used = 0;
          auto listed = serving.fs.read_directory_plus(
              handle, static_cast<std::uint64_t>(cookie),
              [&](const DirectoryEntry& entry) { return (used += listed_entry_bytes(entry)) <= size_bytes; });
          if (!listed) return request.fail(listed.error());
          std::string packed;
          std::vector<const ListedEntry*> told;
          for (ListedEntry& one : *listed) {
            if (packed.size() + listed_entry_bytes(one.entry) > size_bytes) break;
            if (!one.reply) one.reply = kept_entry(serving, parent, one.entry);
            packed += listed_entry_answer(one);
            if (one.reply) told.push_back(&one);
          }
          for (const ListedEntry* one : told) {
            serving.tell(parent, one->entry.name, *one->reply);
            if (one->reply->entry_ttl == kept_for) serving.fs.is_kept_by_name(one->entry.ino);
          }
          if (request.answer(packed)) return;
          for (const ListedEntry* one : told) serving.forget(one->entry.ino, 1);
        });
}

void releasedir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info) {
  release_with(raw, Kind::releasedir, ino, info, &FileSystem::release_directory);
}

void fsyncdir(fuse_req_t raw, fuse_ino_t ino, int, fuse_file_info* info) {
  let_go_if_killed(raw, info);
  call(raw, Kind::fsyncdir, ino, &FileSystem::sync_directory, ino_of(raw, ino));
}

// -- attributes

void getattr(fuse_req_t raw, fuse_ino_t ino, fuse_file_info*) {
  if (const auto known = serving_of(raw).fs.known_attributes(ino_of(raw, ino))) {
    return answer(serving_of(raw), begin(raw, Kind::getattr, ino), *known);
  }
  let_go_if_killed(raw);
  call(raw, Kind::getattr, ino, &FileSystem::get_attributes, ino_of(raw, ino));
}

/// Of a direct write that fails past the end, the kernel cuts off what it does not know of. Who was let go asks for nothing
/// else any more; what he writes comes still, and others may have written there.
void setattr(fuse_req_t raw, fuse_ino_t ino, struct stat* values, int to_set, fuse_file_info*) {
  const bool cuts = (to_set & FUSE_SET_ATTR_SIZE) != 0;
  if (cuts && serving_of(raw).killed_callers.has_let_go(fuse_req_ctx(raw)->pid)) return refuse(raw, EINTR);
  call(raw, Kind::setattr, ino, &FileSystem::set_attributes, caller_of(raw), ino_of(raw, ino),
       to_changes(*values, to_set, serving_of(raw).clock.wall_time()));
}

/// getxattr(2) and listxattr(2): a size of 0 asks how many bytes there are.
void answer_sized(Request request, std::string_view bytes, std::size_t size_bytes) {
  const std::string size = xattr_size_answer(bytes.size());
  if (size_bytes != 0 && bytes.size() > size_bytes) return request.fail(ERANGE);
  request.answer(size_bytes == 0 ? std::string_view(size) : bytes);
}

void getxattr(fuse_req_t raw, fuse_ino_t ino, const char* name, std::size_t size_bytes) {
  if (serving_of(raw).fs.knows_no_xattr(ino_of(raw, ino), name)) return refuse(raw, ENODATA);
  let_go_if_killed(raw);
  serve(raw, Kind::getxattr, ino,
        [ino = ino_of(raw, ino), name = std::string(name), size_bytes](Serving& serving, Request request) {
          const Result<Bytes> value = serving.fs.get_xattr(ino, name);
          value ? answer_sized(std::move(request), *value, size_bytes) : request.fail(value.error());
        });
}

/// Of those named trusted.*, which the kernel gives to nobody else, only an administrator hears.
void listxattr(fuse_req_t raw, fuse_ino_t ino, std::size_t size_bytes) {
  let_go_if_killed(raw);
  serve(raw, Kind::listxattr, ino,
        [caller = caller_of(raw), ino = ino_of(raw, ino), size_bytes](Serving& serving, Request request) {
          const auto names = serving.fs.list_xattrs(ino);
          if (!names) return request.fail(names.error());
          const auto is_trusted = [](const std::string& name) { return name.starts_with(XATTR_TRUSTED_PREFIX); };
          const bool hears_all = std::ranges::none_of(*names, is_trusted) || is_administrator(caller);
          std::string joined;
          for (const std::string& name : *names) {
            if (hears_all || !is_trusted(name)) joined.append(name).push_back('\0');
          }
          answer_sized(std::move(request), joined, size_bytes);
        });
}

void setxattr(fuse_req_t raw, fuse_ino_t ino, const char* name, const char* value, std::size_t size_bytes, int flags) {
  const std::optional<XattrMode> mode = to_xattr_mode(flags & ~setgid_goes_flag);
  if (!mode) return refuse(raw, EINVAL);
  call(raw, Kind::setxattr, ino, &FileSystem::set_xattr, ino_of(raw, ino), std::string(name), Bytes(value, size_bytes),
       *mode, (flags & setgid_goes_flag) != 0 ? SetgidBit::goes : SetgidBit::stays, caller_of(raw));
}

void removexattr(fuse_req_t raw, fuse_ino_t ino, const char* name) {
  call(raw, Kind::removexattr, ino, &FileSystem::remove_xattr, ino_of(raw, ino), std::string(name), caller_of(raw));
}

// -- files. Reads and writes go from the receiving thread straight to the file system, which never blocks on them, and
// are answered by the thread that completes them.

void open(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info) {
  if ((info->flags & O_TRUNC) == 0) let_go_if_killed(raw);
  serve(raw, Kind::open, ino,
        [caller = caller_of(raw), ino = ino_of(raw, ino), flags = info->flags](Serving& serving, Request request) {
          const Result<OpenReply> opened = serving.fs.open(caller, ino, flags);
          if (!opened) return request.fail(opened.error());
          OpenReply told = *opened;
          told.handle = tagged(opened->handle, serving.directory_of(ino));
          if (!request.answer(open_answer(told, flags))) serving.fs.release(opened->handle);
        });
}

void read(fuse_req_t raw, fuse_ino_t ino, std::size_t size_bytes, off_t offset, fuse_file_info* info) {
  let_go_if_killed(raw, info);
  Serving& serving = serving_of(raw);
  auto buffer = std::make_unique_for_overwrite<char[]>(size_bytes);
  const std::span<char> target(buffer.get(), size_bytes);
  // The kernel names an owner of locks in every read but those that fill its pages. Whether the descriptor is a direct
  // one now says nothing: fcntl may have changed that after an open that passes by the pages.
  if (info->lock_owner == 0) serving.fs.is_mapped(handle_of(info));
  serving.fs.read(
      handle_of(info), static_cast<std::uint64_t>(offset), target,
      [request = request_of(raw, Kind::read, ino, info), buffer = std::move(buffer)](Result<std::size_t> got) mutable {
        if (!got) return request.fail(got.error());
        request.moved(*got);
        request.answer({buffer.get(), *got});
      });
}

void write(fuse_req_t raw, fuse_ino_t ino, const char* data, std::size_t size_bytes, off_t offset,
           fuse_file_info* info) {
  Serving& serving = serving_of(raw);
  let_go_if_killed(raw, info);
  WriteRequest write{.caller = caller_of(raw),
                     .offset_bytes = static_cast<std::uint64_t>(offset),
                     .bytes = serving.requests.keep(data, size_bytes),
                     .flags = info->flags,
                     .writes_back_pages = info->writepage != 0};
  serving.fs.write(handle_of(info), std::move(write),
                   [&serving, ino = ino_of(raw, ino),
                    request = request_of(raw, Kind::write, ino, info)](Result<std::size_t> written) mutable {
                     const StillServing until_all_is_told(serving);
                     if (!written) return request.fail(written.error());
                     request.moved(*written);
                     if (!request.answer(written_answer(*written))) serving.fs.write_not_told(ino);
                   });
}

/// Whatever becomes of the bytes, the process has closed a descriptor. If it was killed, its locks, here or in another
/// file, still cover what it was killed in.
void flush(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info) {
  const auto thread = fuse_req_ctx(raw)->pid;
  const auto is_heard = [thread] { return !is_ending(thread); };
  if (const auto known = serving_of(raw).fs.known_flush(handle_of(info), is_heard)) {
    return request_of(raw, Kind::flush, ino, info).finish(*known);
  }
  serve(raw, Kind::flush, ino,
        [kernels = info->fh, handle = handle_of(info), owner = info->lock_owner, thread, is_heard](Serving& serving,
                                                                                                   Request request) {
          const auto flushed = serving.fs.flush(handle, is_heard);
          if (serving.killed_callers.has_left_some_by(thread, kernels)) {
            const auto nobody = serving.next_nobody();
            serving.fs.disown_locks(handle, owner, nobody);
            auto drop = [&serving, handle, nobody, until_done = std::make_shared<StillServing>(serving)] {
              serving.fs.drop_range_locks(handle, nobody);
            };
            if (!serving.killed_callers.after_those_of(kernels, drop)) drop();
          } else {
            serving.fs.drop_range_locks(handle, owner);
          }
          request.finish(flushed);
        });
}

void fsync(fuse_req_t raw, fuse_ino_t ino, int data_only, fuse_file_info* info) {
  let_go_if_killed(raw, info);
  call(raw, Kind::fsync, ino, &FileSystem::fsync, handle_of(info), data_only != 0);
}

void fallocate(fuse_req_t raw, fuse_ino_t ino, int mode, off_t offset, off_t size_bytes, fuse_file_info* info) {
  call(raw, Kind::fallocate, ino, &FileSystem::fallocate, caller_of(raw), handle_of(info), mode,
       static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size_bytes));
}

/// The kernel does the other ways by itself.
void lseek(fuse_req_t raw, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* info) {
  const std::optional<SeekTo> what = to_seek(whence);
  if (!what) return refuse(raw, EINVAL);
  let_go_if_killed(raw, info);
  serve(raw, Kind::lseek, ino,
        [handle = handle_of(info), offset = static_cast<std::uint64_t>(offset), what = *what](Serving& serving,
                                                                                              Request request) {
          answer_with(std::move(request), serving.fs.seek(handle, offset, what), seek_answer);
        });
}

void copy_file_range(fuse_req_t raw, fuse_ino_t, off_t source_offset, fuse_file_info* source, fuse_ino_t ino,
                     off_t target_offset, fuse_file_info* target, std::size_t size_bytes, int flags) {
  if (flags != 0) return refuse(raw, EINVAL);
  serve(raw, Kind::copy_file_range, ino,
        [caller = caller_of(raw), source = handle_of(source), from = static_cast<std::uint64_t>(source_offset),
         target = handle_of(target), to = static_cast<std::uint64_t>(target_offset),
         size_bytes](Serving& serving, Request request) {
          answer_with(std::move(request), serving.fs.copy_file_range(caller, source, from, target, to, size_bytes),
                      written_answer);
        });
}

void release(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info) {
  release_with(raw, Kind::release, ino, info, &FileSystem::release);
}

// -- locks. A request that waits is answered by the thread that ends the wait; one for a lock by whoever interrupts it.

/// Called by the receiving thread under a lock of libfuse's, in which nothing may be answered.
void interrupt(fuse_req_t raw, void* ticket) {
  Serving& serving = serving_of(raw);
  serving.pool.post([&serving, ticket = std::bit_cast<std::uint64_t>(ticket)] { serving.fs.interrupt_lock(ticket); });
}

void set_lock(Request request, fuse_req_t raw, LockRequest wanted) {
  Serving& serving = serving_of(raw);
  wanted.ticket = ++serving.tickets;
  if (wanted.waits) {
    fuse_req_interrupt_func(raw, interrupt, std::bit_cast<void*>(wanted.ticket));  // called at once if it came before
  } else if (wanted.type != LockType::none) {
    let_go_if_killed(raw, nullptr, wanted.ticket);
  }
  serving.fs.set_lock(wanted, [request = std::move(request)](const Result<>& done) mutable { request.finish(done); });
}

void getlk(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info, struct flock* values) {
  Serving& serving = serving_of(raw);
  auto wanted = to_lock_request(*values, handle_of(info), info->lock_owner);
  if (!wanted) return refuse(raw, EINVAL);
  wanted->ticket = ++serving.tickets;
  let_go_if_killed(raw, nullptr, wanted->ticket);
  serving.fs.find_lock(*wanted, [request = request_of(raw, Kind::getlk, ino, info)](
                                    const Result<std::optional<LockHeld>>& held) mutable {
    answer_with(std::move(request), held, lock_answer);
  });
}

void setlk(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info, struct flock* values, int waits) {
  auto wanted = to_lock_request(*values, handle_of(info), info->lock_owner);
  if (!wanted) return refuse(raw, EINVAL);
  wanted->waits = waits != 0;
  set_lock(request_of(raw, wanted->waits ? Kind::setlk_wait : Kind::setlk, ino, info), raw, *wanted);
}

void flock(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info, int operation) {
  const auto wanted = to_flock_request(operation, handle_of(info), info->lock_owner);
  if (!wanted) return refuse(raw, EINVAL);
  set_lock(request_of(raw, wanted->waits ? Kind::flock_wait : Kind::flock, ino, info), raw, *wanted);
}

}  // namespace

// Not among them, so that libfuse answers ENOSYS and the kernel does without: ioctl, access (default_permissions).
fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops table = {};
  table.init = init;
  table.statfs = statfs;
  table.lookup = lookup;
  table.forget = forget;
  table.forget_multi = forget_multi;
  table.mknod = mknod;
  table.mkdir = mkdir;
  table.symlink = symlink;
  table.create = create;
  table.unlink = unlink;
  table.rmdir = rmdir;
  table.rename = rename;
  table.link = link;
  table.readlink = readlink;
  table.opendir = opendir;
  table.readdir = readdir;
  table.readdirplus = readdirplus;
  table.releasedir = releasedir;
  table.fsyncdir = fsyncdir;
  table.getattr = getattr;
  table.setattr = setattr;
  table.getxattr = getxattr;
  table.listxattr = listxattr;
  table.setxattr = setxattr;
  table.removexattr = removexattr;
  table.open = open;
  table.read = read;
  table.write = write;
  table.flush = flush;
  table.fsync = fsync;
  table.fallocate = fallocate;
  table.lseek = lseek;
  table.copy_file_range = copy_file_range;
  table.release = release;
  table.getlk = getlk;
  table.setlk = setlk;
  table.flock = flock;
  return table;
}

}  // namespace lccfs::fuse
