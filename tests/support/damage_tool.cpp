// SPDX-License-Identifier: LGPL-2.1-or-later
// damage_tool ADDRESS... --object NAME [--remove | --remove-key KEY | --noise PART | --flip PART]: damages an object of
// a volume that nobody uses now. PART is an xattr, or a key that is there; `flip` changes one byte of its value,
// `noise` all of it. Data objects can only be removed.
#include <future>
#include <iostream>

#include "format/object_names.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

namespace po = boost::program_options;
using namespace lccfs;

std::string word(const options::Values& values, const char* name) {
  return values.contains(name) ? values[name].as<std::string>() : std::string();
}

Result<> remove_data(ObjectStore& store, const std::string& object) {
  std::promise<Result<>> removed;
  store.remove_data(object, [&removed](Result<> result) { removed.set_value(std::move(result)); });
  return removed.get_future().get();
}

Result<> change(ObjectStore& store, const std::string& object, Mutation mutation) {
  LCCFS_CHECK(store.apply({object, "damage", {guard::ObjectExists{}}, {std::move(mutation)}}));
  return {};
}

Result<> spoil(ObjectStore& store, const std::string& object, const std::string& part, bool one_byte) {
  LCCFS_TRY(auto found, store.query({.object = object, .xattrs = true, .ranges = {}, .keys = {part}}));
  const bool is_key = found.keys.contains(part);
  Bytes value = is_key ? found.keys[part] : found.xattrs[part];
  if (value.empty()) return failure(ErrorCode::not_found, object + ": no xattr or key " + part);
  if (one_byte) value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 0x40);
  if (!one_byte) value = "noise";
  if (is_key) return change(store, object, mutation::SetKey{part, value});
  return change(store, object, mutation::SetXattr{part, value});
}

Result<> damage(const std::vector<std::string>& words) {
  options::Description description = options::address_options();
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()                                //
      ("object", text(), "whom")                           //
      ("remove", "the object")                             //
      ("remove-key", text(), "the key")                    //
      ("noise", text(), "the value of this xattr or key")  //
      ("flip", text(), "one byte of this xattr's or key's value");
  LCCFS_TRY(const auto values, options::parse(words, description));
  LCCFS_TRY(const VolumeAddress address, options::address_of(values));
  LCCFS_TRY(const std::shared_ptr<ObjectStore> store, open_store(address, {}));
  const auto object = word(values, "object");
  if (values.contains("remove") && object.starts_with("Data.")) return remove_data(*store, object);
  if (values.contains("remove")) return change(*store, object, mutation::Remove{});
  if (values.contains("remove-key")) return change(*store, object, mutation::RemoveKey{word(values, "remove-key")});
  if (values.contains("noise")) return spoil(*store, object, word(values, "noise"), false);
  return spoil(*store, object, word(values, "flip"), true);
}

}  // namespace

int main(int argc, char** argv) {
  const auto damaged = damage({argv + 1, argv + argc});
  if (damaged) return 0;
  std::cerr << "damage_tool: " << damaged.error().context << "\n";
  return 1;
}
