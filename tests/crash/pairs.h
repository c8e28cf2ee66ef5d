// SPDX-License-Identifier: LGPL-2.1-or-later
// The starting states and the operations that the enumerating tests combine. All happens in /d.
#pragma once

#include <string>
#include <vector>

#include "crash/call.h"

namespace lccfs::crash {

struct State {
  std::string name;
  std::vector<Call> setup;
};

/// /d with each of: a and b free, a file, an empty directory, a directory with a file; and both names of one file.
std::vector<State> states();
/// /d with a file a: empty, of one object, of several, sparse.
std::vector<State> data_states();
/// What changes bytes, size and attributes of the file a; objects are of object_size_bytes.
std::vector<Call> data_operations();
/// Reads, writes and cuts of the file a, each read and write within one object. `letter`: what is written.
std::vector<Call> file_calls(char letter);
/// What makes and removes inodes of other kinds, and in other ways, than operations().
std::vector<Call> further_operations();
/// On the names a and b, below a, and on /d itself. Modes tell apart who made what: the second client's are `mode` + 1.
std::vector<Call> operations(std::uint32_t mode);

}  // namespace lccfs::crash
