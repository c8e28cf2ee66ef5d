// SPDX-License-Identifier: LGPL-2.1-or-later
// Faults of threads that use LMDB's pages. In a handler only what is safe there: no locks, no memory is taken.
#include <array>
#include <csignal>
#include <mutex>

#include "base/program.h"
#include "store/local/metadata_pages.h"

namespace lccfs::local {
namespace {

constexpr std::array signals = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};

thread_local const std::string* file_in_use = nullptr;
thread_local unsigned uses = 0;
std::array<struct sigaction, signals.size()> handlers_before;

void on_fault(int signal) {
  if (uses != 0)
    end_by_damage(
        {file_in_use->c_str(),
         ": a page that was used just now is damaged or cut off: the volume's metadata is damaged; restore it "
         "from a copy"});
  for (std::size_t i = 0; i < signals.size(); ++i)
    if (signals[i] == signal) sigaction(signal, &handlers_before[i], nullptr);
  raise(signal);  // taken when this returns
}

}  // namespace

UsingPages::UsingPages(const std::string& file) {
  file_in_use = &file;
  ++uses;
}

UsingPages::~UsingPages() { --uses; }

void UsingPages::watch_for_faults() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = on_fault;
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &handlers_before[i]);
  });
}

}  // namespace lccfs::local
