// SPDX-License-Identifier: LGPL-2.1-or-later
// conformance_victim DIRECTORY: a client of the local store there, to be fenced (victim_process.cpp).
#include <unistd.h>

#include <iostream>
#include <thread>

#include "conformance/victim.h"
#include "store/local/local_store.h"

namespace {

void print_identity(const lccfs::Bytes& identity) {
  const auto length = static_cast<std::uint32_t>(identity.size());
  std::cout.write(reinterpret_cast<const char*>(&length), sizeof length);
  std::cout.write(identity.data(), length);
  std::cout.flush();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto store = lccfs::open_local_store(argv[1], {});
  if (!store) {
    std::cerr << store.error().context << "\n";
    return 1;
  }
  std::atomic<bool> stop{false};
  std::jthread waits_for_end([&] {
    char unused = 0;
    while (read(STDIN_FILENO, &unused, 1) > 0) {
    }
    stop = true;
  });
  const std::string ended_by =
      lccfs::conformance::write_until_stopped(**store, stop, [&] { print_identity((*store)->identity()); });
  return ended_by == "stopped" ? 0 : 1;
}
