// SPDX-License-Identifier: LGPL-2.1-or-later
// objects_tool ADDRESS... [--keys OBJECT]: the names of all objects of a volume, or of all keys of one of them, one a
// line.
#include <iostream>

#include "lccfs/volume_address.h"
#include "objects/super.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;

Result<> find_data_pool(ObjectStore& store) {
  LCCFS_TRY(const auto super, objects::read_super(objects::reader_of(store)));
  return super.record.data_pool.empty() ? Result<>{} : store.use_data_pool(super.record.data_pool);
}

Result<> print_objects(ObjectStore& store) {
  LCCFS_CHECK(find_data_pool(store));
  std::string cursor;
  do {
    LCCFS_TRY(const ListPage page, store.list(cursor));
    for (const std::string& name : page.names) std::cout << name << "\n";
    cursor = page.next_cursor;
  } while (!cursor.empty());
  return {};
}

Result<> print_keys(ObjectStore& store, const std::string& object) {
  KeyRange range{"", ""};
  for (;;) {
    LCCFS_TRY(const auto found, store.query({.object = object, .ranges = {range}}));
    for (const auto& [key, value] : found.ranges.front().entries) std::cout << key << "\n";
    if (!found.ranges.front().more) return {};
    range.after = found.ranges.front().entries.back().first;
  }
}

Result<> print(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line(
      {.name = "objects_tool", .usage = "VOLUME [--keys OBJECT]", .summary = "Lists objects, or keys.", .footer = ""});
  options::add_address(line, address);
  line.group("Keys");
  std::string object;
  line.option("--keys", "OBJECT", options::text(object), "the object whose keys are wanted");
  LCCFS_CHECK(line.parse(words));
  LCCFS_TRY(const std::shared_ptr<ObjectStore> store, open_store(address, {}));
  return object.empty() ? print_objects(*store) : print_keys(*store, object);
}

}  // namespace

int main(int argc, char** argv) {
  const auto printed = print({argv + 1, argv + argc});
  if (printed) return 0;
  std::cerr << "objects_tool: " << printed.error().context << "\n";
  return 1;
}
