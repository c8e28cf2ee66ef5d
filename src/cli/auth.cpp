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

struct Auth {
  VolumeAddress address;
  std::string client, data_pool, keyring;
  bool read_only = false;
};

/// Without a volume: what was told.
Result<std::string> data_pool_of(const Auth& given) {
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout}));
  const auto super = objects::read_super(objects::reader_of(*store));
  if (super) return super->record.data_pool;
  if (super.error().code == ErrorCode::not_found) return given.data_pool;
  return std::unexpected(super.error());
}

Result<int> run_auth(const Auth& given) {
  const Access access = given.read_only ? Access::read_only : Access::read_write;
  LCCFS_TRY(const auto data_pool, given.address.local_directory.empty() ? data_pool_of(given) : "");
  LCCFS_TRY(const auto needed, needed_capabilities(given.address, data_pool, access));
  if (!given.keyring.empty()) {
    LCCFS_CHECK(write_new_file(given.keyring, [&] { return make_key(given.address, given.client, needed); }));
    std::cout << "made the key of client." << given.client << ": " << printable(given.keyring) << "\n";
    return {};
  }
  const bool usual = given.address.conf_file == options::default_conf_file;
  std::cout << "ceph " << (usual ? "" : "-c " + quoted(given.address.conf_file) + " ") << "auth get-or-create client."
            << given.client << " mon " << quoted(needed.mon) << " osd " << quoted(needed.osd) << "\n";
  return {};
}

}  // namespace

void add_auth(options::CommandLine& program) {
  auto& line = program.add_command({.name = "auth",
                                    .usage = "CLIENT VOLUME [OPTION]...",
                                    .summary = "Prints the command that makes the Ceph key of a volume's client.",
                                    .footer = R"(Examples:
  lccfs auth lccfs -p vms
  lccfs auth backup -p vms -n nova --read-only
  lccfs auth lccfs -p vms --make /etc/ceph/ceph.client.lccfs.keyring

The key permits what mounts, collectors, checks and repairs of this volume need, and nothing else.
--id names the client that looks the pools up and makes the key: it must be one that may.)"});
  auto& given = line.runs(run_auth);
  line.operand("CLIENT", options::text(given.client), "the client's name, with or without \"client.\"",
               options::CommandLine::Operand::needed);
  options::add_address(line, given.address);
  line.group("Key");
  line.flag("--read-only", given.read_only, "for mounts with -o ro, checks and lccfs info");
  line.option("--data-pool", "POOL", options::text(given.data_pool),
              "of a volume that is still to be made; one that is there\nsays so itself");
  line.option("--make", "FILE", options::path(given.keyring), "make the key, and write its keyring into this new file");
  line.check([&given]() -> Result<> {
    given.client = std::string(options::client_name(given.client));
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; };
    if (!given.client.empty() && std::ranges::all_of(given.client, plain)) return {};
    return failure(ErrorCode::invalid, "'" + given.client + "' is no client's name: letters, digits, '_', '.' and '-'");
  });
}

}  // namespace lccfs::cli
