# SPDX-License-Identifier: LGPL-2.1-or-later
"""Deliberate faults in the protocol. Each leaves out, or turns round, what some rule of
docs/PROTOCOL.md or docs/DATA.md asks for.

A fault replaces a piece of a source file (which must occur there once) by one that behaves wrongly if the fault is
switched on: ON stands for that condition. `suites` are the tests that are tried first, the quickest to see it.

`must` are tests each of which has to see it, whatever others see: faults that a first hard use found (issue 9, by its
numbers), and that the models of time, of slow objects and of a kernel have to find again once their mend is off.

`only`, `needs_all` and `seconds` save time alone: where a fault does not show in those cases, all are tried.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    rule: str  # what is broken, and where docs/ asks for it
    file: str  # below src/
    old: str
    new: str
    suites: tuple
    also: tuple = ()  # further (old, new) in the same file
    must: tuple = ()
    only: str = ""  # a part of the names of cases that see it (LCCFS_CRASH_ONLY)
    needs_all: bool = False  # one case of some sees it too seldom
    seconds: int = 0  # about, where they are many: the longest are begun first

    def edits(self):
        return ((self.old, self.new), *self.also)


CUT = ("every_cut_test",)
PAIRS = ("interleave_test",)
COLLECTOR = ("collector_test", "collector_crash_test")
LAST = ("directories_last_test",)
UNIT = ("instance_test",)
RMDIR = "A: rmdir /d/a; B: mkfile /d/a/f"
RACES = ("namespace_test",)
FILES = ("files_test",)
DATA = ("files_test", "data_interleave_test", "every_cut_test")
KERNEL_MODEL = ("kernel_test",)
RANGES = ("ranges_test",)
TIME = ("time_test",)
HUNG = ("hung_objects_test",)
ADMISSION = ("admission_test",)

NAMESPACE = [
    Fault("lookup-trusts-the-number", "PROTOCOL 6, lookup: the inode read beside its entry counts if the entry is the "
          "same, token and all", "fs/lookup.cpp",
          "const bool is_the_same = last_seen && last_seen->raw == entry->raw;",
          "const bool is_the_same = last_seen && (ON ? last_seen->record.ino == entry->record.ino "
          ": last_seen->raw == entry->raw);", RACES),
    # item 8: a directory that another has removed and made anew
    Fault("removed-directory-used", "PROTOCOL, rule 8: what would change a removed directory is stale", "fs/metadata.cpp",
          "  if (removed) return failure(ErrorCode::stale,", "  if (removed && !ON) return failure(ErrorCode::stale,",
          RACES, must=KERNEL_MODEL),
    Fault("removed-directory-linked", "PROTOCOL, rule 8: a sealed directory's parent knows", "fs/attributes.cpp",
          "  if (removed) reply.attributes.nlink = 0;", "  if (removed && !ON) reply.attributes.nlink = 0;", RACES),
    Fault("unsound-keys-are-nothing", "PROTOCOL 3: a directory with keys that are no entries is not empty",
          "fs/seals.cpp", "  if (unsound == nullptr) return false;", "  if (unsound == nullptr || ON) return false;", RACES),
    Fault("handle-without-a-name", "PROTOCOL 6: a file handle leads to what has a name or is open", "fs/lookup.cpp",
          "    if (found.total() == 0) return gone();", "    if (found.total() == 0 && !ON) return gone();", RACES),
    Fault("directory-from-memory", "PROTOCOL 6: no answer rests on what is remembered", "fs/attributes.cpp",
          "  LCCFS_TRY(const auto view, metadata_.read_existing(ino, {.map = InodeParts::Map::whole}));\n"
          "  if (view.is_directory())",
          "  if (const auto held = metadata_.in_memory(ino); ON && held) return reply_for(*held);\n"
          "  LCCFS_TRY(const auto view, metadata_.read_existing(ino, {.map = InodeParts::Map::whole}));\n"
          "  if (view.is_directory())", RACES),
    Fault("unlink-without-item", "PROTOCOL 6, unlink: step 0, the directory item", "fs/unlink.cpp",
          "LCCFS_CHECK(instance_.rely_on_directory(parent));",
          "if (!ON && !LCCFS_FAULT(\"unlink-logs-late\")) LCCFS_CHECK(instance_.rely_on_directory(parent));", CUT),
    Fault("unlink-logs-late", "PROTOCOL 6, unlink: step 0 comes before the commit", "fs/unlink.cpp",
          "    one_link_less(*target);\n    return {};",
          "    one_link_less(*target);\n    if (ON) static_cast<void>(instance_.rely_on_directory(parent));\n"
          "    return {};", CUT),
    Fault("link-without-item", "PROTOCOL 6, link: step 0, the inode item", "fs/link.cpp",
          "  if (!is_logged_) LCCFS_CHECK(", "  if (!is_logged_ && !ON) LCCFS_CHECK(", CUT),
    Fault("link-without-back-pointer", "PROTOCOL 3, P: step 1 of link points back", "txn/namespace_txn.cpp",
          "              mark(format::back_pointer_key(count.parent.parent, count.parent.token)));",
          "              mark(ON ? \"u/none\" : format::back_pointer_key(count.parent.parent, count.parent.token)));", CUT),
    Fault("dead-file-linked", "PROTOCOL 6, link: step 1 guards that the inode lives", "txn/namespace_txn.cpp",
          "\"add link\", state_is(StateRecord{}), ",
          "\"add link\", ON ? Guard(guard::ObjectExists{}) : Guard(state_is(StateRecord{})), ", ("namespace_test",)),
    Fault("link-takes-nothing-back", "PROTOCOL 6, link: step 3", "fs/link.cpp",
          "(counted_ ? !take_back() : may_be_counted_)", "(counted_ ? ON || !take_back() : may_be_counted_)",
          ("namespace_test",)),
    Fault("named-before-it-is-stored", "DATA, closed files: a file that gets a name is stored before", "fs/link.cpp",
          "  if (known->is_regular()) LCCFS_CHECK(", "  if (known->is_regular() && !ON) LCCFS_CHECK(", FILES),
    Fault("link-answers-from-memory", "PROTOCOL, rule 7: no answer rests on memory", "fs/link.cpp",
          "  LCCFS_CHECK(Link(*this, ino, name).run());",
          "  const auto held = metadata_.in_memory(ino);\n  LCCFS_CHECK(Link(*this, ino, name).run());\n"
          "  if (ON && held) return entry_reply_for(*held, sent);", RACES),
    Fault("link-holds-no-directory", "PROTOCOL 5: a directory stays while a link to it runs", "fs/link.cpp",
          "making(namespace_.directories_, name_.directory);",
          "making(namespace_.directories_, ON ? Ino{} : name_.directory);", LAST),
    Fault("link-in-doubt-holds-no-directory", "PROTOCOL 5: a directory stays while a link to it is in doubt",
          "fs/link.cpp", "    if (may_point_here) namespace_", "    if (may_point_here && !ON) namespace_", LAST),
    Fault("recount-beside-a-link", "PROTOCOL 5, recount: back-pointers that are not retired", "reclaim/examine.cpp",
          "  for (const auto& pointer : inode.pointers) tokens.push_back(pointer.token);",
          "  for (const auto& pointer : inode.pointers) {\n    if (!ON) tokens.push_back(pointer.token);\n  }", RACES),
    Fault("trim-of-another-version", "PROTOCOL 5, recount: it trims under the version as read", "txn/reclaim_txn.cpp",
          "  auto txn = make(ino, \"trim links\", guard::VersionIs{version});",
          "  auto txn = make(ino, \"trim links\", ON ? Guard(guard::ObjectExists{}) : Guard(guard::VersionIs{version}));",
          RACES),
    Fault("counted-beside-an-unlink", "PROTOCOL 5, recount: who takes a name corrects the count", "reclaim/examine.cpp",
          "    if (removals == Horizon::Verdict::not_retired) return assessment;",
          "    if (removals == Horizon::Verdict::not_retired && !ON) return assessment;", ("namespace_test",)),
    Fault("seal-logs-nothing", "PROTOCOL 6, rmdir: step 0, items of the directory and its parent", "fs/seals.cpp",
          "if (logged != ino) LCCFS_CHECK(", "if (logged != ino && !ON) LCCFS_CHECK(", CUT),
    Fault("rmdir-without-seal", "PROTOCOL 6, rmdir: step 1, the seal", "fs/seals.cpp",
          "const auto step = instance_.run(txn::seal(ino, view->version, seal));",
          "const auto step = ON ? Result<StepResult>(StepResult{}) "
          ": instance_.run(txn::seal(ino, view->version, seal));", PAIRS, only=RMDIR),
    Fault("seal-without-version", "PROTOCOL 6, rmdir: step 1 guards the version at which it was empty",
          "txn/namespace_txn.cpp",
          '  return make(directory, "seal", guard::VersionIs{version}, set(xattr::state, sealed));',
          '  auto txn = make(directory, "seal", guard::VersionIs{version}, set(xattr::state, sealed));\n'
          '  if (ON) txn.guards.clear();\n  return txn;', PAIRS, only=RMDIR),
    Fault("insert-into-sealed", "PROTOCOL, rule 2: open(P)", "txn/namespace_txn.cpp",
          '"insert entry", state_is(StateRecord{}), guard::KeyAbsent{name.key});',
          '"insert entry", state_is(StateRecord{}), guard::KeyAbsent{name.key});\n'
          '  if (ON) txn.guards.erase(txn.guards.begin());', PAIRS, only=RMDIR),
    Fault("insert-over-a-name", "PROTOCOL 6, create: step 2 guards that the name is absent", "txn/namespace_txn.cpp",
          "  add_name(txn, name, entry);\n  touch_directory(txn, now);\n  if (nsub) change_nsub(txn, *nsub);",
          "  if (ON) txn.guards.pop_back();\n"
          "  add_name(txn, name, entry);\n  touch_directory(txn, now);\n  if (nsub) change_nsub(txn, *nsub);", PAIRS),
    Fault("entry-unguarded", "PROTOCOL, rule 2: guards compare the whole value", "txn/namespace_txn.cpp",
          "  add(txn, guard::KeyEquals{name.key, entry.raw});",
          "  if (!ON) add(txn, guard::KeyEquals{name.key, entry.raw});", PAIRS),
    Fault("entries-without-token", "PROTOCOL 2: an entry carries the token of the step that wrote it",
          "format/inode_records.cpp",
          "  io(entry.token);",
          "  Token token = ON ? Token{InstanceId{1}, 1} : entry.token;\n  io(token);\n"
          "  if constexpr (requires { entry.token = token; }) entry.token = token;", RACES + ("history_test",)),
    Fault("nsub-unguarded", "PROTOCOL 6: nsub is guarded as read", "txn/namespace_txn.cpp",
          "  add(txn, guard::XattrEquals{xattr::nsub, nsub.raw});",
          "  if (!ON) add(txn, guard::XattrEquals{xattr::nsub, nsub.raw});", RACES + PAIRS),
    Fault("no-detached-key", "PROTOCOL 6: the commit sets d/X/t", "txn/namespace_txn.cpp",
          "  add(txn, mark(format::detached_key(ino, token)));",
          "  if (!ON) add(txn, mark(format::detached_key(ino, token)));", CUT),
    Fault("detached-key-without-token", "PROTOCOL 1: d/<ino>/<token>", "txn/namespace_txn.cpp",
          "void detach(MetaTxn& txn, Ino ino, Token token, const std::optional<SubdirectoryCount>& nsub) {",
          "void detach(MetaTxn& txn, Ino ino, Token real_token, const std::optional<SubdirectoryCount>& nsub) {\n"
          "  const Token token = ON ? Token{InstanceId{1}, 1} : real_token;", PAIRS + CUT, only=RMDIR),
    Fault("commit-of-a-cancelled-seal", "PROTOCOL 6, rmdir: step 2 guards x/t absent", "txn/namespace_txn.cpp",
          "  add(txn, guard::KeyAbsent{format::decision_key(token)});",
          "  if (!ON) add(txn, guard::KeyAbsent{format::decision_key(token)});", PAIRS,
          only=RMDIR),
    Fault("cancel-not-looked-at-again", "PROTOCOL 6, settle a seal: set x/t = cancelled, look again",
          "reclaim/settle.cpp",
          "  LCCFS_CHECK(done_or_needless(instance.run(txn::cancel_seal(seal.parent, sealed, seal.token))));\n"
          "  return false;",
          "  LCCFS_CHECK(done_or_needless(instance.run(txn::cancel_seal(seal.parent, sealed, seal.token))));\n"
          "  if (ON) return unseal();\n  return false;", PAIRS, only=RMDIR),
    Fault("settle-without-tombstone", "PROTOCOL 6, settle a seal: x/t = cancelled before the unseal",
          "reclaim/settle.cpp",
          "  if (const auto decided = parent->keys.find(decision); decided != parent->keys.end()) {",
          "  if (ON && !parent->keys.contains(decision)) return unseal();\n"
          "  if (const auto decided = parent->keys.find(decision); decided != parent->keys.end()) {", PAIRS,
          only=RMDIR),
    Fault("settler-logs-nothing", "PROTOCOL 6, settle a seal: the directory item of P first", "reclaim/settle.cpp",
          "  LCCFS_CHECK(instance.rely_on_directory(seal.parent));",
          "  if (!ON) LCCFS_CHECK(instance.rely_on_directory(seal.parent));", CUT + PAIRS),
    Fault("settle-revives-the-removed", "PROTOCOL 6, settle a seal: d/X/t in P -> dead", "reclaim/settle.cpp",
          "  if (parent->keys.contains(detached)) return mark_dead();",
          "  if (parent->keys.contains(detached)) return ON ? unseal() : mark_dead();", PAIRS, only=RMDIR),
    Fault("not-empty-without-a-second-look", "PROTOCOL, rule 4", "fs/seals.cpp",
          "    if (!same_names) return std::nullopt;", "    if (!same_names && !ON) return std::nullopt;",
          RACES + PAIRS),
    Fault("dangling-without-a-second-look", "PROTOCOL 3, V, and PROTOCOL, rule 4", "fs/lookup.cpp",
          "    if (dangling) return std::unexpected(no_entry(name));",
          "    if (dangling || ON) return std::unexpected(no_entry(name));", RACES + PAIRS),
    Fault("clears-what-does-not-dangle", "PROTOCOL, rule 2: a name is cleared by its whole value", "fs/seals.cpp",
          "  if (!again || again->raw != entry.raw) return {};",
          "  if (!again || (again->raw != entry.raw && !ON)) return {};\n"
          "  if (ON) return done_or_needless(instance_.run(txn::clear_dangling_entry(name, *again, std::nullopt)));",
          RACES + PAIRS),
    Fault("seal-not-taken-back", "PROTOCOL 6, rmdir: 2 failed", "fs/seals.cpp",
          "  const auto unsealed = done_or_needless(instance_.run(txn::unseal(sealed, seal)));",
          "  const auto unsealed = ON ? Result<>{} : done_or_needless(instance_.run(txn::unseal(sealed, seal)));",
          RACES + PAIRS),
    Fault("own-tombstone-left", "PROTOCOL 6, rmdir: 2 failed: remove the own x/t", "fs/seals.cpp",
          "  const auto removed = instance_.run_repeatable(txn::remove_decision(seal.parent, seal.token));",
          "  const auto removed = ON ? Result<Applied>(Applied{})\n"
          "                          : instance_.run_repeatable(txn::remove_decision(seal.parent, seal.token));",
          ("namespace_test",)),
    Fault("same-name-renamed", "PROTOCOL 6, rename: same inode under both names: no step", "fs/rename.cpp",
          "  if (to_entry()->record.ino == from_entry()->record.ino) {",
          "  if (to_entry()->record.ino == from_entry()->record.ino && !ON) {", CUT),
    Fault("born-believed-there", "DATA 1: a bit that a new file is born with promises nothing", "fs/create.cpp",
          "  first.may_exist.set(0);", "  first.may_exist.set(0);\n  if (ON) first.believed_there.set(0);", ("files_test",)),
    Fault("listed-name-trusted-since-told", "src/fs/readdir.cpp: trust begins when the entry was read", "fs/readdir.cpp",
          "last.reply = entry_reply_for(inode->second, page.sent);",
          "last.reply = entry_reply_for(inode->second, ON ? now() : page.sent);", ("namespace_test",)),
    Fault("dead-inode-listed", "src/fs/readdir.cpp: as lookup, of a live inode alone", "fs/readdir.cpp",
          "if (inode != inodes.end() && inode->second.live()) last", "if (inode != inodes.end() && (ON || inode->second.live())) last",
          ("namespace_test",)),
    Fault("create-forgets-its-inode", "PROTOCOL 6, create: step 3", "fs/create.cpp",
          "    if (made_ && !may_have_name_) remove_never_named();",
          "    if (made_ && !may_have_name_ && !ON) remove_never_named();", PAIRS),
]

STEPS = [
    Fault("no-step-numbers", "PROTOCOL, rule 5: the guard on l/", "instance/steps.cpp",
          "  numbered.guards.emplace_back(guard::KeyLess{key, format::step_number_value(step->number)});",
          "  if (!ON) numbered.guards.emplace_back(guard::KeyLess{key, format::step_number_value(step->number)});", UNIT),
    Fault("a-failed-guard-decides", "PROTOCOL, rule 5: undecided after a failed guard", "instance/steps.cpp",
          "    // The step may have been applied by an earlier run whatever this answer says, \"no space\" included.",
          "    if (ON && error.code == ErrorCode::guard_failed)\n"
          "      return finish(std::move(step), StepResult{Decided::refused, 0});", CUT + PAIRS),
    Fault("exists-decides", "PROTOCOL, rule 5: EEXIST on one's own number: the birth token decides", "fs/create.cpp",
          "    // An earlier run of the step may have made it, whatever the answer of the last one: the birth token decides.",
          "    if (ON) return std::unexpected(created.error());", CUT),
    Fault("guarded-step-sent-twice", "PROTOCOL, rule 5: a lost answer is looked up", "instance/steps.cpp",
          "    read_back(std::move(step), std::move(error));",
          "    if (ON && is_unknown_time_out(error)) return send(std::move(step));\n"
          "    read_back(std::move(step), std::move(error));", CUT),
]

QUEUE = [
    Fault("no-range-intent", "PROTOCOL 5: range intent, PROTOCOL 6, create: step 0", "instance/queue.cpp",
          "  LCCFS_CHECK(log_items({item(QueueItem::Kind::range, Ino{first}, Ino{first + count})}));",
          "  if (!ON) LCCFS_CHECK(log_items({item(QueueItem::Kind::range, Ino{first}, Ino{first + count})}));",
          CUT),
    Fault("range-intent-dropped-in-doubt", "PROTOCOL 5: an inode in doubt gets an item, or its range stays",
          "instance/queue.cpp",
          "  for (auto& range : ranges_) range.kept = range.kept || range.covers(ino);",
          "  for (auto& range : ranges_) range.kept = !ON && (range.kept || range.covers(ino));",
          UNIT),
    Fault("range-intent-dropped-too-soon", "PROTOCOL 5: a range is dropped when nothing older runs", "instance/queue.cpp",
          "      const bool through = range.used_up && *range.used_up < lowest_running && !range.kept_to_the_end;",
          "      const bool through = range.used_up && (*range.used_up < lowest_running || ON) && !range.kept_to_the_end;",
          UNIT),
    Fault("range-intents-kept", "PROTOCOL 5: a range is dropped once it is used up", "instance/queue.cpp",
          "    const auto dropped = drop_range_intents(Ranges::used_up);",
          "    const auto dropped = ON ? Result<>() : drop_range_intents(Ranges::used_up);", UNIT),
    Fault("unnamed-inode-without-item", "PROTOCOL 5: an inode that may exist without a name gets an item", "fs/create.cpp",
          "    if (made_ && may_have_name_) leave_to_collector(made_->ino);",
          "    if (made_ && may_have_name_ && !ON) leave_to_collector(made_->ino);", RACES),
    Fault("answers-too-much", "PROTOCOL 5: lowest number running, or else the next one", "instance/queue.cpp",
          "  for (const auto& item : dropped_items_) lowest = std::min(lowest, item.item);\n  return lowest;",
          "  for (const auto& item : dropped_items_) lowest = std::min(lowest, item.item);\n"
          "  return ON && !numbers_.is_anything_running() ? lowest + 1000 : lowest;", UNIT + PAIRS),
    Fault("does-not-answer-what-is-running", "PROTOCOL 2: running or relied on", "instance/queue.cpp",
          "  const auto lowest_running = numbers_.lowest_running();\n  // An operation",
          "  const auto lowest_running = ON ? numbers_.next() : numbers_.lowest_running();\n  // An operation",
          UNIT + PAIRS),
    Fault("does-not-answer-what-is-relied-on", "PROTOCOL 2: a relied-on item holds the answer back",
          "instance/queue.cpp",
          "  for (const auto& [directory, relied_on] : relied_on_) dropped_items_.push_back(relied_on);",
          "  for (const auto& [directory, relied_on] : relied_on_) {\n"
          "    if (!ON) dropped_items_.push_back(relied_on);\n  }", UNIT),
    Fault("keeps-relying", "PROTOCOL 2: a liveness poll drops all directory items", "instance/queue.cpp",
          "  relied_on_.clear();", "  if (!ON) relied_on_.clear();", UNIT + PAIRS),
    Fault("session-before-record", "PROTOCOL 5: the record is written before the session object",
          "instance/instance.cpp",
          "  LCCFS_CHECK(add_record());",
          "  if (ON) static_cast<void>(steps_.apply_until_known(txn::make_session(me_.id)));\n"
          "  LCCFS_CHECK(add_record());", UNIT + CUT),
    Fault("registers-beside-another-super", "PROTOCOL 5: the record is guarded by `super` as it was read",
          "txn/volume_txn.cpp", "  add(txn, guard::XattrEquals{xattr::super, encode(read)});",
          "  if (!ON) add(txn, guard::XattrEquals{xattr::super, encode(read)});", UNIT),
    Fault("refused-record-taken-for-written", "PROTOCOL 5: who is refused looks for its record",
          "instance/instance.cpp", "    if (!found.raw.empty()) return {};",
          "    if (!found.raw.empty() || ON) return {};", UNIT),
    Fault("upgrade-not-guarded", "PROTOCOL 5: nobody registers between the look at all records and the bits",
          "txn/volume_txn.cpp", "  add(txn, guard::VersionIs{version});",
          "  if (!ON) add(txn, guard::VersionIs{version});", ("volume_test",)),
    Fault("record-removed-before-session", "PROTOCOL 5: the record is removed after the session object",
          "instance/instance.cpp",
          "  if (nothing_left) {",
          "  if (nothing_left) {\n"
          "    if (ON) static_cast<void>(steps_.apply_until_known(txn::remove_instance_record(me_.id, record_)));", CUT),
    Fault("ended-with-items", "PROTOCOL 5: record and session go only when q/ is read empty", "instance/instance.cpp",
          "  LCCFS_TRY(const bool nothing_left, queue_.is_empty());",
          "  LCCFS_TRY(const bool is_empty, queue_.is_empty());\n  const bool nothing_left = is_empty || ON;", UNIT),
]

OTHERS = [
    Fault("may-fence-not-asked", "PROTOCOL 2: who may not fence does not start", "instance/instance.cpp",
          "  if (!options.read_only) LCCFS_CHECK(me->store_->check_may_fence());",
          "  if (!options.read_only && !ON) LCCFS_CHECK(me->store_->check_may_fence());", ("instance_test",)),
    Fault("marked-without-fence", "PROTOCOL 2: fenced first, then marked", "instance/others.cpp",
          "barred = store_.fence(found.record->identity);",
          "barred = ON ? Result<>{} : store_.fence(found.record->identity);",
          ("instance_test",)),
    Fault("fence-not-synced", "PROTOCOL 2: whoever relies on a fence first syncs fences", "instance/others.cpp",
          "    LCCFS_CHECK(sync_fences(found.fences));  // who finds no record cannot know under which number it went",
          "    if (!ON) LCCFS_CHECK(sync_fences(found.fences));", UNIT),
    Fault("fence-number-not-seen", "DATA: the fence number", "instance/others.cpp",
          "  if (number <= fences_seen_.load()) return {};", "  if (number <= fences_seen_.load() || ON) return {};",
          ("files_test", "instance_test")),
    Fault("gone-with-one-watch", "PROTOCOL 2: a look reads both watch lists", "instance/presence.cpp",
          "    if (presence != Presence::absent) return presence;",
          "    if (presence != Presence::absent && !(ON && object == format::super_object)) return presence;", UNIT),
    # item 2
    Fault("gone-at-once", "PROTOCOL 2: gone is who was absent for 60 s of looks", "instance/others.cpp",
          "    return absences_.absent(whom, began, clock_.elapsed()) ? Standing::gone : Standing::absent;",
          "    return absences_.absent(whom, began, clock_.elapsed()) || ON ? Standing::gone : Standing::absent;",
          UNIT + ("time_test",), must=TIME),
    # item 2
    Fault("looks-without-a-limit", "PROTOCOL 2: a look that took long begins the series anew", "instance/presence.cpp",
          "  if (ended - began > limits_.longest_observation) {",
          "  if (ended - began > limits_.longest_observation && !ON) {", UNIT + ("files_test",),
          must=TIME, only="away"),
    # item 2
    Fault("looks-far-apart", "PROTOCOL 2: a pause between two looks begins the series anew", "instance/presence.cpp",
          "  if (!begun_ || began - last_ended_ > limits_.longest_gap) first_ended_ = ended;",
          "  if (!begun_ || (began - last_ended_ > limits_.longest_gap && !ON)) first_ended_ = ended;",
          UNIT + ("time_test",), must=TIME, only="away"),
    Fault("looks-continue-over-an-own-outage", "PROTOCOL 2: the loss of an own watch begins the series anew",
          "instance/others.cpp",
          "  absences_.begin_anew();", "  if (!ON) absences_.begin_anew();", UNIT),
    Fault("known-death-is-waited-for", "PROTOCOL 2: gone is whose death is proven", "instance/presence.cpp",
          "  if (processes.is_gone(record)) return Presence::dead;",
          "  if (processes.is_gone(record) && !ON) return Presence::dead;", UNIT),
    # item 8
    Fault("step-locks-by-hash", "PROTOCOL, rule 5: one step in flight per object", "instance/steps.cpp",
          "    const auto [line, first] = waiting_.try_emplace(step->txn.object);",
          "    const auto [line, first] = waiting_.try_emplace(\n"
          "        ON ? std::to_string(std::hash<std::string>()(step->txn.object) % 1024) : step->txn.object);", HUNG,
          also=(("      const auto line = waiting_.find(step->txn.object);",
                 "      const auto line = waiting_.find(\n"
                 "          ON ? std::to_string(std::hash<std::string>()(step->txn.object) % 1024) : step->txn.object);"),),
          must=HUNG),
    Fault("silent-once-is-silent-for-the-round", "PROTOCOL 5, a pass: who was silent is asked again",
          "reclaim/round_inodes.cpp",
          "  if (asked.empty() || silent_calls_ >= most_silent_calls) return {};",
          "  if (asked.empty() || silent_calls_ >= (ON ? 1 : most_silent_calls)) return {};", ("collector_test",)),
    Fault("stat-waits-for-the-silent", "DATA: getattr does not wait for who is silent", "fs/files.cpp",
          "  auto view = read_told(ino, LeaseHolders::Ask::for_attributes);",
          "  auto view = read_told(ino, ON ? LeaseHolders::Ask::for_reading : LeaseHolders::Ask::for_attributes);",
          ("files_test",)),
    Fault("stat-asks-the-silent-each-time", "DATA: getattr asks a silent holder once in 5 s", "fs/lease_holders.cpp",
          "  silent_until_[{holder, ino}] = instance_.clock().elapsed() + silence_remembered_for;",
          "  if (!ON) silent_until_[{holder, ino}] = instance_.clock().elapsed() + silence_remembered_for;",
          ("files_test",)),
    Fault("tail-waits-for-a-writer", "DATA: whoever opens cleans up after a dead holder", "fs/file_handles.cpp",
          "  if (view->holder_is_expired && !instance_.read_only())",
          "  if (view->holder_is_expired && !instance_.read_only() && !ON)", ("files_test",)),
    # item 2
    Fault("own-pause-counts-as-silence", "DATA: silent for 60 s of questions that were quick", "fs/lease_holders.cpp",
          "constexpr ObservedSeries::Limits silence_limits{std::chrono::seconds(15), std::chrono::seconds(15)};",
          "const ObservedSeries::Limits silence_limits{std::chrono::seconds(ON ? 1000 : 15), "
          "std::chrono::seconds(ON ? 1000 : 15)};", ("time_test", "files_test"), must=TIME, only="an asker"),
    # item 1
    Fault("never-says-busy", "DATA: a holder answers every question at once, with done or busy", "fs/recalls.cpp",
          "constexpr std::chrono::milliseconds answer_busy_after{500};",
          "const std::chrono::milliseconds answer_busy_after{ON ? 3'600'000 : 500};", ("hung_objects_test",), must=HUNG),
    # item 1
    Fault("pool-of-512", "DATA: work that waits never keeps other work waiting", "base/thread_pool.cpp",
          "  if (idle_ >= line_.size() || threads_ == max_threads_) {",
          "  if (idle_ >= line_.size() || threads_ == (ON ? std::min<std::size_t>(512, max_threads_) : max_threads_)) {",
          ("hung_objects_test",), (("#include <chrono>\n", "#include <algorithm>\n#include <chrono>\n"),),
          must=HUNG, seconds=6),
    # item 2: a collector, too, fences who is gone, and only them
    Fault("poll-looks-once", "PROTOCOL 2: a collector makes a series on purpose", "instance/others.cpp",
          "      if (seen && *seen == Seen::absent) absent.push_back(member);",
          "      if (seen && *seen == Seen::absent && !ON) absent.push_back(member);", UNIT,
          must=TIME, only="seldom"),
    Fault("poll-does-not-fence", "PROTOCOL 5: every recorded instance has answered or is fenced",
          "instance/others.cpp",
          "      const auto seen = first_look ? look_at(member->id) : look_again_at(*member);",
          "      const auto seen = ON ? Result<Seen>(Seen::expired) : first_look ? look_at(member->id) "
          ": look_again_at(*member);", COLLECTOR + ("instance_test",)),
]

RECOUNT = [
    Fault("nothing-is-running", "PROTOCOL 2: when a trace is retired", "reclaim/examine.cpp",
          "    return token.number < living->second ? Verdict::retired : Verdict::not_retired;",
          "    return token.number < living->second || ON ? Verdict::retired : Verdict::not_retired;", COLLECTOR + PAIRS,
          seconds=15),
    Fault("step-numbers-of-the-dead-ignored", "PROTOCOL 5, recount: (X dead) any l/ of X not retired",
          "reclaim/examine.cpp", "  if (inode.dead()) {\n    for (const auto& [instance, number] : inode.step_numbers)",
          "  if (inode.dead() && !ON) {\n    for (const auto& [instance, number] : inode.step_numbers)",
          ("removed_beneath_test",)),
    Fault("dead-directory-with-keys-removed", "PROTOCOL 5, recount: d/ or x/ keys left -> leave X",
          "reclaim/examine.cpp",
          "    return inode.has_detached || inode.has_decisions ? Kind::wait : Kind::reclaim;",
          "    return (inode.has_detached || inode.has_decisions) && !ON ? Kind::wait : Kind::reclaim;",
          ("removed_beneath_test",)),
    Fault("inode-before-data", "PROTOCOL 5, recount, and PROTOCOL 3, M", "reclaim/recount.cpp",
          "  LCCFS_TRY(const bool data_gone, remove_data(inode));",
          "  if (ON) LCCFS_CHECK(apply(txn::remove_dead_inode(inode.ino, inode.version)));\n"
          "  LCCFS_TRY(const bool data_gone, remove_data(inode));", COLLECTOR),
    Fault("data-not-removed", "PROTOCOL 5, recount: remove each mapped object", "reclaim/recount.cpp",
          "      if (stop_.stop_requested()) {\n        LCCFS_CHECK(steps.wait());",
          "      if (ON) continue;\n      if (stop_.stop_requested()) {\n        LCCFS_CHECK(steps.wait());",
          COLLECTOR + CUT),
    Fault("open-inodes-removed", "PROTOCOL 5, recount: open somewhere -> X stays", "reclaim/round_inodes.cpp",
          "  if (poll.is_open(inode.ino)) {", "  if (poll.is_open(inode.ino) && !ON) {", COLLECTOR),
    Fault("silent-clients-ignored", "PROTOCOL 5, a pass: every instance has answered or is expired",
          "instance/liveness_poll.cpp",
          "  return std::ranges::none_of(members, [](const Member& m) { return m.standing == Member::Standing::silent; });",
          "  return ON || std::ranges::none_of(members, [](const Member& m) {\n"
          "    return m.standing == Member::Standing::silent;\n  });", COLLECTOR),
    Fault("left-numbers-forgotten", "PROTOCOL 5: what is left is logged before the item goes",
          "reclaim/round_inodes.cpp",
          "  if (!left.empty()) LCCFS_CHECK(instance_.log_items(left));",
          "  if (!left.empty() && !ON) LCCFS_CHECK(instance_.log_items(left));", COLLECTOR,
          needs_all=True, seconds=90),
    Fault("emptied-without-item", "PROTOCOL 5, recount: the directory item before a child is detached",
          "reclaim/recount.cpp",
          "  LCCFS_CHECK(instance_.log_items({{format::QueueItem::Kind::directory, directory, {}, logged}}));",
          "  if (!ON) LCCFS_CHECK(instance_.log_items({{format::QueueItem::Kind::directory, directory, {}, logged}}));",
          LAST),
    Fault("emptied-without-keys", "PROTOCOL 5: a directory goes when nothing points to it without having a name",
          "txn/reclaim_txn.cpp",
          "  for (const Ino child : children) {", "  for (const Ino child : ON ? std::vector<Ino>{} : children) {",
          LAST),
    Fault("lost-directory-held-nothing", "PROTOCOL 5: a directory that is not there was lost, and its children stay",
          "reclaim/examine.cpp",
          "  if (!named) return parent_is_lost ? Kind::lost_parent : Kind::kill;",
          "  if (!named) return parent_is_lost && !ON ? Kind::lost_parent : Kind::kill;", LAST),
    Fault("directories-before-ranges", "PROTOCOL 5: a directory goes after what the dead have made in it",
          "reclaim/round.cpp",
          "  LCCFS_CHECK(see_to_what_the_dead_made(poll));",
          "  if (!ON) LCCFS_CHECK(see_to_what_the_dead_made(poll));\n  directories_wait_ = false;",
          LAST),
    Fault("make-holds-no-directory", "PROTOCOL 5: a directory stays while something is made in it", "fs/create.cpp",
          "  const DirectoriesInUse::Making making(namespace_.directories_, name_.directory);",
          "  const DirectoriesInUse::Making making(namespace_.directories_, ON ? Ino{} : name_.directory);", LAST),
    Fault("doubt-holds-no-directory", "PROTOCOL 5: a directory stays while a name in it is in doubt", "fs/create.cpp",
          "  namespace_.directories_.keep(name_.directory);",
          "  if (!ON) namespace_.directories_.keep(name_.directory);", LAST),
    Fault("asked-and-remembered", "PROTOCOL 5: who says that it needs a directory no more forgets it", "fs/readdir.cpp",
          "  metadata_.inodes.drop(ino);\n  return directories_.is_open(ino)",
          "  if (!ON) metadata_.inodes.drop(ino);\n  return directories_.is_open(ino)", LAST),
    Fault("died-since-and-ignored", "PROTOCOL 5: nobody may have died between the look and the liveness poll",
          "reclaim/round_inodes.cpp",
          "    return member.standing == Member::Standing::expired && !expired_.contains(member.id);",
          "    return member.standing == Member::Standing::expired && !expired_.contains(member.id) && !ON;", LAST),
    Fault("item-dropped-too-soon", "PROTOCOL 5: what must wait stays where it is", "reclaim/round.cpp",
          "    if (finished) done[session].push_back(one.number);",
          "    if (finished || ON) done[session].push_back(one.number);", COLLECTOR + CUT),
    Fault("keys-dropped-too-soon", "PROTOCOL 5: recount(X), then remove that key", "reclaim/round_directories.cpp",
          "    if (dealt_with.contains(ino)) {", "    if (dealt_with.contains(ino) || ON) {", COLLECTOR),
    Fault("tombstone-dropped-too-soon", "PROTOCOL, rule 6: the tombstone stays until t is retired",
          "reclaim/round_directories.cpp",
          "    directory.something_left = true;\n  } else if (detached) {",
          "    directory.something_left = true;\n    if (ON && decision) directory.finished.push_back(key);\n"
          "  } else if (detached) {", COLLECTOR, seconds=13),
    Fault("queue-not-read-anew", "PROTOCOL 5: q/ is read empty after the instance was expired", "reclaim/round.cpp",
          "  if (session && !session->ranges.front().entries.empty()) return {};",
          "  if (session && !session->ranges.front().entries.empty() && !ON) return {};", COLLECTOR),
    Fault("collector-is-never-running", "PROTOCOL 2: a collector is an instance too", "reclaim/round.cpp",
          "  const Instance::Operation running(instance_);",
          "  std::optional<Instance::Operation> running;\n  if (!ON) running.emplace(instance_);",
          ("collector_crash_test", "interleave_test", "history_test"), needs_all=True, seconds=60),
]

LEASE = [
    Fault("take-without-version", "DATA: take guards the version as read", "txn/file_txn.cpp",
          '  return make(ino, "take lease", guard::ObjectExists{}, guard::XattrAbsent{xattr::lease}, '
          'guard::VersionIs{version},\n              set(xattr::lease, me.value));',
          '  auto txn = make(ino, "take lease", guard::ObjectExists{}, guard::XattrAbsent{xattr::lease}, '
          'guard::VersionIs{version},\n              set(xattr::lease, me.value));\n'
          '  if (ON) txn.guards.pop_back();\n  return txn;', DATA),
    Fault("take-what-is-held", "DATA: take guards lease absent", "fs/lease.cpp",
          "    if (!inode.lease) {\n      auto taken = instance_.run_repeatable(",
          "    if (inode.lease && ON) {\n      static_cast<void>(take_over(*inode.lease));\n      continue;\n    }\n"
          "    if (!inode.lease) {\n      auto taken = instance_.run_repeatable(", DATA),
    Fault("take-over-from-anybody", "DATA: take over guards lease is the old one", "txn/file_txn.cpp",
          '  return make(ino, "take over lease", guard::ObjectExists{}, lease_is(old_holder), '
          'set(xattr::lease, me.value),\n              set(xattr::fence, fence));',
          '  auto txn = make(ino, "take over lease", guard::ObjectExists{}, lease_is(old_holder), '
          'set(xattr::lease, me.value),\n              set(xattr::fence, fence));\n'
          '  if (ON) txn.guards.pop_back();\n  return txn;', DATA),
    Fault("writes-only-the-living", "DATA: take guards that the inode exists, not that it lives",
          "txn/file_txn.cpp",
          '"store size, times, map", guard::ObjectExists{}, lease_is(me));',
          '"store size, times, map", guard::ObjectExists{}, lease_is(me));\n'
          '  if (ON) add(txn, guard::XattrEquals{xattr::state, encode(format::StateRecord{})});',
          ("collector_test",) + DATA),
    Fault("dead-holder-not-asked-again", "DATA: holder gone: read the inode after the fence",
          "fs/lease_holders.cpp",
          "    LCCFS_TRY(view, read_inode(instance_, ino, parts));\n    view.holder_is_expired",
          "    if (!ON) {\n      LCCFS_TRY(view, read_inode(instance_, ino, parts));\n    }\n    view.holder_is_expired", DATA),
    Fault("nobody-is-asked", "DATA, reading: the holder is asked", "fs/lease_holders.cpp",
          "  if (ask != Ask::nobody && view.lease && *view.lease != instance_.id()) {",
          "  if (ask != Ask::nobody && !ON && view.lease && *view.lease != instance_.id()) {", DATA),
    Fault("found-lease-not-cleaned", "DATA: a lease that is found to be ours", "fs/lease.cpp",
          "    if (inode.lease == instance_.id()) return adopt(std::move(inode), 0, was_recalled);",
          "    const auto cleaned_as_of = ON ? inode.version : 0;\n"
          "    if (inode.lease == instance_.id()) return adopt(std::move(inode), cleaned_as_of, was_recalled);", DATA),
    Fault("boundary-not-cut", "DATA: cut the boundary object", "fs/truncate.cpp",
          "  if (boundary_mapped) {", "  if (boundary_mapped && !ON) {", DATA),
    Fault("beyond-not-removed", "DATA: remove every mapped object past the size", "fs/truncate.cpp",
          "  for (const auto index : beyond) store.remove_data(",
          "  if (ON) beyond.clear();\n  for (const auto index : beyond) store.remove_data(", DATA),
    Fault("cut-before-commit", "DATA, truncate down: 1 size, 2 cut", "fs/truncate.cpp",
          "  auto stored = store_dirty_now(true);",
          "  if (ON) LCCFS_CHECK(cut_data(size_bytes));\n  auto stored = store_dirty_now(true);", CUT),
    Fault("released-in-flight", "DATA, release: lets nothing new in, waits for all in flight",
          "fs/recalls.cpp", "  auto& gate = asked_for->gate;\n",
          "  IoGate empty;\n  auto& gate = ON ? empty : asked_for->gate;\n", DATA,
          (("  node->gate.leave_alone();", "  if (!ON) node->gate.leave_alone();"),)),
    Fault("releases-wait-for-threads", "DATA: leases that hang keep no other waiting", "fs/recalls.cpp",
          "  if (keep) {\n    return threads_.post(",
          "  if (ON && !keep) {\n    static ThreadPool few(256);\n"
          "    return few.post([this, question, asked_for = std::move(asked_for)]() mutable {\n"
          "      asked_for->gate.lock();\n      release_as_asked(question, std::move(asked_for));\n    });\n  }\n"
          "  if (keep) {\n    return threads_.post(", HUNG),
    Fault("every-question-waits", "DATA: questions that wait leave threads for others", "fs/recalls.cpp",
          "  if (waiting_ < most_waiting && ", "  if ((ON || waiting_ < most_waiting) && ", HUNG),
    Fault("size-not-stored-at-release", "DATA, release: stores size and times in the same step",
          "txn/file_txn.cpp",
          '  return with(std::move(txn), changes);\n}\n\nMetaTxn change_leased_file(',
          '  return ON ? txn : with(std::move(txn), changes);\n}\n\nMetaTxn change_leased_file(', DATA),
    Fault("released-by-anybody", "DATA: release guards lease is mine", "txn/file_txn.cpp",
          'guard::ObjectExists{}, lease_is(me), mutation::RemoveXattr{xattr::lease});',
          'guard::ObjectExists{}, lease_is(me), mutation::RemoveXattr{xattr::lease});\n'
          '  if (ON) txn.guards.pop_back();', DATA),
]

DATA_PATH = [
    Fault("hole-proves-no-lease", "DATA 11: an object that needs no step makes the size step", "fs/ranges.cpp",
          "  if (!is_complete) LCCFS_CHECK(node.confirm_lease());",
          "  if (!is_complete && !ON) LCCFS_CHECK(node.confirm_lease());", RANGES),
    Fault("removed-is-believed-there", "DATA 11: what was removed is not believed there", "fs/ranges.cpp",
          "  for (const auto index : removed) set_units_there(index, 0);",
          "  for (const auto index : removed) set_units_there(index, ON ? format::all_units : 0);", RANGES),
    Fault("zeroed-is-believed-there", "DATA 11: whole units that were zeroed are not believed there", "fs/ranges.cpp",
          "  for (const auto& part : zeroed) note_gone(part);",
          "  for (const auto& part : zeroed) {\n    if (!ON) note_gone(part);\n  }", ("files_test",)),
    Fault("cut-is-believed-there", "DATA 1: whole units that were cut are not believed there", "fs/truncate.cpp",
          "  if (boundary_bytes != 0) note_gone(", "  if (!ON && boundary_bytes != 0) note_gone(", ("files_test",)),
    Fault("taken-over-without-blocks", "DATA 4: a file that is taken over with no block known shows one",
          "fs/file_node.cpp", "  note_there({*first, 0, 1, 0});", "  if (!ON) note_there({*first, 0, 1, 0});",
          ("files_test",)),
    Fault("room-without-end", "DATA 11: more room than there is is refused", "fs/ranges.cpp",
          "  if (range.end <= past_the_end || ", "  if (ON || range.end <= past_the_end || ", RANGES),
    Fault("zeros-do-not-grow", "DATA 11: zeros past the end raise the size", "fs/ranges.cpp",
          "      return grows && !continues ? ", "      return grows && !continues && !ON ? ", RANGES + CUT),
    Fault("lost-source-stays-in-the-copy", "DATA 11: an object that the source has lost is none in the target",
          "fs/copy_range.cpp", "                      store.remove_data(target, std::move(done));",
          "                      if (ON) return done({});\n"
          "                      store.remove_data(target, std::move(done));", RANGES),
    Fault("copy-without-holes", "DATA 11: holes of the source are punched", "fs/copy_range.cpp",
          "      if (next.begin > at) {", "      if (next.begin > at && !ON) {", RANGES + CUT),
    Fault("copy-before-bits", "DATA 11: the map bits come before the bytes", "fs/copy_range.cpp",
          "      if (!is_mapped(*first, count)) LCCFS_CHECK(", "      if (!is_mapped(*first, count) && !ON) LCCFS_CHECK(",
          CUT),
    Fault("failed-copy-not-cleaned", "DATA 11: a copy past the end that fails is cleaned", "fs/copy_range.cpp",
          "      if (range.end > target_->view.size_bytes) target_->tail_is_dirty = true;",
          "      if (range.end > target_->view.size_bytes && !ON) target_->tail_is_dirty = true;", RANGES),
    Fault("data-before-bits", "DATA, map: a write sets the bits first", "fs/data_write.cpp",
          "      if (node->is_mapped(offset, size_bytes())) return {};",
          "      if (node->is_mapped(offset, size_bytes()) || ON) return {};", DATA, seconds=6),
    Fault("failed-write-not-cleaned", "DATA, T: a failed write past the end is cleaned", "fs/data_write.cpp",
          "      if (end() > node->view.size_bytes) node->tail_is_dirty = true;",
          "      if (end() > node->view.size_bytes && !ON) node->tail_is_dirty = true;", DATA),
    Fault("size-not-raised", "DATA, T: a write raises the size before it is answered", "fs/file_node.cpp",
          "  view.size_bytes = std::max(view.size_bytes, end_bytes);",
          "  if (!ON) view.size_bytes = std::max(view.size_bytes, end_bytes);", DATA),
    # item 12
    Fault("append-where-the-kernel-says", "DATA: an append runs at the size then", "fs/data_write.cpp",
          "      offset = node->view.size_bytes;", "      if (!ON) offset = node->view.size_bytes;", DATA, must=KERNEL_MODEL),
    # item 5
    Fault("append-as-the-handle-says", "DATA: what a write is, its own request says", "fs/file_handles.cpp",
          "(request.flags & O_APPEND) != 0 && !request.writes_back_pages;",
          "((ON ? handle->flags : request.flags) & O_APPEND) != 0 && !request.writes_back_pages;", DATA,
          must=KERNEL_MODEL),
    # item 5
    Fault("mapped-pages-appended", "DATA: pages are written back at their offset", "fs/file_handles.cpp",
          "  if (appends) return io_.append(",
          "  const bool of_append = ((request.flags | handle->flags) & O_APPEND) != 0;\n"
          "  if (appends || (ON && request.writes_back_pages && of_append)) return io_.append(", DATA,
          must=KERNEL_MODEL),
    Fault("append-beside-others", "DATA: an append runs alone", "fs/data_write.cpp",
          "    const AloneInGate alone_now(node->gate);\n    {\n      const Lock",
          "    std::optional<AloneInGate> alone_now;\n    if (!ON) alone_now.emplace(node->gate);\n    {\n      const Lock",
          DATA),
    # item 4
    Fault("synced-write-stores-nothing", "DATA: a write with O_DSYNC stores size and map", "fs/data_write.cpp",
          "    if (!syncs_data()) return false;", "    if (!syncs_data() || ON) return false;", DATA,
          must=KERNEL_MODEL),
    Fault("synced-write-waits-for-nobody", "DATA: what is being stored is not stored yet", "fs/file_node.cpp",
          "    times = times_changed;\n", "    times = times_changed;\n"
          "    if (ON) stored_size_bytes = view.size_bytes;\n    if (ON) dirty_map_blocks.clear();\n", DATA),
    # item 8
    Fault("failed-resize-stays", "DATA, truncate: a size that was taken back is stored again",
          "fs/truncate.cpp",
          "    if (!stored) view.size_bytes = covered_size_bytes = size_before;",
          "    if (!stored) view.size_bytes = covered_size_bytes = size_before;\n    if (!stored && ON) stored_size_bytes = size_before;",
          KERNEL_MODEL, must=KERNEL_MODEL),
    # item 8
    Fault("attr-by-time", "DATA: what is known of attr is ordered by versions", "fs/file_node.cpp",
          "  if (newest.version < attr_version_) return;",
          "  if (ON ? newest.ctime < view.ctime : newest.version < attr_version_) return;", DATA,
          must=KERNEL_MODEL),
    Fault("mode-as-old-as-the-open", "DATA: a user's write looks at a mode of at most a second", "fs/data_privileges.cpp",
          "  return caller.uid == 0 || ", "  return ON || caller.uid == 0 || ", DATA),
    Fault("mode-cleared-in-silence", "DATA: the kernel hears at once that setuid was cleared",
          "fs/data_privileges.cpp", "  kernel.drop_attributes(node.ino);",
          "  if (!ON) kernel.drop_attributes(node.ino);", DATA),
    Fault("o-trunc-keeps-setuid", "DATA: O_TRUNC clears what a write would", "fs/file_handles.cpp",
          "  LCCFS_CHECK(io_.clear_privileges(node, caller));",
          "  if (!ON) LCCFS_CHECK(io_.clear_privileges(node, caller));", DATA),
    # item 6
    Fault("pages-kept-whatever-version", "DATA: pages are right as of a version", "fs/kernel_view.cpp",
          "  return pages.leased ? holder == Holder::me : pages.version == view.version;",
          "  return ON || (pages.leased ? holder == Holder::me : pages.version == view.version);", DATA,
          must=KERNEL_MODEL),
    # item 6
    Fault("pages-kept-beside-a-holder", "DATA: what another holds may change without a new version",
          "fs/kernel_view.cpp", "  if (!pages.right || holder == Holder::another) return false;",
          "  if (!ON && (!pages.right || holder == Holder::another)) return false;", DATA, must=KERNEL_MODEL),
    Fault("lease-makes-pages-right", "DATA: the lease makes pages right that were so when it was taken",
          "fs/kernel_view.cpp",
          "  pages.right = !pages.may_be_held || (pages.right && since_version != 0 && pages.version == since_version);",
          "  pages.right = ON || !pages.may_be_held ||\n"
          "                (pages.right && since_version != 0 && pages.version == since_version);", DATA),
    # item 11
    Fault("direct-write-drops-no-pages", "DATA: pages of a direct write go before it is answered",
          "fs/data_write.cpp", "    if (pages == DataIo::Pages::written) return done(",
          "    if (ON || pages == DataIo::Pages::written) return done(", DATA,
          must=KERNEL_MODEL),
    Fault("pages-dropped-in-the-gate", "DATA: out of the gate first", "fs/data_write.cpp",
          "    leave();\n    if (alone) return done(",
          "    if (ON && !alone && pages == DataIo::Pages::passed_by) {\n      std::promise<void> gone;\n"
          "      io.kernel.drop_written_pages(node->ino, offset, size_bytes(), [&gone] { gone.set_value(); });\n"
          "      gone.get_future().wait();\n    }\n    leave();\n    if (alone) return done(", DATA),
    Fault("mapped-handle-has-no-pages", "DATA: a direct descriptor that is mapped has pages",
          "fs/kernel_view.cpp", "\n  pages.may_be_held = true;\n", "\n  if (!ON) pages.may_be_held = true;\n", DATA),
    # item 12
    Fault("append-through-pages", "DATA: an append that cannot be mapped passes by the kernel's pages",
          "fs/file_handles.cpp", "  const bool bypass = bypasses_pages(flags);",
          "  const bool bypass = bypasses_pages(ON ? flags & ~O_APPEND : flags);", DATA, must=KERNEL_MODEL),
    # item 8
    Fault("capability-as-old-as-the-open", "DATA: there is no capability, as of at most a second ago",
          "fs/files.cpp", "age > options_.attributes_ttl) return std::nullopt;",
          "(age > options_.attributes_ttl && !ON)) return std::nullopt;", DATA, must=KERNEL_MODEL),
    Fault("overlapping-writes-together", "DATA: overlapping ranges go one after the other", "fs/io_gate.cpp",
          "return waiter.overlapped == 0;", "return ON || waiter.overlapped == 0;", DATA),
    Fault("write-passes-what-waits", "DATA: in the order in which they came", "fs/io_gate.cpp",
          "waiter.overlapped += before.kind == Kind::write && ",
          "waiter.overlapped += !ON && before.kind == Kind::write && ", DATA),
    Fault("nobody-passes-a-write", "DATA: a write that waits holds up those that overlap it, and nobody else",
          "fs/io_gate.cpp", "    if (is_last) break;", "    if (is_last || (ON && !goes)) break;", HUNG),
    Fault("those-alone-are-passed", "DATA: nobody passes one who is to be alone", "fs/io_gate.cpp",
          "    const bool is_last = waiter->kind == Kind::alone;",
          "    const bool is_last = waiter->kind == Kind::alone && !ON;", DATA),
    Fault("truncate-beside-others", "DATA, truncate down: alone", "fs/io_gate.cpp",
          "(reads_ == 0 && writes_.empty() && &waiter == &line_.front());",
          "(ON || (reads_ == 0 && writes_.empty() && &waiter == &line_.front()));", DATA),
    Fault("missing-bytes-are-zeros", "DATA, reading: bytes missing: read the inode again", "fs/data_read.cpp",
          "    if (!bytes_missing || leased) return finish(length);",
          "    if (!bytes_missing || leased || ON) return finish(length);", DATA),
    Fault("end-of-file-from-memory", "DATA, reading: never past the size; the holder is asked",
          "fs/data_read.cpp",
          "    if (!leased && ((meets_end() && !asked) || hole_is_a_guess)) {",
          "    if (!ON && !leased && ((meets_end() && !asked) || hole_is_a_guess)) {", DATA),
    Fault("fsync-forgets-the-size", "DATA, fsync: the size if dirty", "fs/file_handles.cpp",
          "  auto stored = handle->node->store_dirty(!data_only);",
          "  auto stored = ON ? Result<>{} : handle->node->store_dirty(!data_only);",
          ("durability_test", "files_test")),
    # section 10
    Fault("late-error-untold", "DATA, buffer: an error that comes late is told to each handle", "fs/open_files.cpp",
          "found->second.errors_told >= errors.count) return {};",
          "ON || found->second.errors_told >= errors.count) return {};", FILES),
    Fault("child-hears-the-error", "DATA, buffer: a close of one of several descriptors tells no error for all of them",
          "fs/open_files.cpp", "  if (told == Told::once) found", "  if (ON || told == Told::once) found", FILES),
    Fault("failed-bytes-go-uncounted", "DATA, buffer: while something cannot be stored, writes wait for the store",
          "fs/write_buffer.cpp", "  return failing_ || failed_units_ != 0;", "  return failing_ || (!ON && failed_units_ != 0);",
          FILES),
    Fault("old-bytes-forgotten", "DATA, buffer: what is dirty goes out after five seconds", "fs/file_node.cpp",
          "  if (!is_dirty(true) && buffer->is_empty()) dirty_since.reset();",
          "  if (!is_dirty(true) && (ON || buffer->is_empty())) dirty_since.reset();", FILES),
    Fault("release-leaves-the-buffer", "DATA, buffer: the lease goes when everything is stored", "fs/file_node.cpp",
          "  LCCFS_CHECK(write_out());\n  LCCFS_CHECK(clean_tail());",
          "  if (!ON) LCCFS_CHECK(write_out());\n  LCCFS_CHECK(clean_tail());", FILES),
    Fault("size-before-bytes", "DATA, buffer: a size is stored after the bytes below it", "fs/file_node.cpp",
          "    grows = stored_size_bytes != size_bytes;", "    grows = !ON && stored_size_bytes != size_bytes;",
          ("files_test", "durability_test")),
    Fault("size-of-later-bytes", "DATA, buffer: a size is stored after the bytes below it", "fs/file_node.cpp",
          "    changes.size_bytes = covered_size_bytes;", "    changes.size_bytes = ON ? view.size_bytes : covered_size_bytes;",
          FILES),
    Fault("replaced-by-an-empty-file", "DATA, buffer: a file that replaces another is stored before", "fs/rename.cpp",
          "  LCCFS_CHECK(namespace_.files_.store_before_naming(moved, sent_));",
          "  if (!ON) LCCFS_CHECK(namespace_.files_.store_before_naming(moved, sent_));", FILES),
    Fault("replaced-by-what-another-keeps", "DATA, closed files: a rename asks whoever holds the source's lease",
          "fs/files.cpp", "  } else if (view.sent >= since && !view.lease) {",
          "  } else if (ON || (view.sent >= since && !view.lease)) {", FILES),
    Fault("looked-up-and-not-asked", "DATA, attributes: a lookup asks the holder", "fs/lease_holders.cpp",
          "  for (const auto& [holder, inos] : held) {", "  if (ON) return;\n  for (const auto& [holder, inos] : held) {",
          FILES),
    Fault("idle-and-not-needed", "DATA, closed files: an instance needs what it holds the lease of", "fs/files.cpp",
          "node->openings > 0 || node->lease_held;", "node->openings > 0 || (node->lease_held && !ON);", FILES),
    Fault("idle-for-ever", "DATA, closed files: stored and released after five seconds", "fs/idle_leases.cpp",
          "    if (!is_due) return;", "    if (!is_due || ON) return;", FILES),
    Fault("closed-and-forgotten", "DATA, closed files: an error that nobody saw is told to the next that opens",
          "fs/open_files.cpp", "!bypasses_pages(flags), node->errors_seen};",
          "!bypasses_pages(flags), ON ? node->buffer->errors().count : node->errors_seen};", FILES),
    Fault("full-and-not-told", "DATA, closed files: on a volume that is nearly full, writes and closes wait",
          "fs/files.cpp", "      room_->set_nearly_full(space->available_bytes < reserve);",
          "      room_->set_nearly_full(!ON && space->available_bytes < reserve);", FILES),
    Fault("looked-at-and-lost", "DATA, closed files: a look from elsewhere loses nothing", "fs/recalls.cpp",
          "  return question.kind == Question::Kind::store_attributes && node.buffer->is_failing() &&",
          "  return !ON && question.kind == Question::Kind::store_attributes && node.buffer->is_failing() &&", FILES),
    Fault("old-work-answers", "DATA, recall: work answers the questions that came before it", "fs/recalls.cpp",
          "first->may_be_joined = false;", "first->may_be_joined = ON;", FILES),
    Fault("released-and-remembered", "DATA, attributes: memory counts only if the inode says that the lease is ours",
          "fs/file_node.cpp", "  if (!lease_held || read.lease != instance_.id()) return std::nullopt;",
          "  if (!lease_held || (!ON && read.lease != instance_.id())) return std::nullopt;", FILES),
    Fault("shared-and-buffered", "DATA, buffer: nothing is buffered once another client has asked", "fs/data_write.cpp",
          "    return !node->is_shared;", "    return ON || !node->is_shared;", FILES),
    Fault("direct-overtakes-the-buffer", "DATA, buffer: a direct write comes after what is buffered of its range",
          "fs/data_write.cpp", "    if (!node->buffer->has_any_of({offset, end()})) return {};",
          "    if (ON || !node->buffer->has_any_of({offset, end()})) return {};", FILES),
    Fault("cut-leaves-the-buffer", "DATA, buffer: a truncate cuts what could not be stored, too", "fs/truncate.cpp",
          "  buffer->drop({size_bytes, UINT64_MAX});", "  if (!ON) buffer->drop({size_bytes, UINT64_MAX});", FILES),
    Fault("failed-over-newer", "DATA, buffer: what failed lies below what was written since", "fs/write_buffer.cpp",
          "*run.bytes, Present::stays);", "*run.bytes, ON ? Present::is_replaced : Present::stays);", FILES),
    Fault("buffer-overtaken", "DATA, buffer: writes of one range never overtake each other", "fs/write_buffer.cpp",
          "  unit.is_wanted = unit.unanswered != 0;", "  unit.is_wanted = !ON && unit.unanswered != 0;", FILES,
          also=(("  unit.unanswered = runs.size();", "  unit.unanswered += runs.size();"),)),
    Fault("read-misses-the-buffer", "DATA, buffer: reads see what is buffered over what is stored", "fs/data_read.cpp",
          "    if (leased && length != 0) unwritten", "    if (!ON && leased && length != 0) unwritten", FILES),
]

# What only programs above a kernel see, which keeps names, attributes and pages.
KERNEL = [
    # item 3
    Fault("names-kept-for-a-second", "POSIX.md: names are asked for each time", "fs/namespace.cpp",
          "std::max(std::chrono::nanoseconds(0), sent + options_.entry_ttl - now());",
          "std::max(std::chrono::nanoseconds(0), sent + (ON ? std::chrono::seconds(1) : options_.entry_ttl) - now());", (), must=KERNEL_MODEL),
    # item 8
    Fault("only-writers-truncate", "open with O_TRUNC empties the file, O_RDONLY too", "fs/file_handles.cpp",
          "  if ((flags & O_TRUNC) != 0) {", "  if ((flags & O_TRUNC) != 0 && !(ON && !for_writing(flags))) {", (),
          must=KERNEL_MODEL),
]

# Which data requests are with librados (store/rados/admission.h): seen by its own test alone.
IN_FLIGHT = [
    Fault("in-flight-without-bound", "admission.h: never beyond the ceiling", "store/rados/admission.cpp",
          "  if (!in_flight_.is_below(limits_.ceiling)) return false;",
          "  if (ON) return true;\n  if (!in_flight_.is_below(limits_.ceiling)) return false;", ADMISSION),
    Fault("all-wait-for-what-hangs", "admission.h: every place that answers continues", "store/rados/admission.cpp",
          "  if (!held_back_) return next_in_share(near);", "  if (!held_back_) return ON ? nullptr : next_in_share(near);",
          ADMISSION),
    Fault("one-place-takes-all", "admission.h: a dead place leaves room", "store/rados/admission.cpp",
          "!place.turns.empty() && place.in_flight.is_below(limits_.place);",
          "!place.turns.empty() && (ON || place.in_flight.is_below(limits_.place));", ADMISSION,
          (("line.place.in_flight.is_below(limits_.place) && ", "(ON || line.place.in_flight.is_below(limits_.place)) && "),)),
    Fault("reserve-for-all", "admission.h: the last below the ceiling is for places that answer",
          "store/rados/admission.cpp", "  return place.answers || ", "  return ON || place.answers || ", ADMISSION),
    Fault("whoever-answers-is-next", "admission.h: room goes to the places in turn", "store/rados/admission.cpp",
          "  held_back_ = false;\n", "  if (Line* const line = ON ? next_in_share(near) : nullptr) return line;\n"
          "  held_back_ = false;\n", ADMISSION),
]

ALL = NAMESPACE + STEPS + QUEUE + OTHERS + RECOUNT + LEASE + DATA_PATH + KERNEL + IN_FLIGHT
