// SPDX-License-Identifier: LGPL-2.1-or-later
// One operation of one client, in a state that matters, beside what another client does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lccfs/file_system.h"
#include "support/paths.h"

namespace lccfs::crash {

/// What one client does: one operation on the file system.
using Act = std::function<Result<>(test::Paths&)>;
using Tree = std::vector<std::string>;

struct Scenario {
  std::string name;
  std::vector<Act> setup;
  Act operation;
  Tree after;                            ///< if nothing goes wrong
  std::optional<ErrorCode> error;        ///< what the operation answers; then `after` is the tree before
  Act rival;                             ///< on the same names, by another client
  std::optional<std::string> held_open;  ///< a file that the operation's client has open
  bool rival_does_two = false;           ///< the rival does two operations, and may die in between
};

Act make_file(std::string path, std::uint32_t mode);
Act make_node(std::string path, NewNode node);
Act make_directory(std::string path, std::uint32_t mode);
Act link(std::string path, std::string new_name);
Act unlink(std::string path);
Act rmdir(std::string path);
Act rename(std::string from, std::string to, RenameMode mode = RenameMode::replace);
Act chmod(std::string path, std::uint32_t mode);
/// The second only if the first succeeds.
Act both(Act first, Act second);

const std::vector<Scenario>& all_scenarios();
/// Those that are drawn (crash/sampling.h), at least one.
const std::vector<const Scenario*>& drawn_scenarios();

}  // namespace lccfs::crash
