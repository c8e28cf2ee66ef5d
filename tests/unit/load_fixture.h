// SPDX-License-Identifier: LGPL-2.1-or-later
// Dumps of hand-made volumes, and empty volumes that take them.
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "check_fixture.h"
#include "lccfs/volume.h"
#include "objects/inode.h"
#include "objects/super.h"
#include "support/fake_clock.h"
#include "survey/dump.h"
#include "survey/load.h"

namespace lccfs::test {

inline format::SuperRecord super_of(ObjectStore& store) {
  return need(objects::read_super(objects::reader_of(store))).record;
}

/// `words`: about what is left out.
inline std::string dump_of(ObjectStore& store, std::vector<std::string>& words) {
  std::string text;
  FakeClock clock;
  survey::DumpOptions how;
  how.on_line = [&text](const std::string& line) -> Result<> { return text += line, Result<>{}; };
  how.on_damage = [&words](const std::string& what) { words.push_back(what); };
  const auto left_out = need(survey::dump_volume(store, super_of(store), clock, how));
  CHECK(left_out == words.size());
  return text;
}

inline std::string dump_of(ObjectStore& store) {
  std::vector<std::string> words;
  auto text = dump_of(store, words);
  CHECK(words.empty());
  return text;
}

inline Result<survey::Loaded> load(ObjectStore& store, const std::string& text) {
  std::istringstream dump(text);
  return survey::load_volume(store, dump, {.jobs = 1});
}

/// Just made, with the objects' size of the hand-made one.
struct EmptyVolume {
  EmptyVolume() {
    FakeClock clock;
    MakeVolumeOptions options;
    options.object_size_bytes = object_size;
    need(make_volume(*store, clock, options));
  }
  std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make({.page_limit = 3});
  std::shared_ptr<ScriptedClient> store = cluster->new_client();
};

}  // namespace lccfs::test
