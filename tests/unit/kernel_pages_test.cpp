// SPDX-License-Identifier: LGPL-2.1-or-later
// What of its pages and attributes the kernel is told to keep and to drop.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/object_names.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"
#include "unit/buffered_mounts.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

/// Notes what the kernel is told: "attributes", "pages", "pages 4096+100".
class NotingKernel : public KernelCache {
 public:
  bool can_keep_names() const override { return false; }
  void expire_name(Ino, const std::string&) override {}
  void forget_names() override {}
  void invalidate_attributes(Ino) override { note("attributes"); }
  void raise_size(Ino, std::uint64_t size_bytes, char last_byte) override {
    note("size " + std::to_string(size_bytes) + " to '" + last_byte + "'");
  }
  void invalidate_pages(Ino) override {
    note("pages");
    if (auto write_back = take_write_back()) write_back();
  }
  void invalidate_page_range(Ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) override {
    note("pages " + std::to_string(offset_bytes) + "+" + std::to_string(size_bytes));
  }

  /// A program has changed a page through a mapping: the kernel writes it back before it drops it.
  void is_changed(std::function<void()> write_back) {
    const std::lock_guard lock(mutex_);
    write_back_ = std::move(write_back);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }
  std::vector<std::string> take_pages() {
    auto pages = take();
    std::erase(pages, "attributes");
    return pages;
  }
  /// Attributes are gone, and pages go in the end.
  bool forgets_all() {
    const auto told = take();
    const bool has_dropped_pages = std::ranges::find(told, "pages") != told.end();
    return std::ranges::find(told, "attributes") != told.end() && (has_dropped_pages || comes_to({"pages"}));
  }
  /// What is dropped on a thread that nobody waits for is told in the end.
  bool comes_to(const std::vector<std::string>& pages) {
    std::vector<std::string> told;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (told.size() < pages.size() && std::chrono::steady_clock::now() < give_up) {
      std::ranges::copy(take_pages(), std::back_inserter(told));
      std::this_thread::yield();
    }
    return told == pages;
  }

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(what));
  }
  std::function<void()> take_write_back() {
    const std::lock_guard lock(mutex_);
    return std::exchange(write_back_, nullptr);
  }
  std::mutex mutex_;
  std::vector<std::string> told_;
  std::function<void()> write_back_;
};

using Told = std::vector<std::string>;

struct KernelMount {
  explicit KernelMount(TestVolume& volume, const FileSystemOptions& options = {}) : mount(volume.mount(options)) {
    fs().set_kernel_cache(&kernel);
  }
  ~KernelMount() { fs().set_kernel_cache(nullptr); }
  KernelMount(const KernelMount&) = delete;
  KernelMount& operator=(const KernelMount&) = delete;
  FileSystem& fs() { return *mount.file_system; }

  /// Opens, reads and closes the file as the kernel does; whether it could keep its pages.
  bool keeps_pages(Ino ino, int flags = O_RDONLY) {
    const auto opened = need(fs().open({}, ino, flags));
    close_file(fs(), opened.handle);
    return opened.keep_pages;
  }

  NotingKernel kernel;
  Mount mount;
};

/// A closed file of eight blocks, whose pages `here` has read.
OpenFile file_with_pages(KernelMount& here) {
  const auto file = create_file(here.fs(), "f");
  need(write_at(here.fs(), file.handle, 0, std::string(8 * 4096, 'a')));
  close_file(here.fs(), file.handle);
  CHECK(here.keeps_pages(file.ino));
  here.kernel.take();
  return file;
}

SetAttributes times(TimeSpec atime, TimeSpec mtime) {
  SetAttributes changes;
  changes.atime = atime;
  changes.mtime = mtime;
  return changes;
}

SetAttributes size(std::uint64_t size_bytes) {
  SetAttributes changes;
  changes.size_bytes = size_bytes;
  return changes;
}

void rewrite(FileSystem& fs, Ino ino, const std::string& text) {
  const auto handle = open_again(fs, ino);
  need(write_at(fs, handle, 0, text));
  close_file(fs, handle);
}

}  // namespace

TEST_CASE("pages are kept from open to open, and after own writes, while nobody else changes the file") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  CHECK(here.keeps_pages(file.ino));
  rewrite(here.fs(), file.ino, "own");
  CHECK(here.keeps_pages(file.ino));
  const auto writer = open_again(here.fs(), file.ino);
  need(write_at(here.fs(), writer, 0, "leased"));
  CHECK(here.keeps_pages(file.ino));
  close_file(here.fs(), writer);
  need(here.fs().set_attributes({}, file.ino, times({1, 0}, {2, 0})));
  CHECK(here.keeps_pages(file.ino));
  close_file(*other.file_system, open_again(*other.file_system, file.ino, O_RDONLY));
  CHECK(here.keeps_pages(file.ino));
  CHECK(here.kernel.take_pages() == Told{});
}

TEST_CASE("a page that was changed through a mapping is written back before another client writes beside the change") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = create_file(here.fs(), "f");
  const std::string page(4096, 'a');
  need(write_at(here.fs(), file.handle, 0, page));
  here.kernel.is_changed([&] { need(write_at(here.fs(), file.handle, 0, "mapped" + page.substr(6))); });
  const auto theirs = open_again(*other.file_system, file.ino);
  need(write_at(*other.file_system, theirs, 100, "theirs"));
  CHECK(need(read_at(*other.file_system, theirs, 0, 6)) == "mapped");
  CHECK(need(read_at(*other.file_system, theirs, 100, 6)) == "theirs");
  close_file(*other.file_system, theirs);
  close_file(here.fs(), file.handle);
}

TEST_CASE("pages go at the open after another client's rewrite that has put the times back") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  const auto before = need(here.fs().get_attributes(file.ino)).attributes;
  rewrite(*other.file_system, file.ino, std::string(8 * 4096, 'b'));
  need(other->set_attributes({}, file.ino, times(before.atime, before.mtime)));
  const auto after = need(here.fs().get_attributes(file.ino)).attributes;
  CHECK(after.mtime == before.mtime);
  CHECK(after.ctime == before.ctime);  // the clock stands still: nothing tells but the version
  CHECK_FALSE(here.keeps_pages(file.ino));
  CHECK(here.kernel.take_pages() == Told{"pages"});
  CHECK(here.keeps_pages(file.ino));
}

TEST_CASE("pages go at the open after a rewrite elsewhere, though attributes were asked for and set in between") {
  for (const std::string between : {"nothing", "stat", "chmod", "utimes"}) {
    INFO(between);
    TestVolume volume;
    KernelMount here(volume);
    auto other = volume.mount();
    const auto file = file_with_pages(here);
    const auto reader = open_again(here.fs(), file.ino, O_RDONLY);
    rewrite(*other.file_system, file.ino, "new");
    SetAttributes mode;
    mode.mode = 0600;
    if (between == "stat") need(here.fs().get_attributes(file.ino));
    if (between == "chmod") need(here.fs().set_attributes({}, file.ino, mode));
    if (between == "utimes") need(here.fs().set_attributes({}, file.ino, times({5, 0}, {6, 0})));
    CHECK_FALSE(here.keeps_pages(file.ino));
    close_file(here.fs(), reader);
  }
}

TEST_CASE("pages that were read while another held the lease are not kept: it may have written without a new version") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  const auto writer = open_again(*other.file_system, file.ino);
  need(write_at(*other.file_system, writer, 0, "one"));
  need(other->fsync(writer, false));
  CHECK_FALSE(here.keeps_pages(file.ino));
  need(write_at(*other.file_system, writer, 0, "two"));
  other.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  CHECK_FALSE(here.keeps_pages(file.ino));
}

TEST_CASE("who takes the lease after another's rewrite knows that the pages are older") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  const auto writer = open_again(here.fs(), file.ino);
  rewrite(*other.file_system, file.ino, "new");
  need(write_at(here.fs(), writer, 4096, "mine"));
  CHECK_FALSE(here.keeps_pages(file.ino));
  CHECK(here.keeps_pages(file.ino));
  close_file(here.fs(), writer);
  CHECK(here.keeps_pages(file.ino));
}

TEST_CASE("pages that are old as the lease is taken go: else mappings would show them for as long as it is held") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  const auto writer = open_again(here.fs(), file.ino);
  rewrite(*other.file_system, file.ino, "new");
  here.kernel.take();
  need(write_at(here.fs(), writer, 4096, "mine"));
  CHECK(here.kernel.comes_to({"pages"}));
  need(write_at(here.fs(), writer, 4096, "more"));
  close_file(here.fs(), writer);
  CHECK(here.kernel.take_pages() == Told{});
}

TEST_CASE("what the kernel has forgotten and looks up again has no old pages") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  here.fs().forget(file.ino);
  rewrite(*other.file_system, file.ino, "new");
  CHECK(here.keeps_pages(file.ino));
  rewrite(*other.file_system, file.ino, "old");
  CHECK_FALSE(here.keeps_pages(file.ino));
}

TEST_CASE("what the kernel forgets late, when the file is opened again already, may have pages") {
  TestVolume volume;
  KernelMount here(volume);
  auto other = volume.mount();
  const auto file = file_with_pages(here);
  const auto opened = need(here.fs().open({}, file.ino, O_RDONLY));  // as a create that has found the file
  here.fs().forget(file.ino);
  rewrite(*other.file_system, file.ino, "new");
  here.kernel.take();
  CHECK_FALSE(here.keeps_pages(file.ino));
  here.kernel.take();
  SECTION("and is looked at when it is closed") {
    here.fs().forget(file.ino);
    close_file(here.fs(), opened.handle);
    CHECK(here.kernel.comes_to({"pages"}));
  }
  SECTION("until it is forgotten with no handle open") {
    close_file(here.fs(), opened.handle);
    here.fs().forget(file.ino);
    rewrite(*other.file_system, file.ino, "old");
    CHECK(here.keeps_pages(file.ino));
  }
}

TEST_CASE("a direct write drops the pages of its range before it is answered, if the kernel may hold any") {
  TestVolume volume;
  KernelMount here(volume);
  const auto file = file_with_pages(here);
  const auto direct = need(here.fs().open({}, file.ino, O_RDWR | O_DIRECT));
  CHECK(direct.bypass_pages);
  const auto reader = need(here.fs().open({}, file.ino, O_RDONLY));
  CHECK_FALSE(reader.bypass_pages);
  here.kernel.take();
  const auto write_directly = [&] {
    need(write_with(O_RDWR | O_DIRECT, here.fs(), direct.handle, 4096, std::string(8192, 'd')));
    return here.kernel.take_pages();
  };
  CHECK(write_directly() == Told{"pages 4096+8192"});
  close_file(here.fs(), reader.handle);
  CHECK(here.kernel.comes_to({"pages"}));  // nobody reads them: all, once
  const auto again = open_again(here.fs(), file.ino, O_RDONLY);
  CHECK(write_directly() == Told{"pages 4096+8192"});
  close_file(here.fs(), again);
  // What goes through the pages, or comes from them, has changed them itself.
  const auto buffered = open_again(here.fs(), file.ino, O_RDWR);
  here.kernel.take();
  need(write_at(here.fs(), buffered, 0, "buffered"));
  auto pages = begin_write(here.fs(), direct.handle,
                           {.offset_bytes = 0, .bytes = shared_bytes("mapped"), .writes_back_pages = true});
  need(pages.get());
  CHECK(here.kernel.take_pages() == Told{});
}

TEST_CASE("the pages of a direct write go when it has left the gate: whoever reads one of them may wait there") {
  /// As the kernel does, it waits until the page that is being read is unlocked.
  class WaitingKernel : public NotingKernel {
   public:
    explicit WaitingKernel(std::function<void()> wait) : wait_(std::move(wait)) {}
    void invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) override {
      wait_();
      NotingKernel::invalidate_page_range(ino, offset_bytes, size_bytes);
    }

   private:
    std::function<void()> wait_;
  };
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR);
  need(write_at(fs, file.handle, 0, std::string(4096, 'a')));
  // Who runs alone is let in, and so is the read after it: the write is out of the way.
  std::future<void> others;
  bool let_in = false;
  WaitingKernel kernel([&] {
    others = std::async(std::launch::async, [&] {
      need(fs.set_attributes({}, file.ino, size(8192)));
      need(read_at(fs, file.handle, 0, 10));
    });
    let_in = others.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  });
  fs.set_kernel_cache(&kernel);
  auto write = begin_write(fs, file.handle, {.offset_bytes = 0, .bytes = shared_bytes("direct"), .flags = O_DIRECT});
  need(write.get());
  CHECK(let_in);
  CHECK(kernel.take_pages() == Told{"pages 0+6"});
  others.wait();
  fs.set_kernel_cache(nullptr);
}

TEST_CASE("an append that cannot be mapped passes by the pages, so that it arrives in one piece") {
  TestVolume volume;
  KernelMount here(volume);
  const auto file = file_with_pages(here);
  const auto log = need(here.fs().open({}, file.ino, O_WRONLY | O_APPEND));
  CHECK(log.bypass_pages);
  const auto mappable = need(here.fs().open({}, file.ino, O_RDWR | O_APPEND));
  CHECK_FALSE(mappable.bypass_pages);
  here.kernel.take();
  need(write_with(O_WRONLY | O_APPEND, here.fs(), log.handle, 8 * 4096, "line"));
  CHECK(here.kernel.take() == Told{"pages 32768+4"});
  need(write_with(O_WRONLY | O_APPEND, here.fs(), log.handle, 0, "line"));  // the kernel believed in another end
  CHECK(here.kernel.take() == Told{"attributes", "pages 32772+4"});
}

TEST_CASE("a direct write, and O_TRUNC, of a user clear setuid, and the kernel hears of it before they are answered") {
  const Caller user{1000, 1000};
  TestVolume volume;
  KernelMount here(volume);
  const auto file = create_file(here.fs(), "f", O_RDWR | O_DIRECT, 06777);
  need(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 0, "root"));
  CHECK(here.kernel.take() == Told{});
  need(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 0, "user", user));
  CHECK(here.kernel.take() == Told{"attributes"});
  CHECK(need(here.fs().get_attributes(file.ino)).attributes.mode == 0777);
  SetAttributes mode;
  mode.mode = 06777;
  need(here.fs().set_attributes({}, file.ino, mode));
  const auto emptied = need(here.fs().open(user, file.ino, O_WRONLY | O_TRUNC));
  CHECK(need(here.fs().get_attributes(file.ino)).attributes.mode == 0777);
  close_file(here.fs(), emptied.handle);
  need(here.fs().set_attributes({}, file.ino, mode));
  here.fs().release(need(here.fs().open({}, file.ino, O_WRONLY | O_TRUNC)).handle);
  CHECK(need(here.fs().get_attributes(file.ino)).attributes.mode == 06777);
}

TEST_CASE("a direct handle that is mapped has pages: a direct write drops them, and so does the next open") {
  TestVolume volume;
  KernelMount here(volume);
  const auto file = create_file(here.fs(), "f", O_RDWR | O_DIRECT);
  const auto write_directly = [&] {
    need(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 0, std::string(4096, 'd')));
    return here.kernel.take_pages();
  };
  CHECK(write_directly() == Told{});
  here.fs().is_mapped(file.handle);
  here.fs().is_mapped(file.handle);
  CHECK(write_directly() == Told{"pages 0+4096"});
  close_file(here.fs(), file.handle);
  const auto again = need(here.fs().open({}, file.ino, O_RDWR | O_DIRECT));
  here.kernel.take();
  here.fs().is_mapped(again.handle);  // nobody knows of which version its pages are
  CHECK_FALSE(here.keeps_pages(file.ino));
  CHECK(here.keeps_pages(file.ino));
  here.fs().release(again.handle);
}

TEST_CASE("a direct handle that may be mapped finds no pages that no other handle is counted for") {
  TestVolume volume;
  KernelMount here(volume);
  const auto file = file_with_pages(here);
  const auto log = open_again(here.fs(), file.ino, O_WRONLY | O_APPEND);  // it cannot be mapped
  CHECK(here.keeps_pages(file.ino));
  CHECK(here.kernel.take_pages() == Told{});
  const auto direct = open_again(here.fs(), file.ino, O_RDWR | O_DIRECT);
  CHECK(here.kernel.take_pages() == Told{"pages"});
  const auto other = open_again(here.fs(), file.ino, O_RDONLY | O_DIRECT);
  CHECK(here.kernel.take_pages() == Told{});
  SECTION("after a buffered open") {
    const auto reader = open_again(here.fs(), file.ino, O_RDONLY);
    here.kernel.take();
    close_file(here.fs(), reader);
    CHECK(here.kernel.comes_to({"pages"}));
  }
  SECTION("after the close of one that was mapped, but not of one of two") {
    here.fs().is_mapped(direct);
    here.fs().is_mapped(other);
    close_file(here.fs(), other);
    CHECK(here.kernel.take_pages() == Told{});
    const auto again = open_again(here.fs(), file.ino, O_RDONLY | O_DIRECT);
    here.kernel.take();
    close_file(here.fs(), direct);
    CHECK(here.kernel.comes_to({"pages"}));
    close_file(here.fs(), again);
  }
  close_file(here.fs(), log);
}

TEST_CASE("what was changed through a mapping is written back first, though no handle is counted for its pages") {
  /// The first drop waits, as for a page that is being read; a page is changed meanwhile.
  class SlowKernel : public NotingKernel {
   public:
    void invalidate_pages(Ino ino) override {
      if (drops_++ != 0) return NotingKernel::invalidate_pages(ino);
      while (waits) std::this_thread::yield();
    }
    bool is_asked() const { return drops_ != 0; }
    std::atomic<bool> waits = true;

   private:
    std::atomic<unsigned> drops_ = 0;
  };
  TestVolume volume;
  SlowKernel kernel;
  auto mount = volume.mount();
  auto& here = *mount.file_system;
  auto other = volume.mount();
  here.set_kernel_cache(&kernel);
  const auto first = create_file(here, "f", O_RDWR | O_DIRECT);
  const std::string page(4096, 'a');
  need(write_with(O_RDWR | O_DIRECT, here, first.handle, 0, page));
  const auto second = open_again(here, first.ino, O_RDWR | O_DIRECT);
  here.is_mapped(first.handle);  // the second one finds its page there
  close_file(here, first.handle);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!kernel.is_asked() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  REQUIRE(kernel.is_asked());
  mount.client->reset_record();
  std::atomic<bool> was_released = false;
  kernel.is_changed([&] {
    was_released = place_of(mount, "release lease") != mount.client->trace().size();
    need(begin_write(here, second,
                     {.offset_bytes = 0, .bytes = shared_bytes("mapped" + page.substr(6)), .writes_back_pages = true})
             .get());
  });
  SECTION("for another client") {
    const auto theirs = open_again(*other.file_system, first.ino);
    need(write_at(*other.file_system, theirs, 100, "theirs"));
    CHECK(need(read_at(*other.file_system, theirs, 0, 6)) == "mapped");
    CHECK(need(read_at(*other.file_system, theirs, 100, 6)) == "theirs");
    CHECK_FALSE(was_released);
    close_file(*other.file_system, theirs);
  }
  SECTION("before the mount ends") {
    here.write_back_pages(std::chrono::minutes(1));
    CHECK(need(read_at(here, second, 0, 6)) == "mapped");
  }
  kernel.waits = false;
  close_file(here, second);
  here.set_kernel_cache(nullptr);
}

TEST_CASE("a hole that fails in a later part drops the pages of the earlier ones, too") {
  TestVolume volume(small_objects());
  KernelMount here(volume);
  const auto file = create_file(here.fs(), "f");
  constexpr std::uint64_t last = 1024;  // the first object of the second part
  for (std::uint64_t i = 0; i <= last; ++i) need(write_at(here.fs(), file.handle, i * object_bytes, "text"));
  here.kernel.take();
  here.mount.client->set_hook([object = format::data_object(file.ino, ObjectIndex{last})](const StepInfo& info) {
    const bool fails = info.kind == StepKind::remove && info.object == object;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const auto all = (last + 1) * object_bytes;
  const auto punched = here.fs().fallocate({}, file.handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, all);
  CHECK(code_of(punched) == ErrorCode::io);
  CHECK(need(read_at(here.fs(), file.handle, 0, 4)) == std::string(4, '\0'));
  CHECK(here.kernel.take_pages() == Told{"pages 0+" + std::to_string(all)});
  here.mount.client->set_hook(nullptr);
}

TEST_CASE("a copy that is told an error by the fsync after it drops the pages of what it has copied") {
  TestVolume volume;
  FileSystemOptions options;
  options.lease_after_changes = 1;
  options.names_behind = true;
  KernelMount here(volume, options);
  const std::uint64_t copied_bytes = GENERATE(4096, 128 << 10);  // read and written here, and in parts
  const auto source = create_file(here.fs(), "source"), target = create_file(here.fs(), "target");
  need(write_at(here.fs(), source.handle, 0, std::string(copied_bytes, 's')));
  need(write_at(here.fs(), target.handle, 0, std::string(8192, 't')));
  need(here.fs().fsync(source.handle, false));
  need(here.fs().fsync(target.handle, false));
  const auto synced = open_again(here.fs(), target.ino, O_RDWR | O_DSYNC);
  need(here.fs().rename(root_ino, "target", root_ino, "renamed", RenameMode::replace));  // fsync stores the name, too
  here.kernel.take();
  here.mount.client->set_hook([](const StepInfo& info) {
    const bool fails = info.kind == StepKind::apply && info.step != "store size, times, map";
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  const auto copied = here.fs().copy_file_range({}, source.handle, 0, synced, 4096, copied_bytes);
  CHECK(code_of(copied) == ErrorCode::no_space);
  here.mount.client->set_hook(nullptr);
  CHECK(need(read_at(here.fs(), synced, 4096, 4)) == "ssss");
  CHECK(here.kernel.take_pages() == Told{"pages 4096+" + std::to_string(copied_bytes)});
}

TEST_CASE("a truncate that fails once its size is stored makes the kernel forget attributes and pages") {
  TestVolume volume(small_objects());
  KernelMount here(volume);
  const auto file = create_file(here.fs(), "f");
  need(write_at(here.fs(), file.handle, 0, std::string(2 * object_bytes, 'a')));
  need(here.fs().fsync(file.handle, false));
  here.kernel.take();
  here.mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::remove ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const bool at_open = GENERATE(false, true);
  if (at_open) {
    CHECK(code_of(here.fs().open({}, file.ino, O_RDWR | O_TRUNC)) == ErrorCode::io);
  } else {
    CHECK(code_of(here.fs().set_attributes({}, file.ino, size(0))) == ErrorCode::io);
  }
  CHECK(here.kernel.forgets_all());
  here.mount.client->set_hook(nullptr);
  CHECK(need(here.fs().get_attributes(file.ino)).attributes.size_bytes == 0);
}

TEST_CASE("a truncate that is told what it could not store of the rest makes the kernel forget, too") {
  TestVolume volume;
  auto options = buffered();
  options.idle_leases = 16;
  KernelMount here(volume, options);
  const auto file = create_file(here.fs(), "f");
  need(write_at(here.fs(), file.handle, 0, "old bytes"));
  need(here.fs().fsync(file.handle, false));
  const auto reader = open_again(here.fs(), file.ino, O_RDONLY);
  need(write_at(here.fs(), file.handle, 0, "new"));
  here.mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(here.fs().fsync(file.handle, false)) == ErrorCode::no_space);
  here.fs().release(file.handle);
  here.kernel.take();
  CHECK(code_of(here.fs().set_attributes({}, file.ino, size(5))) == ErrorCode::no_space);
  CHECK(need(read_at(here.fs(), reader, 0, 9)) == "new b");
  CHECK(here.kernel.forgets_all());
  here.mount.client->set_hook(nullptr);
}

TEST_CASE("before a direct write fails the kernel is told the size, by which it may cut the file") {
  TestVolume volume;
  KernelMount here(volume), there(volume);
  const auto file = create_file(here.fs(), "f", O_RDWR | O_DIRECT);
  need(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 0, std::string(4096, 'a')));
  const auto appender = open_again(there.fs(), file.ino);
  need(write_at(there.fs(), appender, 4096, "appended"));
  here.kernel.take();
  here.mount.client->set_hook(fails_writes(ErrorCode::no_space));
  // Pages that the other's writes have made old may be dropped in between.
  const auto size_told_by_failing = [&](int flags) {
    CHECK(code_of(write_with(O_RDWR | flags, here.fs(), file.handle, 8192, std::string(4096, 'b'))) ==
          ErrorCode::no_space);
    auto told = here.kernel.take_pages();
    CHECK(told.front() == "pages");
    CHECK(told.back() == "pages");
    std::erase(told, "pages");
    return told;
  };
  const std::string nothing(1, '\0');
  CHECK(size_told_by_failing(O_DIRECT) == Told{"size 4104 to '" + nothing + "'"});
  CHECK(size_told_by_failing(O_DIRECT | O_APPEND) == Told{"size 4104 to '" + nothing + "'"});
  const auto buffered = open_again(here.fs(), file.ino);  // the kernel may hold pages from now on
  here.kernel.take();
  CHECK(size_told_by_failing(O_DIRECT) == Told{"size 4104 to 'd'"});
  here.fs().release(buffered);
}

TEST_CASE("a direct write that fails before it is sent, because an earlier one cannot be cut, tells the size, too") {
  TestVolume volume;
  KernelMount here(volume), there(volume);
  const auto file = create_file(here.fs(), "f", O_RDWR | O_DIRECT);
  need(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 0, std::string(4096, 'a')));
  const auto appender = open_again(there.fs(), file.ino);
  need(write_at(there.fs(), appender, 4096, "appended"));
  here.mount.client->set_hook([](const StepInfo& info) {
    const bool fails = info.kind == StepKind::write || info.kind == StepKind::truncate;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  for (const bool is_sent : {true, false}) {
    INFO(is_sent);
    here.mount.client->reset_record();
    here.kernel.take();
    CHECK(code_of(write_with(O_RDWR | O_DIRECT, here.fs(), file.handle, 8192, std::string(4096, 'b'))) ==
          ErrorCode::no_space);
    CHECK((here.mount.client->counts().writes != 0) == is_sent);
    auto told = here.kernel.take_pages();
    std::erase(told, "pages");
    CHECK(told == Told{"size 4104 to '" + std::string(1, '\0') + "'"});
  }
  here.mount.client->set_hook(nullptr);
  here.fs().release(file.handle);
}

TEST_CASE(
    "what a direct write has added before a part of it failed is not told, what an append has, behind another's, is") {
  TestVolume volume;
  KernelMount here(volume), there(volume);
  const auto file = create_file(there.fs(), "f");
  need(write_at(there.fs(), file.handle, 0, std::string(100, 'a')));
  const auto direct = need(here.fs().open({}, file.ino, O_RDWR | O_DIRECT)).handle;
  const auto fail = [&] {
    here.mount.client->set_hook(fails_writes(ErrorCode::no_space));
    CHECK(code_of(write_with(O_RDWR | O_DIRECT, here.fs(), direct, 1000, "second part")) == ErrorCode::no_space);
    here.mount.client->set_hook(nullptr);
    auto told = here.kernel.take_pages();
    std::erase(told, "pages");
    return told;
  };
  const auto size_of = [](int bytes) { return "size " + std::to_string(bytes) + " to '" + std::string(1, '\0') + "'"; };
  need(write_with(O_RDWR | O_DIRECT, here.fs(), direct, 100, "first part"));
  CHECK(fail() == Told{size_of(100)});
  need(write_with(O_RDWR | O_DIRECT | O_APPEND, here.fs(), direct, 0, "moved"));
  CHECK(fail() == Told{size_of(115)});
  need(here.fs().set_attributes({}, file.ino, size(50)));
  CHECK(fail() == Told{size_of(50)});
  here.fs().release(direct);
}

TEST_CASE("what others have appended is told before a direct write fails, also after a truncate that was refused") {
  TestVolume volume;
  KernelMount here(volume), there(volume);
  const auto file = create_file(there.fs(), "f");
  need(write_at(there.fs(), file.handle, 0, std::string(100, 'a')));
  const auto direct = need(here.fs().open({}, file.ino, O_RDWR | O_DIRECT)).handle;
  need(write_with(O_RDWR | O_DIRECT, here.fs(), direct, 0, "takes the lease"));
  here.mount.client->set_hook(always_on("store size, times, map", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(code_of(here.fs().set_attributes({}, file.ino, size(50))) == ErrorCode::no_space);
  here.mount.client->set_hook(fails_writes(ErrorCode::no_space));
  here.kernel.take();
  CHECK(code_of(write_with(O_RDWR | O_DIRECT, here.fs(), direct, 1000, "more")) == ErrorCode::no_space);
  here.mount.client->set_hook(nullptr);
  auto told = here.kernel.take_pages();
  std::erase(told, "pages");
  CHECK(told == Told{"size 100 to '" + std::string(1, '\0') + "'"});
  here.fs().release(direct);
}
