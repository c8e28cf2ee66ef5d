// SPDX-License-Identifier: LGPL-2.1-or-later
// All happens in /d, so that the root stays quiet. Modes tell inodes apart.
#include "crash/scenario.h"

#include "crash/call.h"
#include "crash/sampling.h"

namespace lccfs::crash {

using test::Paths;

Act make_file(std::string path, std::uint32_t mode) {
  return [=](Paths& at) { return on_names([&] { return at.make_file(path, mode); }); };
}
Act make_node(std::string path, NewNode node) {
  return [=](Paths& at) { return on_names([&] { return at.make_node(path, node); }); };
}
Act make_directory(std::string path, std::uint32_t mode) {
  return make_node(std::move(path), {FileType::directory, mode, 0, ""});
}
Act link(std::string path, std::string new_name) {
  return [=](Paths& at) { return on_names([&] { return at.link(path, new_name); }); };
}
Act unlink(std::string path) {
  return [=](Paths& at) { return on_names([&] { return at.unlink(path); }); };
}
Act rmdir(std::string path) {
  return [=](Paths& at) { return on_names([&] { return at.rmdir(path); }); };
}
Act rename(std::string from, std::string to, RenameMode mode) {
  return [=](Paths& at) { return on_names([&] { return at.rename(from, to, mode); }); };
}
Act chmod(std::string path, std::uint32_t mode) {
  return [=](Paths& at) { return at.chmod(path, mode); };
}
Act both(Act first, Act second) {
  return [=](Paths& at) -> Result<> {
    LCCFS_CHECK(first(at));
    return second(at);
  };
}

namespace {

const std::string root_line = "/ d755 3";

/// The tree with these lines below /d, which has that many links.
Tree d(unsigned links, Tree below) {
  below.insert(below.begin(), {root_line, "/d d700 " + std::to_string(links)});
  return below;
}

const std::vector<Act> empty{make_directory("/d", 0700)};

std::vector<Act> with(std::vector<Act> more) {
  more.insert(more.begin(), empty.begin(), empty.end());
  return more;
}

const Act file_a = make_file("/d/a", 0601);
const Act file_b = make_file("/d/b", 0602);
const Act directory_a = make_directory("/d/a", 0701);
const Act directory_b = make_directory("/d/b", 0702);

std::vector<Scenario> making() {
  return {
      {"create", empty, file_a, d(2, {"/d/a f601 1"}), {}, make_file("/d/a", 0603), {}},
      {"create, the directory removed beside it", empty, file_a, d(2, {"/d/a f601 1"}), {}, rmdir("/d"), {}},
      {"create, a directory of that name made beside it", empty, file_a, d(2, {"/d/a f601 1"}), {}, directory_a, {}},
      {"create, the name removed beside it", empty, file_a, d(2, {"/d/a f601 1"}), {}, unlink("/d/a"), {}},
      {"create, the name moved away beside it", empty, file_a, d(2, {"/d/a f601 1"}), {}, rename("/d/a", "/d/c"), {}},
      {"create where a name is",
       with({file_b}),
       make_file("/d/b", 0601),
       d(2, {"/d/b f602 1"}),
       ErrorCode::exists,
       unlink("/d/b"),
       {}},
      {"mkdir", empty, directory_a, d(3, {"/d/a d701 2"}), {}, make_directory("/d/a", 0703), {}},
      {"mkdir, another beside it",
       with({directory_b}),
       directory_a,
       d(4, {"/d/a d701 2", "/d/b d702 2"}),
       {},
       rmdir("/d/b"),
       {}},
      {"mkdir, removed beside it", empty, directory_a, d(3, {"/d/a d701 2"}), {}, rmdir("/d/a"), {}},
      {"mkdir, the directory removed beside it", empty, directory_a, d(3, {"/d/a d701 2"}), {}, rmdir("/d"), {}},
      {"mkdir where a name is",
       with({file_a}),
       directory_a,
       d(2, {"/d/a f601 1"}),
       ErrorCode::exists,
       unlink("/d/a"),
       {}},
      {"mknod", empty, make_node("/d/a", {FileType::fifo, 0601, 0, ""}), d(2, {"/d/a p601 1"}), {}, file_a, {}},
      {"symlink",
       empty,
       make_node("/d/a", {FileType::symlink, 0777, 0, "../to"}),
       d(2, {"/d/a l777 1 -> ../to"}),
       {},
       make_node("/d/a", {FileType::symlink, 0777, 0, "rival's"}),
       {}},
  };
}

std::vector<Scenario> linking() {
  const Act plain = link("/d/a", "/d/b");
  const Tree both_names = d(2, {"/d/a f601 2", "/d/b f601 2"});
  const Tree below = d(3, {"/d/a f601 2", "/d/b d702 2", "/d/b/f f601 2"});
  return {
      {"link", with({file_a}), plain, both_names, {}, plain, {}},
      {"link, the new name made beside it", with({file_a}), plain, both_names, {}, file_b, {}},
      {"link, the old name removed beside it", with({file_a}), plain, both_names, {}, unlink("/d/a"), {}},
      {"link, the old name moved away beside it", with({file_a}), plain, both_names, {}, rename("/d/a", "/d/c"), {}},
      {"link of an open file", with({file_a}), plain, both_names, {}, chmod("/d/a", 0604), "/d/a"},
      {"link into another directory",
       with({file_a, directory_b}),
       link("/d/a", "/d/b/f"),
       below,
       {},
       unlink("/d/a"),
       {}},
      {"link into another directory, which is removed beside it",
       with({file_a, directory_b}),
       link("/d/a", "/d/b/f"),
       below,
       {},
       rmdir("/d/b"),
       {}},
      {"link where a name is",
       with({file_a, file_b}),
       plain,
       d(2, {"/d/a f601 1", "/d/b f602 1"}),
       ErrorCode::exists,
       unlink("/d/b"),
       {}},
      {"link of a directory",
       with({directory_a}),
       plain,
       d(3, {"/d/a d701 2"}),
       ErrorCode::not_permitted,
       rmdir("/d/a"),
       {}},
      {"unlink of one name of two",
       with({file_a, plain}),
       unlink("/d/a"),
       d(2, {"/d/b f601 1"}),
       {},
       unlink("/d/b"),
       {}},
      {"unlink of one name of two, a third made beside it",
       with({file_a, plain}),
       unlink("/d/a"),
       d(2, {"/d/b f601 1"}),
       {},
       link("/d/b", "/d/c"),
       {}},
      {"unlink of the name in another directory",
       with({file_a, directory_b, link("/d/a", "/d/b/f")}),
       unlink("/d/b/f"),
       d(3, {"/d/a f601 1", "/d/b d702 2"}),
       {},
       unlink("/d/a"),
       {}},
      {"rename over one name of two",
       with({file_a, plain, make_file("/d/c", 0603)}),
       rename("/d/c", "/d/b"),
       d(2, {"/d/a f601 1", "/d/b f603 1"}),
       {},
       unlink("/d/a"),
       {}},
      {"rename of one name over the other",
       with({file_a, plain}),
       rename("/d/a", "/d/b"),
       both_names,
       {},
       unlink("/d/b"),
       {}},
  };
}

std::vector<Scenario> removing() {
  return {
      {"unlink", with({file_a}), unlink("/d/a"), d(2, {}), {}, unlink("/d/a"), {}},
      {"unlink, another beside it",
       with({file_a, file_b}),
       unlink("/d/a"),
       d(2, {"/d/b f602 1"}),
       {},
       rename("/d/b", "/d/a"),
       {}},
      {"unlink, made anew beside it", with({file_a}), unlink("/d/a"), d(2, {}), {}, make_file("/d/a", 0603), {}},
      {"unlink, moved away beside it", with({file_a}), unlink("/d/a"), d(2, {}), {}, rename("/d/a", "/d/c"), {}},
      {"unlink of an open file", with({file_a}), unlink("/d/a"), d(2, {}), {}, chmod("/d/a", 0604), "/d/a"},
      {"unlink of a name that is not there", empty, unlink("/d/a"), d(2, {}), ErrorCode::not_found, file_a, {}},
      {"unlink of a directory",
       with({directory_a}),
       unlink("/d/a"),
       d(3, {"/d/a d701 2"}),
       ErrorCode::is_directory,
       rmdir("/d/a"),
       {}},
      {"rmdir", with({directory_a}), rmdir("/d/a"), d(2, {}), {}, rmdir("/d/a"), {}},
      {"rmdir, a file made in it beside it",
       with({directory_a}),
       rmdir("/d/a"),
       d(2, {}),
       {},
       make_file("/d/a/f", 0603),
       {}},
      {"rmdir, moved away beside it", with({directory_a}), rmdir("/d/a"), d(2, {}), {}, rename("/d/a", "/d/c"), {}},
      {"rmdir, moved away and filled beside it",
       with({directory_a}),
       rmdir("/d/a"),
       d(2, {}),
       {},
       both(rename("/d/a", "/d/c"), make_file("/d/c/f", 0603)),
       {},
       true},
      {"rmdir, another made beside it", with({directory_a}), rmdir("/d/a"), d(2, {}), {}, directory_b, {}},
      {"rmdir, its mode changed beside it", with({directory_a}), rmdir("/d/a"), d(2, {}), {}, chmod("/d/a", 0705), {}},
      {"rmdir of a directory with a file",
       with({directory_a, make_file("/d/a/f", 0603)}),
       rmdir("/d/a"),
       d(3, {"/d/a d701 2", "/d/a/f f603 1"}),
       ErrorCode::not_empty,
       unlink("/d/a/f"),
       {}},
      {"rmdir of a file",
       with({file_a}),
       rmdir("/d/a"),
       d(2, {"/d/a f601 1"}),
       ErrorCode::not_directory,
       unlink("/d/a"),
       {}},
      {"rmdir of a name that is not there", empty, rmdir("/d/a"), d(2, {}), ErrorCode::not_found, directory_a, {}},
  };
}

std::vector<Scenario> renaming() {
  const Act plain = rename("/d/a", "/d/b");
  return {
      {"rename", with({file_a}), plain, d(2, {"/d/b f601 1"}), {}, plain, {}},
      {"rename, the new name made beside it", with({file_a}), plain, d(2, {"/d/b f601 1"}), {}, file_b, {}},
      {"rename, the old name removed beside it", with({file_a}), plain, d(2, {"/d/b f601 1"}), {}, unlink("/d/a"), {}},
      {"rename of a directory", with({directory_a}), plain, d(3, {"/d/b d701 2"}), {}, rmdir("/d/a"), {}},
      {"rename of an open file", with({file_a}), plain, d(2, {"/d/b f601 1"}), {}, chmod("/d/a", 0604), "/d/a"},
      {"rename to itself", with({file_a}), rename("/d/a", "/d/a"), d(2, {"/d/a f601 1"}), {}, unlink("/d/a"), {}},
      {"rename of a name that is not there", empty, plain, d(2, {}), ErrorCode::not_found, file_a, {}},
      {"rename over a file", with({file_a, file_b}), plain, d(2, {"/d/b f601 1"}), {}, unlink("/d/b"), {}},
      {"rename over a file, both exchanged beside it",
       with({file_a, file_b}),
       plain,
       d(2, {"/d/b f601 1"}),
       {},
       rename("/d/a", "/d/b", RenameMode::exchange),
       {}},
      {"rename over an open file", with({file_a, file_b}), plain, d(2, {"/d/b f601 1"}), {}, unlink("/d/a"), "/d/b"},
      {"rename over an empty directory",
       with({directory_a, directory_b}),
       plain,
       d(3, {"/d/b d701 2"}),
       {},
       rmdir("/d/b"),
       {}},
      {"rename over an empty directory, a file made in it beside it",
       with({directory_a, directory_b}),
       plain,
       d(3, {"/d/b d701 2"}),
       {},
       make_file("/d/b/f", 0603),
       {}},
      {"rename over an empty directory, which is moved beside it",
       with({directory_a, directory_b}),
       plain,
       d(3, {"/d/b d701 2"}),
       {},
       rename("/d/b", "/d/c"),
       {}},
      {"rename over an empty directory, which is moved and filled beside it",
       with({directory_a, directory_b}),
       plain,
       d(3, {"/d/b d701 2"}),
       {},
       both(rename("/d/b", "/d/c"), make_file("/d/c/f", 0603)),
       {},
       true},
      {"rename over a directory with a file",
       with({directory_a, directory_b, make_file("/d/b/f", 0603)}),
       plain,
       d(4, {"/d/a d701 2", "/d/b d702 2", "/d/b/f f603 1"}),
       ErrorCode::not_empty,
       unlink("/d/b/f"),
       {}},
      {"rename of a file over a directory",
       with({file_a, directory_b}),
       plain,
       d(3, {"/d/a f601 1", "/d/b d702 2"}),
       ErrorCode::is_directory,
       rmdir("/d/b"),
       {}},
      {"rename of a directory over a file",
       with({directory_a, file_b}),
       plain,
       d(3, {"/d/a d701 2", "/d/b f602 1"}),
       ErrorCode::not_directory,
       unlink("/d/b"),
       {}},
      {"rename to a free name only",
       with({file_a}),
       rename("/d/a", "/d/b", RenameMode::no_replace),
       d(2, {"/d/b f601 1"}),
       {},
       file_b,
       {}},
      {"rename to a free name only, which is taken",
       with({file_a, file_b}),
       rename("/d/a", "/d/b", RenameMode::no_replace),
       d(2, {"/d/a f601 1", "/d/b f602 1"}),
       ErrorCode::exists,
       unlink("/d/b"),
       {}},
      {"exchange",
       with({file_a, directory_b}),
       rename("/d/a", "/d/b", RenameMode::exchange),
       d(3, {"/d/a d702 2", "/d/b f601 1"}),
       {},
       unlink("/d/a"),
       {}},
      {"exchange, with itself beside it",
       with({file_a, file_b}),
       rename("/d/a", "/d/b", RenameMode::exchange),
       d(2, {"/d/a f602 1", "/d/b f601 1"}),
       {},
       rename("/d/a", "/d/b", RenameMode::exchange),
       {}},
      {"exchange with a name that is not there",
       with({file_a}),
       rename("/d/a", "/d/b", RenameMode::exchange),
       d(2, {"/d/a f601 1"}),
       ErrorCode::not_found,
       file_b,
       {}},
      {"chmod", with({file_a}), chmod("/d/a", 0605), d(2, {"/d/a f605 1"}), {}, chmod("/d/a", 0606), {}},
  };
}

std::vector<Scenario> moving() {
  const Act into = rename("/d/a", "/d/b/f"), out = rename("/d/b/f", "/d/a");
  const Act file_below = make_file("/d/b/f", 0603);
  const Tree is_below = d(3, {"/d/b d702 2", "/d/b/f f601 1"}), is_out = d(3, {"/d/a f603 1", "/d/b d702 2"});
  const auto moves = [&](std::string name, Act rival, std::optional<std::string> open = {},
                         bool rival_does_two = false) {
    return Scenario{"move, " + name, with({file_a, directory_b}), into, is_below, {}, std::move(rival), std::move(open),
                    rival_does_two};
  };
  const auto replaces = [&](std::string name, Act rival, std::optional<std::string> open = {}) {
    return Scenario{"move over a file, " + name,
                    with({file_a, directory_b, file_below}),
                    into,
                    is_below,
                    {},
                    std::move(rival),
                    std::move(open)};
  };
  const auto leaves = [&](std::string name, Act rival) {
    return Scenario{"move out, " + name, with({directory_b, file_below}), out, is_out, {}, std::move(rival), {}};
  };
  return {
      moves("the same beside it", into),
      moves("the new name made beside it", file_below),
      moves("the old name removed beside it", unlink("/d/a")),
      moves("the old name moved elsewhere beside it", rename("/d/a", "/d/c")),
      moves("the old name moved elsewhere and made anew beside it",
            both(rename("/d/a", "/d/c"), make_file("/d/a", 0604)), {}, true),
      moves("a link made beside it", link("/d/a", "/d/c")),
      moves("the new directory removed beside it", rmdir("/d/b")),
      moves("the new directory renamed beside it", rename("/d/b", "/d/c")),
      moves("of an open file", chmod("/d/a", 0604), "/d/a"),
      moves("and back beside it", out),
      replaces("which is removed beside it", unlink("/d/b/f")),
      replaces("which moves the other way beside it", out),
      replaces("which moves elsewhere beside it", rename("/d/b/f", "/d/c")),
      replaces("which is open", unlink("/d/a"), "/d/b/f"),
      leaves("the old directory removed beside it", rmdir("/d/b")),
      leaves("the old name removed beside it", unlink("/d/b/f")),
      leaves("the new name made beside it", file_a),
      {"move over a directory",
       with({file_a, directory_b, make_directory("/d/b/f", 0703)}),
       into,
       d(3, {"/d/a f601 1", "/d/b d702 3", "/d/b/f d703 2"}),
       ErrorCode::is_directory,
       rmdir("/d/b/f"),
       {}},
      {"move to a free name only, which is taken",
       with({file_a, directory_b, file_below}),
       rename("/d/a", "/d/b/f", RenameMode::no_replace),
       d(3, {"/d/a f601 1", "/d/b d702 2", "/d/b/f f603 1"}),
       ErrorCode::exists,
       unlink("/d/b/f"),
       {}},
      {"move of a name that is not there",
       with({directory_b}),
       into,
       d(3, {"/d/b d702 2"}),
       ErrorCode::not_found,
       file_a,
       {}},
      {"move of one name of a file over the other",
       with({file_a, directory_b, link("/d/a", "/d/b/f")}),
       into,
       d(3, {"/d/a f601 2", "/d/b d702 2", "/d/b/f f601 2"}),
       {},
       unlink("/d/b/f"),
       {}},
      {"move of one name of two",
       with({file_a, directory_b, link("/d/a", "/d/c")}),
       into,
       d(3, {"/d/b d702 2", "/d/b/f f601 2", "/d/c f601 2"}),
       {},
       unlink("/d/c"),
       {}},
  };
}

std::vector<Scenario> moving_directories() {
  const Act into = rename("/d/a", "/d/b/f"), out = rename("/d/b/f", "/d/a");
  const Act directory_below = make_directory("/d/b/f", 0703), file_below = make_file("/d/b/f", 0603);
  const Tree is_below = d(3, {"/d/b d702 3", "/d/b/f d701 2"}), is_out = d(4, {"/d/a d703 2", "/d/b d702 2"});
  const auto moves = [&](std::string name, Act rival, bool rival_does_two = false) {
    return Scenario{"move a directory, " + name,
                    with({directory_a, directory_b}),
                    into,
                    is_below,
                    {},
                    std::move(rival),
                    {},
                    rival_does_two};
  };
  const auto replaces = [&](std::string name, Act rival) {
    return Scenario{"move a directory over another, " + name,
                    with({directory_a, directory_b, directory_below}),
                    into,
                    is_below,
                    {},
                    std::move(rival),
                    {}};
  };
  const auto leaves = [&](std::string name, Act rival) {
    return Scenario{
        "move a directory out, " + name, with({directory_b, directory_below}), out, is_out, {}, std::move(rival), {}};
  };
  return {
      moves("the same beside it", into),
      moves("the new name made beside it", file_below),
      moves("a directory of the new name made beside it", directory_below),
      moves("another directory made beside both", make_directory("/d/b/c", 0704)),
      moves("removed beside it", rmdir("/d/a")),
      moves("moved elsewhere beside it", rename("/d/a", "/d/c")),
      moves("moved elsewhere and made anew beside it", both(rename("/d/a", "/d/c"), make_directory("/d/a", 0704)),
            true),
      moves("a file made in it beside it", make_file("/d/a/f", 0604)),
      moves("the new directory removed beside it", rmdir("/d/b")),
      moves("the new directory renamed beside it", rename("/d/b", "/d/c")),
      moves("and back beside it", out),
      replaces("which is removed beside it", rmdir("/d/b/f")),
      replaces("which is filled beside it", make_file("/d/b/f/x", 0604)),
      replaces("which moves the other way beside it", out),
      replaces("which moves elsewhere beside it", rename("/d/b/f", "/d/c")),
      leaves("the old directory removed beside it", rmdir("/d/b")),
      leaves("removed beside it", rmdir("/d/b/f")),
      leaves("the new name made beside it", directory_a),
      {"move a directory into itself",
       with({directory_a}),
       rename("/d/a", "/d/a/f"),
       d(3, {"/d/a d701 2"}),
       ErrorCode::invalid,
       make_directory("/d/a/f", 0704),
       {}},
      {"move a directory over a full one",
       with({directory_a, directory_b, directory_below, make_file("/d/b/f/x", 0604)}),
       into,
       d(4, {"/d/a d701 2", "/d/b d702 3", "/d/b/f d703 2", "/d/b/f/x f604 1"}),
       ErrorCode::not_empty,
       unlink("/d/b/f/x"),
       {}},
      {"move a directory over a file",
       with({directory_a, directory_b, file_below}),
       into,
       d(4, {"/d/a d701 2", "/d/b d702 2", "/d/b/f f603 1"}),
       ErrorCode::not_directory,
       unlink("/d/b/f"),
       {}},
  };
}

}  // namespace

const std::vector<Scenario>& all_scenarios() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> joined = making();
    for (auto* more : {&linking, &removing, &renaming, &moving, &moving_directories}) {
      for (Scenario& scenario : more()) joined.push_back(std::move(scenario));
    }
    return joined;
  }();
  return all;
}

const std::vector<const Scenario*>& drawn_scenarios() {
  static const std::vector<const Scenario*> drawn = [] {
    const auto& all = all_scenarios();
    std::vector<const Scenario*> chosen;
    for (const auto i : drawn_of(all.size())) chosen.push_back(&all[i]);
    return chosen;
  }();
  return drawn;
}

}  // namespace lccfs::crash
