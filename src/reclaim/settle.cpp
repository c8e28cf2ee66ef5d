// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/settle.h"

#include <algorithm>

#include "base/expected_errors.h"
#include "reclaim/traces.h"
#include "txn/namespace_txn.h"

namespace lccfs::reclaim {

using format::DecisionRecord;
using format::StateRecord;

Result<bool> done_or_needless(const Result<StepResult>& step) {
  LCCFS_CHECK(done_or(ErrorCode::not_found, step));
  return true;
}

namespace {

/// Refused, it is decided already.
Result<> cancel(Instance& instance, const format::EntryRecord::Mark& mark) {
  LCCFS_CHECK(instance.rely_on_directory(mark.to));
  LCCFS_CHECK(done_or_needless(instance.run(txn::cancel_move(mark))));
  return {};
}

/// As it stands now. nullopt: there is no such directory.
Result<std::optional<objects::Object>> directory_of(const Query& query, const txn::Name& name) {
  return objects::find_object(query,
                              {.object = format::inode_object(name.directory), .xattrs = true, .keys = {name.key}});
}

}  // namespace

Result<Settled> ask_to_release(Instance& instance, Ino directory, Token tenure) {
  const auto still_holds = [&]() -> Result<bool> {
    LCCFS_TRY(const auto now, or_none(objects::read_inode(instance.reader(), directory)));
    return now && now->directory_lease == tenure;
  };
  const format::Question question{format::Question::Kind::release_directory, directory};
  return settle_holder(instance, tenure.instance, question, still_holds);
}

Result<Settled> settle_directory_lease(Instance& instance, Ino directory, Token tenure) {
  LCCFS_TRY(const auto holder, ask_to_release(instance, directory, tenure));
  if (holder == Settled::expired) LCCFS_CHECK(end_lease_of_expired(instance, directory, tenure));
  return holder;
}

namespace {
Result<> end_lease_by(Instance& instance, MetaTxn step) {
  if (instance.read_only()) return {};
  const auto released = instance.run_repeatable(std::move(step));
  const auto by_another = [](ErrorCode code) {
    return code == ErrorCode::guard_failed || code == ErrorCode::not_found;
  };
  if (!released && !by_another(released.error().code)) return std::unexpected(released.error());
  return {};
}
}  // namespace

Result<> end_directory_lease(Instance& instance, Ino directory, Token tenure) {
  return end_lease_by(instance, txn::release_directory_lease(directory, tenure));
}

Result<> end_removed_directory(Instance& instance, Ino directory, Token tenure) {
  return end_lease_by(instance, txn::mark_removed_dead(directory, tenure));
}

namespace {
/// As it lies there. An error that may pass says nothing.
bool is_unreadable(const Error& error) { return objects::is_damage(error) && error.code != ErrorCode::io; }

/// That no name is found proves nothing: an object above may be lost. What proves it is the key that the removal has left.
/// Damage: nothing proves it then, and who repairs the directory is not kept out by a lease that nobody has.
Result<bool> was_removed_unsealed(Instance& instance, Ino directory) {
  const auto traces = objects::read_inode(instance.reader(), directory, {.traces = true});
  if (!traces && is_unreadable(traces.error())) return false;
  if (!traces && traces.error().code != ErrorCode::not_found) return std::unexpected(traces.error());
  if (!traces || !traces->is_directory() || traces->has_entries) return false;
  bool is_detached = false;
  for (const auto& pointer : traces->pointers) {
    LCCFS_TRY(const auto parent,
              objects::find_object(instance.reader(), {.object = format::inode_object(pointer.parent),
                                                       .ranges = {{format::detached_prefix(directory), "", 1}}}));
    if (!parent) return false;
    is_detached = is_detached || !parent->ranges.front().entries.empty();
  }
  if (!is_detached) return false;
  const auto has_one = has_a_name(instance.reader(), directory);
  if (has_one) return !*has_one;
  return is_unreadable(has_one.error()) ? Result<bool>(false) : std::unexpected(has_one.error());
}
}  // namespace

Result<> end_lease_of_expired(Instance& instance, Ino directory, Token tenure) {
  LCCFS_TRY(const bool was_removed, was_removed_unsealed(instance, directory));
  return was_removed ? end_removed_directory(instance, directory, tenure)
                     : end_directory_lease(instance, directory, tenure);
}

Result<bool> move_out(Instance& instance, const Query& query, const txn::Name& name, const txn::Entry& marked) {
  LCCFS_CHECK(instance.rely_on_directory(name.directory));
  const auto now = instance.clock().wall_time();
  if (marked.record.type != FileType::directory) {
    return done_or_needless(instance.run(txn::move_entry_out(name, marked, now, std::nullopt)));
  }
  LCCFS_TRY(const auto directory, directory_of(query, name));
  if (!directory) return true;
  const auto stands = directory->keys.find(name.key);
  if (stands == directory->keys.end() || stands->second != marked.raw) return true;
  LCCFS_TRY(const auto count, directory->needed<format::NumberRecord>(format::xattr::nsub));
  const txn::SubdirectoryCount nsub{directory->xattrs.at(format::xattr::nsub),
                                    count.value - std::min<std::uint64_t>(count.value, 1)};
  const auto step = instance.run(txn::move_entry_out(name, marked, now, nsub));
  if (step && step->decided == Decided::refused) return false;
  return done_or_needless(step);
}

Result<> decide_move(Instance& instance, const format::EntryRecord::Mark& mark) {
  LCCFS_TRY(const auto state, state_of_move(instance.reader(), mark));
  return state == MoveState::undecided ? cancel(instance, mark) : Result<>();
}

Result<bool> settle_mark(Instance& instance, const Query& query, const txn::Name& name, const txn::Entry& entry) {
  const auto& mark = *entry.record.mark;
  LCCFS_TRY(const auto state, state_of_move(query, mark));
  if (state == MoveState::committed) return move_out(instance, query, name, entry);
  if (state == MoveState::undecided) {
    LCCFS_CHECK(cancel(instance, mark));
    return false;
  }
  return done_or_needless(instance.run(txn::clear_mark(name, entry)));
}

Result<bool> finish_move(Instance& instance, const Query& query, Token token, const DecisionRecord& committed) {
  const auto& uuid = instance.super().uuid;
  LCCFS_TRY(const auto old_name, old_name_of(query, uuid, token, committed));
  if (!old_name) return true;
  return move_out(instance, query, txn::Name(uuid, old_name->directory, old_name->name),
                  {encode(old_name->record), old_name->record});
}

Result<bool> settle_seal(Instance& instance, const Query& query, Ino sealed, const StateRecord& seal) {
  const auto unseal = [&] { return done_or_needless(instance.run(txn::unseal(sealed, seal))); };
  const auto mark_dead = [&] { return done_or_needless(instance.run(txn::mark_dead(sealed, seal))); };
  const auto detached = format::detached_key(sealed, seal.token);
  const auto decision = format::decision_key(seal.token);
  LCCFS_TRY(const auto parent,
            objects::find_object(query, {.object = format::inode_object(seal.parent), .keys = {detached, decision}}));
  if (!parent) {
    LCCFS_TRY(const bool named, has_a_name(query, sealed));
    return named ? unseal() : mark_dead();
  }
  if (parent->keys.contains(detached)) return mark_dead();
  if (const auto decided = parent->keys.find(decision); decided != parent->keys.end()) {
    const auto object = format::inode_object(seal.parent);
    LCCFS_TRY(const auto record, objects::decode_part<DecisionRecord>(object, decision, decided->second));
    return record.kind == DecisionRecord::Kind::committed ? mark_dead() : unseal();
  }
  LCCFS_CHECK(instance.rely_on_directory(seal.parent));
  LCCFS_CHECK(done_or_needless(instance.run(txn::cancel_seal(seal.parent, sealed, seal.token))));
  return false;
}

}  // namespace lccfs::reclaim
