// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/repairs.h"

#include "reclaim/settle.h"

namespace lccfs::repair {

using check::Kind;

const Repairs::Row& Repairs::row_of(Kind kind) {
  static constexpr check::KindTable<Row> rows = {{
      {Kind::corrupt, 1, &Repairs::repair_part},
      {Kind::unsupported, 1, &Repairs::refuse_newer},
      {Kind::unreadable, 0, &Repairs::leave_unreadable},
      {Kind::missing_part, 1, &Repairs::repair_part},
      {Kind::unknown_part, 1, &Repairs::repair_part},
      {Kind::unknown_object, 13, &Repairs::repair_unknown_object},
      {Kind::missing_object, 0, &Repairs::make_missing},
      {Kind::number_not_given, 0, &Repairs::raise_numbers},
      {Kind::fences_behind, 0, &Repairs::raise_fences},
      {Kind::dangling_entry, 5, &Repairs::drop_dangling_entry},
      {Kind::wrong_type, 6, &Repairs::repair_type},
      {Kind::reverse_key, 2, &Repairs::add_reverse_key},
      {Kind::stray_reverse_key, 7, &Repairs::repair_stray_reverse_key},  // once names that stand are pointed back to
      {Kind::marks_differ, 3, &Repairs::repair_marks},
      {Kind::subdirectories, 12, &Repairs::count_subdirectories},
      {Kind::several_names, 8, &Repairs::drop_further_name},
      {Kind::unreachable, 10, &Repairs::reconnect},
      {Kind::no_back_pointer, 6, &Repairs::add_back_pointer},
      {Kind::orphan, 11, &Repairs::repair_orphan},
      {Kind::wrong_links, 12, &Repairs::count_links},
      {Kind::lost_trace, 13, &Repairs::log_traces},
      {Kind::stray_session, 0, &Repairs::add_ended_record},
      {Kind::data_without_inode, 4, &Repairs::make_inode_for_data},  // entries may dangle for it
      {Kind::unmapped_data, 9, &Repairs::map_data},
      {Kind::data_past_size, 9, &Repairs::cut_tail},
      {Kind::denied_attribute, 1, &Repairs::repair_flags},
  }};
  static_assert(check::is_complete(rows));
  return check::row_of(rows, kind);
}

bool Repairs::comes_first(const Finding& finding) {
  if (finding.kind == Kind::unknown_object) return false;  // whatever its name begins with
  return row_of(finding.kind).rank == 0 || finding.object == format::super_object ||
         finding.object == format::alloc_object || finding.object.starts_with("Session.");
}

/// A collector leaves an inode alone that it cannot read. Without what cannot be read of its back-pointers it would count
/// the names in the other directories only: these last parts wait until all names are pointed back to, and what has none
/// is adopted.
unsigned Repairs::rank(const Finding& finding) {
  constexpr unsigned once_all_names_are_known = 12;
  if (comes_first(finding)) return 0;
  return is_lost_back_pointer(finding) ? once_all_names_are_known : row_of(finding.kind).rank;
}

void Repairs::use(Instance& instance) {
  instance_ = &instance;
  lost_and_found_.emplace(instance, objects_);
  objects_.set_make_way([this](Ino ino) { return make_way(ino); });
}

/// Way is made before anything is read. Otherwise the first step on a directory that was held would be refused, and the
/// repairs after it would take the volume for what it was to be repaired from.
Result<Repair> Repairs::repair(const Finding& finding) {
  if (instance_ != nullptr) {
    for (const Ino ino : {finding.ino, finding.target}) LCCFS_CHECK(make_way(ino));
  }
  return (this->*row_of(finding.kind).repair)(finding);
}

/// A directory that a client holds: it releases it, or it is void. A step that was to be done on what was read before
/// finds the object changed then. Whether its holder had removed it is not judged here: one whose name has lost a half
/// looks as if it had none.
Result<> Repairs::make_way(Ino ino) {
  LCCFS_TRY(const auto object, objects_.read_keys(format::inode_object(ino), {}));
  if (!object || !object->is(FileType::directory)) return {};
  const auto lease = object->find<format::DirectoryLeaseRecord>(format::xattr::lease);
  if (!lease) return {};
  LCCFS_TRY(const auto holder, reclaim::ask_to_release(*instance_, ino, lease->token));
  return holder == Settled::expired ? reclaim::end_directory_lease(*instance_, ino, lease->token) : Result<>();
}

Result<Repair> Repairs::refuse_newer(const Finding& finding) {
  return comes_first(finding) ? left("use a newer lccfs-fsck") : left_to_newer("it");
}

/// A check that meets one ends with an error, and no repair begins.
Result<Repair> Repairs::leave_unreadable(const Finding&) { return left("the store cannot read it"); }

Result<Repair> Repairs::step(const MetaTxn& txn, std::string what) {
  LCCFS_TRY(const bool done, objects_.change(txn));
  return done ? Repair{true, std::move(what)} : changed_meanwhile();
}

Result<Repair> Repairs::put(const Object& object, const txn::Part& part, const Bytes& value, std::string what) {
  return step(txn::put_part(object.as_read(), part, value), std::move(what));
}

Result<Repair> Repairs::drop(const Object& object, const txn::Part& part, std::string what) {
  return step(txn::drop_part(object.as_read(), part), std::move(what));
}

}  // namespace lccfs::repair
