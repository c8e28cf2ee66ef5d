// SPDX-License-Identifier: LGPL-2.1-or-later
// Repairs of renames across directories that were cut: which name stands in the end, whatever is damaged. And link
// counts that somebody is about to correct.
#include "repair_volume.h"
#include "support/collecting.h"
#include "support/cut_move.h"
#include "support/newer_record.h"

namespace lccfs {
namespace {

using namespace test;
using scripted::Objects;

using Lines = std::vector<std::string>;

struct MoveToRepair {
  explicit MoveToRepair(const std::string& step) {
    const auto cut = cut_move(volume, step);
    f = cut.f;
    d = cut.d;
  }

  /// Changes the value of the only key there that this is true of.
  void change(Ino directory, const std::function<bool(const std::string&)>& is_meant,
              const std::function<void(Bytes&)>& how) {
    volume.cluster().with_objects([&](Objects& objects) {
      unsigned met = 0;
      for (auto& [key, value] : objects.metadata().at(format::inode_object(directory)).keys) {
        if (!is_meant(key)) continue;
        how(value);
        ++met;
      }
      CHECK(met == 1);
    });
  }
  void change_entry(const std::function<void(Bytes&)>& how) {
    change(
        root_ino,
        [](const std::string& key) {
          const auto entry = format::parse_entry_key(key);
          return entry && entry->name == "f";
        },
        how);
  }
  void change_reverse_key(const std::function<void(Bytes&)>& how) {
    change(
        root_ino, [&](const std::string& key) { return key == format::reverse_key(f, "f"); }, how);
  }
  void change_decision(const std::function<void(Bytes&)>& how) {
    change(
        d, [](const std::string& key) { return format::parse_decision_key(key).has_value(); }, how);
  }
  void erase_keys(Ino directory, const std::function<bool(const std::string&)>& is_meant) {
    volume.cluster().with_objects([&](Objects& objects) {
      auto& keys = objects.metadata().at(format::inode_object(directory)).keys;
      CHECK(std::erase_if(keys, [&](const auto& key_and_value) { return is_meant(key_and_value.first); }) == 1);
    });
  }

  void repair() {
    const auto told = need(try_repair(volume.new_client(), volume.clock()));
    INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
    CHECK(findings_of(volume.cluster()) == Lines{});
    CHECK(told.report.left == 0);
  }
  /// Of the file, as a new client sees them.
  Lines names() {
    auto mount = volume.mount();
    Lines found;
    if (ino_of(*mount.file_system, root_ino, "f") == f) found.emplace_back("f");
    if (ino_of(*mount.file_system, d, "g") == f) found.emplace_back("d/g");
    const auto attributes = need(mount->get_attributes(f)).attributes;
    CHECK(attributes.nlink == found.size());
    need(mount->unmount());
    return found;
  }

  TestVolume volume{small_objects()};
  Ino f, d;
};

const std::string cancelled = "move entry in", committed = "move entry out";
Lines names_after(const std::string& step) { return {step == committed ? "d/g" : "f"}; }

void make_noise(Bytes& value) { value = "noise of some length"; }
void make_marker(Bytes& value) { value = format::marker_value; }
void take_mark(Bytes& value) {
  auto entry = need(format::decode<format::EntryRecord>(value));
  entry.mark.reset();
  value = encode(entry);
}

TEST_CASE("a damaged entry or reverse key gets its mark back, and the file has the one name that was decided") {
  struct OneDamage {
    std::string what;
    std::function<void(MoveToRepair&)> harm;
  };
  const std::vector<OneDamage> all{
      {"nothing", [](MoveToRepair&) {}},
      {"noise in the entry", [](MoveToRepair& m) { m.change_entry(make_noise); }},
      {"an entry without its mark", [](MoveToRepair& m) { m.change_entry(take_mark); }},
      {"no entry",
       [](MoveToRepair& m) {
         m.erase_keys(root_ino, [](const std::string& key) {
           const auto entry = format::parse_entry_key(key);
           return entry && entry->name == "f";
         });
       }},
      {"an entry of another type",
       [](MoveToRepair& m) {
         m.change_entry([](Bytes& value) {
           auto entry = need(format::decode<format::EntryRecord>(value));
           entry.type = FileType::fifo;
           value = encode(entry);
         });
       }},
      {"noise in the reverse key", [](MoveToRepair& m) { m.change_reverse_key(make_noise); }},
      {"a reverse key without its mark", [](MoveToRepair& m) { m.change_reverse_key(make_marker); }},
      {"no reverse key",
       [](MoveToRepair& m) {
         m.erase_keys(root_ino, [&](const std::string& key) { return key == format::reverse_key(m.f, "f"); });
       }},
  };
  for (const auto& step : {cancelled, committed}) {
    for (const auto& damage : all) {
      INFO(damage.what << ", before " << step);
      MoveToRepair move(step);
      damage.harm(move);
      move.repair();
      CHECK(move.names() == names_after(step));
      CHECK(traces_left(move.volume.cluster()).empty());
    }
  }
}

TEST_CASE("a decision that a newer version has written stays, though the mark of its move is repaired") {
  MoveToRepair move(committed);
  const Bytes decision = record_with("\3 something else");
  move.change_decision([&](Bytes& value) { value = decision; });
  move.change_reverse_key(make_marker);
  const auto told = need(try_repair(move.volume.new_client(), move.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(move.volume.cluster()) == Lines{"newer version: " + format::inode_object(move.d)});
  move.change_decision([&](const Bytes& value) { CHECK(value == decision); });
}

TEST_CASE(
    "a decision that cannot be read is left beside an entry that a newer version has written: it may be the new one") {
  MoveToRepair move(committed);
  move.change_decision(make_noise);
  move.change(
      move.d, [](const std::string& key) { return format::parse_entry_key(key).has_value(); },
      [](Bytes& value) { value = entry_of_newer_version(); });
  const auto told = need(try_repair(move.volume.new_client(), move.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  const auto d = format::inode_object(move.d);
  CHECK(findings_of(move.volume.cluster()) == Lines{"corrupt: " + d, "newer version: " + d, "stray reverse key: " + d});
  move.change_entry([](const Bytes& value) {
    const bool has_mark = need(format::decode<format::EntryRecord>(value)).mark.has_value();
    CHECK(has_mark);
  });
}

TEST_CASE("a decision that cannot be read is committed if the new entry has its token, with any damage to the mark") {
  const bool entry_too = GENERATE(true, false), reverse_key_too = GENERATE(true, false);
  if (entry_too && reverse_key_too) return;  // nothing tells of the mark
  MoveToRepair move(committed);
  move.change_decision(make_noise);
  if (entry_too) move.change_entry(make_noise);
  if (reverse_key_too) move.change_reverse_key(make_noise);
  move.repair();
  CHECK(move.names() == Lines{"d/g"});
}

TEST_CASE("a decision that is lost with the mark in the entry comes back from the reverse key and the new entry") {
  MoveToRepair move(committed);
  move.change_entry(take_mark);
  move.erase_keys(move.d, [](const std::string& key) { return format::parse_decision_key(key).has_value(); });
  move.repair();
  CHECK(move.names() == Lines{"d/g"});
}

TEST_CASE("a file that has moved gets its lost new entry back: its old name is none any more") {
  MoveToRepair move(committed);
  move.erase_keys(move.d, [](const std::string& key) { return format::parse_entry_key(key).has_value(); });
  move.repair();
  CHECK(move.names() == Lines{"d/g"});
}

TEST_CASE("where nothing proves what was decided, no name is taken away") {
  MoveToRepair move(committed);
  move.change_decision(make_noise);
  auto mount = move.volume.mount();
  need(mount->rename(move.d, "g", move.d, "other", RenameMode::replace));
  need(mount->unmount());
  move.repair();
  auto after = move.volume.mount();
  CHECK(ino_of(*after.file_system, root_ino, "f") == move.f);
  CHECK(ino_of(*after.file_system, move.d, "other") == move.f);
  CHECK(need(after->get_attributes(move.f)).attributes.nlink == 2);
}

TEST_CASE("a mark of an earlier life of the name is not believed") {
  MoveToRepair move(committed);
  move.change_entry([](Bytes& value) {
    auto entry = need(format::decode<format::EntryRecord>(value));
    entry.mark.reset();
    ++entry.token.number;
    value = encode(entry);
  });
  move.repair();
  CHECK(move.names() == Lines{"f", "d/g"});
}

TEST_CASE("repairs of moves may be cut at any step, and are done by the next") {
  for (const auto& step : {cancelled, committed}) {
    for (const auto& harm : std::vector<std::function<void(MoveToRepair&)>>{
             [](MoveToRepair& m) { m.change_entry(take_mark); }, [](MoveToRepair& m) { m.change_entry(make_noise); },
             [&](MoveToRepair& m) {
               if (step == committed) m.change_decision(make_noise);
               m.change_reverse_key(make_marker);
             }}) {
      for (unsigned n = 0;; ++n) {
        INFO("before " << step << ", step " << n);
        MoveToRepair move(step);
        harm(move);
        const auto client = move.volume.new_client();
        const NthStepOfRepair fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
        client->set_hook(fault);
        static_cast<void>(try_repair(client, move.volume.clock()));
        if (!fault.reached()) break;
        move.volume.clock().advance(std::chrono::seconds(61));
        move.repair();
        REQUIRE(move.names() == names_after(step));
      }
    }
  }
}

/// /p/x was to move to /q/y, and has a file; its client died before this step. The new directory is made first or last:
/// which of two names is met first is not to matter.
struct DirectoryMoveToRepair {
  DirectoryMoveToRepair(const std::string& step, bool new_parent_first) {
    auto mount = volume.mount();
    auto& fs = *mount.file_system;
    if (new_parent_first) q = make_dir(fs, root_ino, "q");
    p = make_dir(fs, root_ino, "p");
    if (!new_parent_first) q = make_dir(fs, root_ino, "q");
    x = make_dir(fs, p, "x");
    f = make_file(fs, x, "f");
    mount.client->set_hook(once_on(step, {Fault::Kind::not_applied_and_crash}));
    static_cast<void>(fs.rename(p, "x", q, "y", RenameMode::replace));
    CHECK(mount.client->crashed());
    volume.clock().advance(std::chrono::minutes(2));
  }

  using Keys = std::map<std::string, Bytes>;
  void change_keys(Ino directory, const std::function<void(Keys&)>& how) {
    volume.cluster().with_objects(
        [&](Objects& objects) { how(objects.metadata().at(format::inode_object(directory)).keys); });
  }
  static Bytes& value_of(Keys& keys, const std::string& prefix) { return keys.lower_bound(prefix)->second; }
  void change_entry(const std::function<void(Bytes&)>& how) {
    change_keys(p, [&](Keys& keys) { how(value_of(keys, "n/")); });
  }
  void change_reverse_key(const std::function<void(Bytes&)>& how) {
    change_keys(p, [&](Keys& keys) { how(value_of(keys, "i/")); });
  }
  void change_decision(const std::function<void(Bytes&)>& how) {
    change_keys(q, [&](Keys& keys) { how(value_of(keys, "x/")); });
  }
  /// If there is one.
  void change_key(Ino directory, const std::string& prefix, const std::function<void(Keys&, Keys::iterator)>& how) {
    change_keys(directory, [&](Keys& keys) {
      const auto found = keys.lower_bound(prefix);
      if (found != keys.end() && found->first.starts_with(prefix)) how(keys, found);
    });
  }
  void erase_key(Ino directory, const std::string& prefix) {
    change_key(directory, prefix, [](Keys& keys, Keys::iterator found) { keys.erase(found); });
  }
  void harm_key(Ino directory, const std::string& prefix) {
    change_key(directory, prefix, [](Keys&, Keys::iterator found) { make_noise(found->second); });
  }

  void check_repaired_to(std::optional<bool> moved) {
    const auto told = need(try_repair(volume.new_client(), volume.clock()));
    INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
    CHECK(findings_of(volume.cluster()) == Lines{});
    CHECK(told.report.left == 0);
    auto mount = volume.mount();
    const bool is_old = ino_of(*mount.file_system, p, "x") == x, is_new = ino_of(*mount.file_system, q, "y") == x;
    CHECK(is_old != is_new);
    if (moved) CHECK(is_new == *moved);
    CHECK(ino_of(*mount.file_system, x, "f") == f);
    CHECK(need(mount->lookup(x, "..")).attributes.ino == (is_new ? q : p));
    need(mount->unmount());
    CHECK(problems(volume.cluster()).empty());
    CHECK(traces_left(volume.cluster()).empty());
  }

  TestVolume volume{small_objects()};
  Ino p, q, x, f;
};

TEST_CASE("a directory whose cut move was damaged has one name, with all that is in it") {
  using Cut = DirectoryMoveToRepair;
  struct OneDamage {
    std::string what;
    std::function<void(Cut&)> harm;
  };
  const std::vector<OneDamage> all{
      {"nothing", [](Cut&) {}},
      {"noise in the entry", [](Cut& m) { m.change_entry(make_noise); }},
      {"an entry without its mark", [](Cut& m) { m.change_entry(take_mark); }},
      {"no entry", [](Cut& m) { m.erase_key(m.p, "n/"); }},
      {"noise in the reverse key", [](Cut& m) { m.change_reverse_key(make_noise); }},
      {"a reverse key without its mark", [](Cut& m) { m.change_reverse_key(make_marker); }},
      {"no reverse key", [](Cut& m) { m.erase_key(m.p, "i/"); }},
      {"no back-pointer to the new directory", [](Cut& m) { m.erase_key(m.x, "p/"); }},
      {"no new entry", [](Cut& m) { m.erase_key(m.q, "n/"); }},
      {"noise in the new entry", [](Cut& m) { m.harm_key(m.q, "n/"); }},
      {"no new reverse key", [](Cut& m) { m.erase_key(m.q, "i/"); }},
      {"noise in the new reverse key", [](Cut& m) { m.harm_key(m.q, "i/"); }},
  };
  for (const bool new_parent_first : {false, true}) {
    for (const auto& damage : all) {
      for (const auto& step : {cancelled, committed}) {
        INFO(damage.what << ", before " << step << ", new parent first: " << new_parent_first);
        Cut move(step, new_parent_first);
        damage.harm(move);
        move.check_repaired_to(step == committed);
      }
      INFO(damage.what << ", and noise in the decision, new parent first: " << new_parent_first);
      Cut move(committed, new_parent_first);
      damage.harm(move);
      move.change_decision(make_noise);
      move.check_repaired_to(std::nullopt);
      INFO(damage.what << ", and no decision, new parent first: " << new_parent_first);
      Cut without(committed, new_parent_first);
      damage.harm(without);
      without.erase_key(without.q, "x/");
      without.check_repaired_to(std::nullopt);
    }
  }
}

TEST_CASE("repairs of a directory's cut move may be cut at any step, and are done by the next") {
  using Cut = DirectoryMoveToRepair;
  const std::vector<std::function<void(Cut&)>> harms{
      [](Cut& m) { m.change_decision(make_noise); },
      [](Cut& m) { m.change_entry(take_mark); },
      [](Cut& m) { m.erase_key(m.x, "p/"); },
      [](Cut& m) {
        m.change_reverse_key(make_noise);
        m.erase_key(m.q, "x/");
      },
  };
  for (const auto& harm : harms) {
    for (unsigned n = 0;; ++n) {
      INFO("harm " << &harm - harms.data() << ", step " << n);
      Cut move(committed, false);
      harm(move);
      const auto client = move.volume.new_client();
      const NthStepOfRepair fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
      client->set_hook(fault);
      static_cast<void>(try_repair(client, move.volume.clock()));
      if (!fault.reached()) break;
      move.volume.clock().advance(std::chrono::seconds(61));
      move.check_repaired_to(std::nullopt);
    }
  }
}

TEST_CASE("a reverse key that no name can have tells nothing of a move, and harms no repair of its decision") {
  DirectoryMoveToRepair move(committed, true);
  move.change_keys(move.p, [](DirectoryMoveToRepair::Keys& keys) {
    auto reverse = keys.extract(keys.lower_bound("i/"));
    reverse.key() += "/o";
    keys.insert(std::move(reverse));
  });
  move.change_decision(make_noise);
  move.check_repaired_to(std::nullopt);
}

TEST_CASE("a damaged rename lock goes, and directories move again") {
  TestVolume volume(small_objects());
  {
    auto mount = volume.mount();
    const Ino p = make_dir(*mount.file_system, root_ino, "p"), x = make_dir(*mount.file_system, root_ino, "x");
    need(mount->rename(root_ino, "x", p, "x", RenameMode::replace));
    CHECK(ino_of(*mount.file_system, p, "x") == x);
    need(mount->unmount());
  }
  CHECK(findings_of(volume.cluster()) == Lines{});
  volume.cluster().with_objects([](Objects& objects) {
    make_noise(objects.metadata().at(format::super_object).keys.at(format::rename_lock_key));
  });
  CHECK(findings_of(volume.cluster()) == Lines{"corrupt: Super"});
  const auto told = need(try_repair(volume.new_client(), volume.clock()));
  CHECK(told.report.left == 0);
  CHECK(findings_of(volume.cluster()) == Lines{});
  auto mount = volume.mount();
  const auto p = *ino_of(*mount.file_system, root_ino, "p");
  need(mount->rename(p, "x", root_ino, "x", RenameMode::replace));
}

TEST_CASE("a link count is left to whoever took a name and is about to correct it") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const Ino f = make_file(*mount.file_system, root_ino, "f");
  need(mount->link(f, root_ino, "g"));
  unsigned repairs = 0;
  mount.client->set_hook(before("change attr", [&] {
    // What explains the difference is lost: so it is found.
    volume.cluster().with_objects([](Objects& objects) {
      for (auto& [name, object] : objects.metadata()) {
        if (name.starts_with("Session.")) object.keys.clear();
      }
    });
    const auto found = findings_of(volume.cluster());
    CHECK(std::ranges::count(found, "wrong links: " + format::inode_object(f)) == 1);
    repair::RepairOptions options;
    options.though_in_use = true;
    need(repair::repair_volume(volume.new_client(), volume.clock(), options));
    CHECK(findings_of(volume.cluster()) == Lines{});
    ++repairs;
  }));
  need(mount->unlink(root_ino, "g"));
  CHECK(repairs == 1);
  volume.clock().advance(std::chrono::seconds(2));
  CHECK(need(mount->get_attributes(f)).attributes.nlink == 1);
  need(mount->unlink(root_ino, "f"));
  need(mount->unmount());
  CHECK(findings_of(volume.cluster()) == Lines{});
}

}  // namespace
}  // namespace lccfs
