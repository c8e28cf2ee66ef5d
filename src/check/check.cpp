// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a volume of any size is checked with little memory:
//  - Super, Alloc and the queues are read first (volume_facts.h).
//  - The names of all objects are listed in parts, by several threads. Each inode is read once, and judged by itself
//    (inode_scan.h). What is kept of it is a small record if it is a directory, and a number that is added to its
//    parent's record otherwise (namespace_index.h). Names of data objects are collected, and looked at in batches
//    against their inodes (data_check.h).
//  - An object that the store cannot read ends it here: what others say of it is not to be judged, as if it were missing.
//  - Where the sums of a directory's entries and of the inodes that claim it agree, nothing is read again. In the other
//    directories entries are looked at one by one (match.cpp). Only if that leaves claims that no entry, no d/ key and no
//    queue item explains, or claims of a directory that was lost, the inodes are streamed once more.
//  - What several inodes together must fulfil is judged from the records (links.cpp).
#include "check/check.h"

#include <atomic>
#include <set>

#include "check/data_check.h"
#include "check/inode_scan.h"
#include "check/namespace_check.h"
#include "check/patient_store.h"
#include "format/object_names.h"

namespace lccfs::check {

namespace {

class VolumeCheck {
 public:
  VolumeCheck(ObjectStore& store, const CheckOptions& options, Sink& sink)
      : store_(store), options_(options), sink_(sink) {}

  Result<CheckReport> run() {
    LCCFS_CHECK(read_volume_facts(store_, sink_, facts_));
    LCCFS_TRY(const auto capacity, store_.capacity());
    expected_ = capacity.objects;
    auto effort = effort_for(options_.jobs, expected_);
    effort.on_unreadable = [this](const std::string& object, const Error& error) { note_unreadable(object, error); };
    LCCFS_CHECK(for_each_name(store_, effort, [this](ReadWindow& window, const std::vector<std::string>& names) {
      return look_at(window, names);
    }));
    LCCFS_CHECK(data_.finish(effort));
    if (unreadable() > 0) return report();
    effort.on_unreadable = nullptr;
    check_counters(facts_, sink_);
    if (!root_seen_) {  // after these: a repair numbers the new root by them
      sink_.report({Kind::missing_object, format::inode_object(root_ino), "the root is not there"});
    }
    if (facts_.super) LCCFS_CHECK(check_namespace(effort));
    return report();
  }

 private:
  Result<> look_at(ReadWindow& window, const std::vector<std::string>& names) {
    for (const auto& name : names) LCCFS_CHECK(look_at(window, name));
    objects_ += names.size();
    tell_progress();
    return {};
  }

  Result<> look_at(ReadWindow& window, const std::string& name) {
    const auto parsed = format::parse_object_name(name);
    if (!parsed) {
      sink_.report({Kind::unknown_object, name, "no program of ours makes such an object"});
      return {};
    }
    if (const auto* data = std::get_if<format::DataName>(&*parsed)) {
      facts_.see_number(data->ino.value);
      return data_.add(window, data->ino, data->index);
    }
    if (const auto* session = std::get_if<format::SessionName>(&*parsed)) {
      facts_.see_number(session->instance.value);
      if (facts_.super && !facts_.records.contains(session->instance)) {
        return check_stray_session(store_, sink_, session->instance);
      }
    }
    if (const auto* inode = std::get_if<format::InodeName>(&*parsed)) {
      facts_.see_number(inode->ino.value);
      return scan_inode(window, facts_, inode->ino, on_inode_);
    }
    return {};
  }

  void take_inode(Ino ino, ScannedInode inode) {
    if (ino == root_ino) root_seen_ = true;
    facts_.fence.see(inode.highest_fence);
    facts_.see_number(inode.highest_instance);
    index_.add(ino, inode, facts_.queue.leads_to(ino));
    if (inode.small_file) data_.remember(*inode.small_file);
    sink_.report(std::move(inode.findings));
  }

  /// May be told twice: the inode of a file with data is read again.
  void note_unreadable(const std::string& object, const Error& error) {
    {
      const Lock lock(mutex_);
      if (!unreadable_.insert(object).second) return;
    }
    sink_.report({Kind::unreadable, object,
                  error.code == ErrorCode::io ? "the store answers with an input/output error"
                                              : "the store finds it damaged: " + error.context});
  }
  std::size_t unreadable() {
    const Lock lock(mutex_);
    return unreadable_.size();
  }

  Result<> check_namespace(const Effort& effort) {
    DirectoryReader directories(store_, facts_.super->uuid);
    const NamespaceCheck check{store_, facts_, index_, directories, sink_, effort};
    UnlessDetached findings(check);
    LCCFS_TRY(const auto unclear, match_entries(check, findings));
    check_several_names(check);
    LCCFS_CHECK(check_paths(check, findings));
    LCCFS_CHECK(check_links(check, unclear, findings));
    return findings.finish();
  }

  void tell_progress() {
    if (!options_.on_progress) return;
    if (telling_progress_.test_and_set()) return;  // another thread
    options_.on_progress({objects_, expected_});
    telling_progress_.clear();
  }

  CheckReport report() {
    CheckReport report;
    report.objects = objects_;
    for (const auto& [ino, record] : index_.directories) report.directories += record.is_directory ? 1 : 0;
    report.other_inodes = index_.other_inodes;
    report.data_objects = data_.objects();
    report.findings = sink_.count();
    report.unreadable = unreadable();
    return report;
  }

  ObjectStore& store_;
  const CheckOptions& options_;
  Sink& sink_;
  VolumeFacts facts_;
  NamespaceIndex index_;
  const OnInode on_inode_ = [this](Ino ino, ScannedInode inode) { take_inode(ino, std::move(inode)); };
  DataCheck data_{store_, facts_, sink_};
  std::atomic<std::uint64_t> objects_ = 0;
  std::uint64_t expected_ = 0;
  std::atomic<bool> root_seen_ = false;
  Mutex mutex_;
  std::set<std::string> unreadable_ GUARDED_BY(mutex_);
  std::atomic_flag telling_progress_;
};

}  // namespace

Result<CheckReport> check_volume(ObjectStore& store, const CheckOptions& options,
                                 const std::function<void(const Finding&)>& on_finding) {
  Sink sink(on_finding);
  PatientStore patient(store);
  return VolumeCheck(patient, options, sink).run();
}

Result<> expect_all_was_read(const CheckReport& report) {
  if (report.unreadable == 0) return {};
  return failure(ErrorCode::io, "what others say of objects that cannot be read (" + std::to_string(report.unreadable) +
                                    ") was not judged: mend the store first (of a pool: ceph health detail), then "
                                    "check again");
}

Result<std::vector<Finding>> check_volume(ObjectStore& store) {
  std::vector<Finding> findings;
  const std::function<void(const Finding&)> keep = [&findings](const Finding& finding) { findings.push_back(finding); };
  LCCFS_TRY(const auto report, check_volume(store, {}, keep));
  LCCFS_CHECK(expect_all_was_read(report));
  return findings;
}

}  // namespace lccfs::check
