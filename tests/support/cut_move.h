// SPDX-License-Identifier: LGPL-2.1-or-later
// A rename across directories that its client did not end.
#pragma once

#include <chrono>
#include <string>

#include "support/catch.h"
#include "support/hooks.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

namespace lccfs::test {

struct CutMove {
  Ino f, d;
};

/// A file f in the root that was to move to d/g; its client died before this step.
inline CutMove cut_move(TestVolume& volume, const std::string& step) {
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const CutMove cut{make_file(fs, root_ino, "f"), make_dir(fs, root_ino, "d")};
  mount.client->set_hook(once_on(step, {Fault::Kind::not_applied_and_crash}));
  static_cast<void>(fs.rename(root_ino, "f", cut.d, "g", RenameMode::replace));
  CHECK(mount.client->crashed());
  volume.clock().advance(std::chrono::minutes(2));
  return cut;
}

}  // namespace lccfs::test
