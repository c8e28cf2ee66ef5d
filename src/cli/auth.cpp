// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>

#include "base/text.h"
#include "cli/commands.h"
#include "lccfs/access.h"
#include "objects/super.h"

namespace lccfs::cli {
namespace {

constexpr const char* usual_conf_file = "/etc/ceph/ceph.conf";

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// For its owner alone, and never over another. The text is made once the file is there, and there is no file without it.
Result<> write_new_file(const std::string& path, const std::function<Result<std::string>()>& make_text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return failure(ErrorCode::io, "cannot write " + path + ": " + std::strerror(errno));
  const auto text = make_text();
  errno = ENOSPC;  // unless one of these says more
  bool is_written = text && write(fd, text->data(), text->size()) == static_cast<ssize_t>(text->size());
  is_written = close(fd) == 0 && is_written;
  if (is_written) return {};
  const int error = errno;
  unlink(path.c_str());
  if (!text) return std::unexpected(text.error());
  return failure(ErrorCode::io, "cannot write " + path + ": " + std::strerror(error));
}

}  // namespace

Auth::Auth(options::CommandLine& program) {
  auto& line = program.add_command({.name = "auth",
                                    .usage = "CLIENT VOLUME [OPTION]...",
                                    .summary = "Prints the command that makes the Ceph key of a volume's client.",
                                    .footer = R"(Examples:
  lccfs auth lccfs -p vms
  lccfs auth backup -p vms -n nova --read-only
  lccfs auth lccfs -p vms --make /etc/ceph/ceph.client.lccfs.keyring

The key permits what mounts, collectors, checks and repairs of this volume need, and nothing else.
--id names the client that looks the pools up and makes the key: it must be one that may.)"});
  line.operand("CLIENT", options::text(client_), "the client's name, with or without \"client.\"",
               options::CommandLine::Operand::needed);
  options::add_address(line, address_);
  line.group("Key");
  line.flag("--read-only", read_only_, "for mounts with -o ro, checks and lccfs info");
  line.option("--data-pool", "POOL", options::text(data_pool_),
              "of a volume that is still to be made; one that is there\nsays so itself");
  line.option("--make", "FILE", options::path(keyring_), "make the key, and write its keyring into this new file");
  line.check([this]() -> Result<> {
    if (client_.starts_with("client.")) client_.erase(0, std::string_view("client.").size());
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; };
    if (!client_.empty() && std::ranges::all_of(client_, plain)) return {};
    return failure(ErrorCode::invalid, "'" + client_ + "' is no client's name: letters, digits, '_', '.' and '-'");
  });
}

/// Without a volume: what was told.
Result<std::string> Auth::data_pool() const {
  LCCFS_TRY(const auto store, open_store(address_, {.step_timeout = step_timeout}));
  const auto super = objects::read_super(objects::reader_of(*store));
  if (super) return super->record.data_pool;
  if (super.error().code == ErrorCode::not_found) return data_pool_;
  return std::unexpected(super.error());
}

Result<> Auth::run() const {
  const Access access = read_only_ ? Access::read_only : Access::read_write;
  LCCFS_TRY(const auto data_pool, address_.local_directory.empty() ? this->data_pool() : "");
  LCCFS_TRY(const auto needed, needed_capabilities(address_, data_pool, access));
  if (!keyring_.empty()) {
    LCCFS_CHECK(write_new_file(keyring_, [&] { return make_key(address_, client_, needed); }));
    std::cout << "made the key of client." << client_ << ": " << printable(keyring_) << "\n";
    return {};
  }
  const bool usual = address_.conf_file == usual_conf_file;
  std::cout << "ceph " << (usual ? "" : "-c " + quoted(address_.conf_file) + " ") << "auth get-or-create client."
            << client_ << " mon " << quoted(needed.mon) << " osd " << quoted(needed.osd) << "\n";
  return {};
}

}  // namespace lccfs::cli
