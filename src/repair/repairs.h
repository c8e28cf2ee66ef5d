// SPDX-License-Identifier: LGPL-2.1-or-later
// One repair for each kind of finding. Blocking; one thread.
//
// Each reads anew what it rests on: what was found may have been repaired with another finding. The table in
// repairs.cpp has them all, with their order.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/finding.h"
#include "instance/instance.h"
#include "repair/lost_and_found.h"
#include "repair/objects.h"
#include "repair/repair.h"
#include "repair/users.h"

namespace lccfs::repair {

// ---- what they answer

inline Repair left(std::string why) { return {false, std::move(why)}; }
inline Repair left_to_newer(const std::string& what) {
  return left("a newer version has written " + what + ": use a newer lccfs-fsck");
}
constexpr const char* may_be_its_name = "a name that may be its own";
/// What was found is not there any more: another repair has seen to it.
inline Repair settled() { return {true, "seen to by another repair"}; }
inline Repair changed_meanwhile() { return {false, "the object has changed meanwhile", true}; }

class Repairs {
 public:
  Repairs(Objects& objects, Clock& clock, UnrecordedClients& unrecorded, Orphans orphans)
      : objects_(objects), clock_(clock), unrecorded_(unrecorded), orphans_(orphans) {}

  /// Whether an instance needs it to start (Super, Alloc, the root), or it is of the queues, on which all others rest:
  /// repaired first, and without an instance.
  static bool comes_first(const check::Finding& finding);
  /// Findings of a lower rank are repaired first: names before what counts them, and all that before the queue.
  static unsigned rank(const check::Finding& finding);
  /// A back-pointer of which nothing tells where it led.
  static bool is_lost_back_pointer(const check::Finding& finding);
  /// The client that its repair will take for ended, if it is gone: look at it for a minute before.
  static std::optional<InstanceId> unrecorded_client(const check::Finding& finding);
  /// Before all other repairs. `instance` outlives them.
  void use(Instance& instance);

  /// To be called with all findings of a check before the first of them is repaired.
  Result<> look_ahead(const std::vector<check::Finding>& findings);
  Result<Repair> repair(const check::Finding& finding);

 private:
  using Finding = check::Finding;

  struct Row {
    check::Kind kind;
    unsigned rank;
    Result<Repair> (Repairs::*repair)(const Finding&);
  };
  static const Row& row_of(check::Kind kind);

  Result<> make_way(Ino ino);
  Result<Repair> refuse_newer(const Finding& finding);
  Result<Repair> leave_unreadable(const Finding& finding);
  Result<Repair> step(const MetaTxn& txn, std::string what);
  Result<Repair> put(const Object& object, const txn::Part& part, const Bytes& value, std::string what);
  Result<Repair> drop(const Object& object, const txn::Part& part, std::string what);
  // volume_objects.cpp
  Result<Repair> make_missing(const Finding& finding);
  Result<Repair> raise_numbers(const Finding& finding);
  Result<Repair> raise_fences(const Finding& finding);
  Result<Repair> raise_counter(const std::string& object, const char* xattr, std::uint64_t least);
  Result<Repair> derive_volume_part(const Object& object, const txn::Part& part);
  Result<std::optional<Repair>> unless_gone(InstanceId client);
  Result<Repair> add_ended_record(const Finding& finding);
  Result<std::uint64_t> highest_number();
  Result<std::uint64_t> last_number_given();
  Result<std::uint64_t> highest_fence();
  // parts.cpp: xattrs, keys and payloads
  Result<Repair> repair_part(const Finding& finding);
  Result<Repair> repair_payload(const Object& object, const Finding& finding);
  Result<Repair> derive_xattr(const Object& inode, Ino ino, const std::string& name);
  Result<Repair> derive_time(const Object& inode, const txn::Part& part);
  Result<Repair> void_lease(const Object& inode, Ino ino);
  Result<Repair> derive_key(const Object& inode, Ino ino, const txn::Part& part);
  Result<Repair> derive_reverse_key(const Object& directory, Ino ino, const txn::Part& part);
  Result<Repair> repair_entry(const Object& directory, Ino ino, const txn::Part& part);
  Result<Repair> entry_from_reverse_key(const Object& directory, Ino ino, const txn::Name& name);
  Result<> keep_those_that_miss_a_name(std::vector<format::EntryRecord>& candidates);
  Result<bool> has_all_names_with_newer_ones(Ino ino);
  Result<Repair> move_newer_entry(const Object& directory, Ino ino, const txn::Part& part);
  Result<Repair> move_entry(const Object& directory, const txn::Part& part, const txn::Name& name);
  Result<txn::Name> name_of_the_hash(const std::string& key, const Bytes& value, const txn::Name& name);
  Result<Repair> rebuild_map_block(const Object& inode, Ino ino, const txn::Part& part);
  Result<Repair> repair_flags(const Finding& finding);
  // names.cpp: V and P; directories
  Result<Repair> add_reverse_key(const Finding& finding);
  Result<Repair> repair_stray_reverse_key(const Finding& finding);
  Result<bool> is_wanted_beside_another(const Finding& finding);
  Result<Repair> repair_type(const Finding& finding);
  Result<Repair> drop_dangling_entry(const Finding& finding);
  Result<Repair> add_back_pointer(const Finding& finding);
  Result<Repair> point_back(const Object& inode, const std::vector<Holder>& names);
  Result<Repair> count_links(const Finding& finding);
  Result<Repair> drop_further_name(const Finding& finding);
  Result<Repair> reconnect(const Finding& finding);
  Result<Repair> break_loop(const Object& inode, Ino ino, const std::vector<Holder>& names);
  Result<bool> drop_name(const Holder& holder, Ino ino);
  enum class Way { to_root, to_lost_top, around };
  Result<Way> way_up(Ino directory);
  Result<Repair> count_subdirectories(const Finding& finding);
  // moves.cpp: marks and decisions of renames across directories
  Result<Repair> repair_marks(const Finding& finding);
  Result<Repair> restore_entry(const Object& directory, const txn::Name& name, const format::EntryRecord& entry,
                               std::string what);
  Result<bool> lead_to_mark(const txn::Name& name, const format::EntryRecord& entry);
  Result<Repair> derive_decision(const Object& directory, Ino ino, const txn::Part& part);
  Result<bool> has_moved_away(const Holder& name, const std::vector<Holder>& all);
  Result<std::vector<Holder>> standing_names(const Object& inode, Ino ino);
  Result<std::optional<txn::Name>> marked_name(Ino ino, const format::EntryRecord::Mark& mark);
  // orphans.cpp
  Result<Repair> repair_orphan(const Finding& finding);
  Result<bool> is_wanted(const Object& inode, Ino ino);
  static bool is_of_lost_root(const Object& root, Ino ino);
  Result<std::multiset<ErrorCode>> unreadable_names(const Object& inode, Ino ino);
  Result<std::size_t> count_newer_names(const Object& inode, Ino ino);
  Result<> add_unreadable_names(std::multiset<ErrorCode>& why, const Object& directory, Ino parent, Ino ino);
  Result<bool> has_content(const Object& inode, Ino ino);
  Result<Repair> adopt(const Object& inode, Ino ino, const std::string& old_name,
                       const std::vector<Holder>& pointed_to);
  Result<Repair> leave_to_collector(const Object& inode, Ino ino, std::string why);
  Result<> log_items(const std::vector<format::QueueItem>& items);
  Result<Repair> lead_to_lost_pointer(Ino ino);
  Result<Repair> log_traces(const Finding& finding);
  // data.cpp: M and T; bytes that belong to no file, into files of /lost+found
  txn::FoundFile file_of(Ino ino, Token token, const std::set<ObjectIndex>& indexes, std::uint64_t size_bytes);
  Result<Repair> make_inode_for_data(const Finding& finding);
  Result<Repair> make_inode_for_data(Ino ino, std::set<ObjectIndex> indexes);
  Result<bool> make_file(const txn::FoundFile& file);
  Result<Repair> map_data(const Finding& finding);
  Result<Repair> cut_tail(const Finding& finding);
  bool fits_in_a_file(ObjectIndex index) const;
  bool may_go(ObjectIndex index) const;
  Result<std::string> keep_past_the_end(Ino ino, ObjectIndex index);
  Result<Repair> move_data(Ino ino, const std::set<ObjectIndex>& indexes, std::uint64_t size_bytes);
  Result<Repair> repair_unknown_object(const Finding& finding);
  Result<Repair> keep_metadata(const Object& object);
  Result<Repair> keep_data(const std::string& object);
  struct Source {
    std::string name;
    std::set<ObjectIndex> indexes;  // of its pieces, each of an object's size
    std::uint64_t size_bytes = 0;
    std::function<Result<Bytes>(ObjectIndex)> piece;
  };
  /// The path.
  Result<std::string> keep(const Source& source);
  Result<std::string> keep_if_wanted(const Source& source);
  Result<bool> is_kept(const Source& source, Ino file);
  Result<Ino> copy(const Source& source, Token token);

  txn::Name name_of(Ino directory, const std::string& name) const { return {objects_.uuid(), directory, name}; }
  std::uint64_t object_size_bytes() const { return instance_->super().object_size_bytes; }

  Objects& objects_;
  Clock& clock_;
  UnrecordedClients& unrecorded_;
  const Orphans orphans_;
  Instance* instance_ = nullptr;
  std::optional<LostAndFound> lost_and_found_;
  std::map<Ino, std::set<ObjectIndex>> lost_data_;
};

}  // namespace lccfs::repair
