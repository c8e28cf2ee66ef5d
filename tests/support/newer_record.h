// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/bytes.h"

namespace lccfs::test {

/// Its checksum is right.
inline Bytes record_with(const char* fields) {
  ByteWriter out;
  out.put_raw(fields);
  out.put(crc32c(out.bytes()));
  return out.take();
}

/// Any record but an entry, as version 2 might write it.
inline Bytes record_of_newer_version() { return record_with("\2 something else"); }
/// An entry, as version 3 might write it: the kind stands before the version.
inline Bytes entry_of_newer_version() { return record_with("\1\3 something else"); }

}  // namespace lccfs::test
