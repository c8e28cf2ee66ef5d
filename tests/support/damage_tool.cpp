// SPDX-License-Identifier: LGPL-2.1-or-later
// damage_tool ADDRESS... --object NAME [--remove | --remove-key KEY | --noise PART | --flip PART | --features BITS]:
// damages an object of a volume that nobody uses now. PART is an xattr, or a key that is there; `flip` changes one byte of its value,
// `noise` all of it; `features` are the incompat bits of Super. Data objects can only be removed.
#include <future>
#include <iostream>
#include <optional>

#include "format/object_names.h"
#include "format/records.h"
#include "lccfs/volume_address.h"
#include "options/command_line.h"

namespace {

using namespace lccfs;

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
  LCCFS_TRY(auto found, store.query({.object = object, .xattrs = true, .keys = {part}}));
  const bool is_key = found.keys.contains(part);
  Bytes value = is_key ? found.keys[part] : found.xattrs[part];
  if (value.empty()) return failure(ErrorCode::not_found, object + ": no xattr or key " + part);
  if (one_byte) value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 0x40);
  if (!one_byte) value = "noise";
  if (is_key) return change(store, object, mutation::SetKey{part, value});
  return change(store, object, mutation::SetXattr{part, value});
}

Result<> put_features(ObjectStore& store, std::uint64_t incompat) {
  LCCFS_TRY(auto found, store.query({.object = format::super_object, .xattrs = true}));
  LCCFS_TRY(auto super, format::decode<format::SuperRecord>(found.xattrs[format::xattr::super]));
  super.incompat = incompat;
  return change(store, format::super_object, mutation::SetXattr{format::xattr::super, encode(super)});
}

Result<> damage(const std::vector<std::string>& words) {
  VolumeAddress address;
  options::CommandLine line(
      {.name = "damage_tool", .usage = "VOLUME --object NAME [OPTION]", .summary = "Damages an object.", .footer = ""});
  options::add_address(line, address);
  line.group("Damage");
  std::string object, key, noise, flip;
  bool remove = false;
  std::optional<std::uint64_t> features;
  line.option("--object", "NAME", options::text(object), "whom");
  line.flag("--remove", remove, "the object");
  line.option("--remove-key", "KEY", options::text(key), "the key");
  line.option("--noise", "PART", options::text(noise), "the value of this xattr or key");
  line.option("--flip", "PART", options::text(flip), "one byte of this xattr's or key's value");
  line.option("--features", "BITS", options::number(features, 0, UINT64_MAX), "the incompat bits of Super");
  LCCFS_CHECK(line.parse(words));
  LCCFS_TRY(const std::shared_ptr<ObjectStore> store, open_store(address, {}));
  if (remove && object.starts_with("Data.")) return remove_data(*store, object);
  if (remove) return change(*store, object, mutation::Remove{});
  if (features) return put_features(*store, *features);
  if (!key.empty()) return change(*store, object, mutation::RemoveKey{key});
  return noise.empty() ? spoil(*store, object, flip, true) : spoil(*store, object, noise, false);
}

}  // namespace

int main(int argc, char** argv) {
  const auto damaged = damage({argv + 1, argv + argc});
  if (damaged) return 0;
  std::cerr << "damage_tool: " << damaged.error().context << "\n";
  return 1;
}
