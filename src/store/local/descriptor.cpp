// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "store/common/errors.h"

namespace lccfs::local {
Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Error system_error(const std::string& what, Outcome outcome) { return system_error(errno, what, outcome); }

Error system_error(int number, const std::string& what, Outcome outcome) {
  return {meaning_of(number), what + ": " + std::generic_category().message(number), outcome};
}

Result<> sync_directory(int directory, const std::string& what) {
  if (::fsync(directory) != 0) return std::unexpected(system_error("fsync " + what, Outcome::unknown));
  return {};
}

}  // namespace lccfs::local
