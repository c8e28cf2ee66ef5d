// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <system_error>

#include "store/common/errors.h"

namespace lccfs::local {

Error system_error(const std::string& what, Outcome outcome, int number) {
  return {meaning_of(number), what + ": " + std::generic_category().message(number), outcome};
}

Result<std::vector<std::string>> names_in(int directory, const std::string& name, const std::string& what) {
  const int opened = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opened < 0 ? nullptr : ::fdopendir(opened), ::closedir);
  if (!listing) return std::unexpected(system_error(what));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;  // nothing else tells the end from an error
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr && errno != 0) return std::unexpected(system_error(what));
    if (entry == nullptr) return names;
    const std::string found = entry->d_name;
    if (found != "." && found != "..") names.push_back(found);
  }
}

Result<> sync_directory(int directory, const std::string& what) {
  if (::fsync(directory) != 0) return std::unexpected(system_error("fsync " + what, Outcome::unknown));
  return {};
}

}  // namespace lccfs::local
