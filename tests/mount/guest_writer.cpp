// SPDX-License-Identifier: LGPL-2.1-or-later
// guest_writer DISK...: runs in a guest, on disks below /dev that nobody else writes. On each disk three processes
// write one record of 4 KiB after the other, and tell each on standard output once fsync(2) has returned for it:
// "vda a 17". Records a and b stay where they are; those of r go around in a few blocks. Each write is followed by a
// read of an older record. They continue after the records that they find there, and tell how many ("vda a found 17").
// test_migration.py knows where records are.

#include <fcntl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr long kBlock = 4096, kLine = 16, kAround = 16, kFirst = 1024;

alignas(kBlock) char record[kBlock];
alignas(kBlock) char found[kBlock];
const char* disk;
char kind;
int fd;

[[noreturn]] void fail(const char* what, long number) {
  dprintf(STDOUT_FILENO, "%s %c FAILED: %s %ld: %s\n", disk, kind, what, number, strerror(errno));
  exit(1);
}

off_t place(long number) { return kBlock * (kind == 'r' ? number % kAround : kFirst + 2 * number + (kind == 'b')); }

void make(long number) {
  char line[32];
  snprintf(line, sizeof line, "%c %013ld\n", kind, number);
  for (long at = 0; at < kBlock; at += kLine) memcpy(record + at, line, kLine);
}

void read(long number) {
  errno = 0;
  if (pread(fd, found, kBlock, place(number)) != kBlock) fail("reading", number);
}

bool is_there(long number) {
  read(number);
  make(number);
  return memcmp(found, record, kBlock) == 0;
}

long count() {
  long number = 0;
  if (kind != 'r') {
    while (is_there(number)) ++number;
    return number;
  }
  for (long at = 0; at < kAround; ++at) {
    read(at);
    if (found[0] == kind && atol(found + 2) >= number) number = atol(found + 2) + 1;
  }
  return number;
}

[[noreturn]] void write_records() {
  char path[64];
  snprintf(path, sizeof path, "/dev/%s", disk);
  fd = open(path, O_RDWR | O_DIRECT);
  if (fd < 0) fail("opening", 0);
  long number = count();
  dprintf(STDOUT_FILENO, "%s %c found %ld\n", disk, kind, number);
  for (;; ++number) {
    make(number);
    errno = 0;
    if (pwrite(fd, record, kBlock, place(number)) != kBlock || fsync(fd) != 0) fail("writing", number);
    dprintf(STDOUT_FILENO, "%s %c %ld\n", disk, kind, number);
    tcdrain(STDOUT_FILENO);  // who kills the machine finds at most one record that was not told
    const long older = kind != 'r' ? number / 2 : number < kAround ? 0 : number - kAround + 1;
    if (!is_there(older)) fail("another record in the place of", older);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int at = 1; at < argc; ++at) {
    for (const char* each = "abr"; *each; ++each) {
      disk = argv[at];
      kind = *each;
      if (fork() == 0) write_records();
    }
  }
  while (wait(nullptr) > 0) continue;
}
