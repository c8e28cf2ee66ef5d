// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fsck: checks and repairs a volume.
#include <algorithm>
#include <iostream>

#include "base/program.h"
#include "format/object_names.h"
#include "fsck/command.h"
#include "fsck/report.h"
#include "metrics/hanging_operations.h"
#include "options/progress.h"
#include "repair/users.h"

namespace lccfs::fsck {
namespace {

using options::ProgressBar;

constexpr Program program{
    .name = "lccfs-fsck", .failed = exit_operational, .usage = exit_usage, .output_lost = exit_operational};

/// A volume without Super is a damaged one; one without any object of ours is none.
Result<> expect_volume(ObjectStore& store, const VolumeAddress& address) {
  const auto super = store.query({.object = format::super_object});
  if (super || super.error().code != ErrorCode::not_found) return super ? Result<>{} : std::unexpected(super.error());
  std::string cursor;
  do {
    LCCFS_TRY(ListPage page, store.list(cursor));
    if (std::ranges::any_of(page.names, [](const auto& name) { return format::parse_object_name(name).has_value(); }))
      return {};
    cursor = std::move(page.next_cursor);
  } while (!cursor.empty());
  return std::unexpected(address.no_volume());
}

std::string those_there(const std::vector<repair::User>& users) {
  std::string there;
  for (const auto& user : users) {
    if (user.watches) there += (there.empty() ? "" : ", and by ") + describe(user);
  }
  return there;
}

Result<> expect_no_users(ObjectStore& store, const Command& command) {
  LCCFS_TRY(const auto users, repair::users_of(store));
  if (const auto there = those_there(users); !there.empty() && !command.force) {
    return failure(ErrorCode::busy, "the volume is in use by " + there +
                                        "; end it there first: systemctl stop lccfs@NAME lccfs-gc@NAME, or umount (a "
                                        "client that has just died on another host is seen for up to half a minute); "
                                        "or give --force if you know better");
  }
  for (const auto& user : users) {
    if (user.watches) continue;
    const bool check = command.what == Command::What::check;
    print_error(program.name, describe(user) + " has gone without a clean end" +
                                  (check ? "; --repair fences it, or a collector does" : ""));
  }
  return {};
}

Result<std::shared_ptr<ObjectStore>> open_volume(const Command& command, metrics::HangingOperations& hanging) {
  // Once it knows who uses the volume, a repair waits for a store that does not answer, as a mount does.
  StoreOptions options;
  if (command.what == Command::What::check) options.step_timeout = std::chrono::seconds(30);
  LCCFS_TRY(auto opened, open_store(command.address, options));
  auto store = hanging.look_at(std::move(opened));
  LCCFS_CHECK(expect_volume(*store, command.address));
  if (command.what == Command::What::repair) LCCFS_CHECK(store->check_may_fence());  // whatever it will find
  LCCFS_CHECK(expect_no_users(*store, command));
  return store;
}

Result<> check(ObjectStore& store, const check::CheckOptions& options, ProgressBar& bar, Report& report,
               Summary& summary) {
  LCCFS_TRY(summary.check, check::check_volume(store, options, [&](const check::Finding& finding) {
              bar.clear();
              report.found(finding);
              ++summary.left;
            }));
  return check::expect_all_was_read(summary.check);
}

Result<> repair(const std::shared_ptr<ObjectStore>& store, const Command& command, const check::CheckOptions& options,
                ProgressBar& bar, Report& report, Summary& summary) {
  repair::RepairOptions how;
  how.orphans = command.orphans;
  how.though_in_use = command.force;
  how.check = options;
  how.on_repair = [&](const check::Finding& finding, const repair::Repair& what) {
    bar.clear();
    report.dealt_with(finding, what);
    ++(what.done ? summary.repaired : summary.left);
  };
  LCCFS_TRY(const auto done, repair::repair_volume(store, system_clock(), how));
  summary.check = done.check;
  summary.left = done.left;
  return {};
}

int check_or_repair(const Command& command) {
  metrics::HangingOperations hanging(system_clock());
  const auto store = open_volume(command, hanging);
  if (!store) return complain(program, store.error().context, program.failed);
  ProgressBar bar(system_clock(), options::terminal(!command.json));
  const auto on_progress = [&](const check::Progress& progress) {
    bar.show({progress.objects_done, objects_expected(command.address, progress)});
  };
  const check::CheckOptions options{command.jobs, on_progress};
  const auto report = command.json ? json_report(std::cout) : text_report(std::cout);
  const auto started = system_clock().elapsed();
  Summary summary;
  const Result<> done = command.what == Command::What::check ? check(**store, options, bar, *report, summary)
                                                             : repair(*store, command, options, bar, *report, summary);
  bar.clear();
  summary.complete = done.has_value();
  summary.took = system_clock().elapsed() - started;
  report->end(summary);
  if (!done) print_error(program.name, done.error().context);
  return exit_status(summary);
}

int run(const std::vector<std::string>& words) {
  const auto command = parse_command(words);
  if (!command) return complain(program, command.error().context, program.usage);
  if (!command->answer.empty()) return (std::cout << command->answer), EXIT_SUCCESS;
  return check_or_repair(*command);
}

}  // namespace
}  // namespace lccfs::fsck

int main(int argc, char** argv) { return lccfs::run_program(argc, argv, lccfs::fsck::program, lccfs::fsck::run); }
