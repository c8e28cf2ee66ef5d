// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/directories.h"

#include "base/text.h"

namespace lccfs::metrics {
namespace {

constexpr std::array<const char*, 3> work_names = {"read", "write", "other"};

/// No two names have the same; none has that of the others, or of the top.
std::string label_of(std::string_view name) { return name == "other" ? "/other" : escaped(name, "\\"); }

}  // namespace

void Directories::take_name(unsigned place, std::string_view name) {
  for (unsigned other = first_own; other < places; ++other) {
    if (other != place && counts_[other].tag != 0 && names_[other] == name) counts_[other].tag = 0;
  }
  names_[place] = name;
}

DirectoryTag Directories::add(std::string_view name) {
  const Lock lock(mutex_);
  for (unsigned place = first_own; place < places; ++place) {
    Place& free = counts_[place];
    if (free.tag != 0) continue;
    for (unsigned work = 0; work < works; ++work) free.operations[work] = free.took_ns[work] = free.bytes[work] = 0;
    take_name(place, name);
    const DirectoryTag tag{static_cast<std::uint16_t>(place << 8 | ++uses_[place])};
    free.tag = tag.value;
    return tag;
  }
  return other_directories;
}

bool Directories::name(DirectoryTag tag, std::string_view name) {
  const Lock lock(mutex_);
  const unsigned place = place_of(tag);
  const bool is_there = place >= first_own && counts_[place].tag == tag.value;
  if (is_there && names_[place] != name) take_name(place, name);
  return is_there;
}

void Directories::drop(DirectoryTag tag) {
  const Lock lock(mutex_);
  const unsigned place = place_of(tag);
  if (place >= first_own && counts_[place].tag == tag.value) counts_[place].tag = 0;
}

void Directories::count(DirectoryTag tag, Work work, std::chrono::nanoseconds took, std::uint64_t bytes) {
  unsigned at = place_of(tag);
  if (at >= places || (at >= first_own && counts_[at].tag.load(std::memory_order_relaxed) != tag.value)) {
    at = other_directories.value;
  }
  const auto which = static_cast<std::size_t>(work);
  counts_[at].operations[which].fetch_add(1, std::memory_order_relaxed);
  counts_[at].took_ns[which].fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  if (bytes != 0) counts_[at].bytes[which].fetch_add(bytes, std::memory_order_relaxed);
}

std::vector<Directories::Shown> Directories::shown() const {
  std::vector<Shown> shown{{counts_[top_itself.value], "/"}, {counts_[other_directories.value], "other"}};
  const Lock lock(mutex_);
  for (unsigned place = first_own; place < places; ++place) {
    if (counts_[place].tag != 0) shown.push_back({counts_[place], label_of(names_[place])});
  }
  return shown;
}

/// Lookups wait for the mutex: the text is made without it.
void Directories::write(Exposition& page) const {
  const auto all = shown();
  page.family("lccfs_directory_duration_seconds", Exposition::Type::summary,
              "How long operations took below a directory on top of the volume.");
  for (const auto& [place, label] : all) {
    for (std::size_t work = 0; work < works; ++work)
      page.summary({{"directory", label}, {"work", work_names[work]}}, place.operations[work],
                   std::chrono::nanoseconds(place.took_ns[work].load()));
  }
  page.family("lccfs_directory_read_bytes_total", Exposition::Type::counter, "Bytes read below it.");
  for (const auto& [place, label] : all) {
    page.sample({{"directory", label}}, place.bytes[static_cast<std::size_t>(Work::read)]);
  }
  page.family("lccfs_directory_written_bytes_total", Exposition::Type::counter, "Bytes written below it.");
  for (const auto& [place, label] : all) {
    page.sample({{"directory", label}}, place.bytes[static_cast<std::size_t>(Work::write)]);
  }
}

}  // namespace lccfs::metrics
