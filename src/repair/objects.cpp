// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/objects.h"

#include <algorithm>
#include <array>
#include <future>
#include <memory>

#include "base/completions.h"

namespace lccfs::repair {

namespace {

bool is_time_out(const Error& error) { return error.code == ErrorCode::timed_out; }

}  // namespace

const Bytes* Object::value_of(const txn::Part& part) const {
  const auto& values = part.is_key ? keys : xattrs;
  const auto found = values.find(part.name);
  return found == values.end() ? nullptr : &found->second;
}

std::optional<txn::Entry> Object::entry(const std::string& key) const {
  const auto found = keys.find(key);
  if (found == keys.end()) return std::nullopt;
  const auto record = format::decode<format::EntryRecord>(found->second);
  if (!record) return std::nullopt;
  return txn::Entry{found->second, *record};
}

std::set<Ino> Object::parents() const {
  std::set<Ino> all;
  if (const auto first = find<format::BackPointerRecord>(format::xattr::parent)) all.insert(first->parent);
  for (const auto& [key, value] : keys) {
    if (const auto further = format::parse_back_pointer_key(key)) all.insert(further->parent);
  }
  return all;
}

format::EntryRecord entry_of(const Bytes& reverse_value, Ino ino, const format::AttrRecord& attr) {
  auto entry = format::marked_entry(reverse_value, ino).value_or(format::EntryRecord{ino, {}, attr.birth_token});
  entry.type = attr.type;
  return entry;
}

Result<std::optional<Object>> Objects::read(const MetaRead& read, std::size_t whole_ranges) {
  for (;;) {
    auto found = objects::find_object(objects::reader_of(store_), read, whole_ranges);
    if (!found && is_time_out(found.error())) continue;
    if (!found) return std::unexpected(std::move(found).error());
    if (!*found) return std::nullopt;
    for (auto& range : (*found)->ranges) {
      for (auto& key_and_value : range.entries) (*found)->keys.insert(std::move(key_and_value));
    }
    return Object{std::move(**found)};
  }
}

Result<std::optional<Object>> Objects::read(const std::string& object, const std::string& prefix) {
  return read({.object = object, .payload = true, .xattrs = true, .ranges = {{.prefix = prefix, .after = ""}}}, 1);
}

Result<std::optional<Object>> Objects::read_keys(const std::string& object, const std::vector<std::string>& keys) {
  return read({.object = object, .payload = true, .xattrs = true, .keys = keys}, 0);
}

Result<> Objects::for_each_key(const std::string& object, const std::string& prefix, const OnKey& work) {
  KeyRange range{prefix, "", objects::keys_at_once};
  for (bool more = true; more;) {
    LCCFS_TRY(const auto page, read({.object = object, .ranges = {range}}, 0));
    if (!page || page->keys.empty()) return {};
    for (const auto& [key, value] : page->keys) LCCFS_CHECK(work(key, value));
    more = page->ranges.front().more;
    range.after = page->keys.rbegin()->first;
  }
  return {};
}

Result<bool> Objects::has_key(const std::string& object, const std::string& prefix) {
  LCCFS_TRY(const auto found, read({.object = object, .ranges = {{prefix, "", 1}}}, 0));
  return found && !found->keys.empty();
}

Result<std::vector<Holder>> Objects::names_in(Ino directory, Ino ino) {
  LCCFS_TRY(const auto reverse, read_inode(directory, format::reverse_key(ino, "")));
  std::vector<Holder> names;
  if (!reverse || reverse->keys.empty()) return names;
  std::vector<std::string> keys;
  for (const auto& [key, value] : reverse->keys) {
    if (const auto parsed = format::parse_reverse_key(key)) keys.push_back(format::entry_key(uuid_, parsed->name));
  }
  LCCFS_TRY(const auto object, read_keys(format::inode_object(directory), keys));
  for (const auto& key : keys) {
    const auto entry = object ? object->entry(key) : std::nullopt;
    if (entry && entry->record.ino == ino) {
      names.push_back({directory, format::parse_entry_key(key)->name, entry->record});
    }
  }
  return names;
}

Result<std::vector<Holder>> Objects::names_of(const Object& inode, Ino ino) {
  std::vector<Holder> names;
  for (const auto parent : inode.parents()) {
    LCCFS_TRY(const auto some, names_in(parent, ino));
    names.insert(names.end(), some.begin(), some.end());
  }
  return names;
}

Result<> Objects::for_each_name(const std::function<void(const std::string&)>& work) {
  return objects::for_each_object(store_,
                                  [&work](const std::string& name) -> Result<> { return work(name), Result<>{}; });
}

Result<bool> Objects::change(const MetaTxn& txn) {
  const auto name = format::parse_object_name(txn.object);
  const auto* inode = name ? std::get_if<format::InodeName>(&*name) : nullptr;
  if (make_way_ && inode != nullptr) LCCFS_CHECK(make_way_(inode->ino));
  for (;;) {
    const auto applied = store_.apply(txn);
    if (applied) {
      ++changes_;
      return true;
    }
    switch (applied.error().code) {
      case ErrorCode::timed_out:
        continue;
      case ErrorCode::guard_failed:
      case ErrorCode::exists:
      case ErrorCode::not_found:
        ++changes_;  // another's, or perhaps our own, if the store has run the step twice
        return false;
      default:
        return std::unexpected(applied.error());
    }
  }
}

// ---- data objects

namespace {

/// A step on a data object may be done twice.
template <class T>
Result<T> until_done(const std::function<void(std::move_only_function<void(Result<T>)>)>& step) {
  for (;;) {
    auto [answer, done] = promised<Result<T>>();
    step(std::move(done));
    auto result = answer.get();
    if (result || !is_time_out(result.error())) return result;
  }
}

}  // namespace

Result<Bytes> Objects::read_data(const std::string& object, std::uint64_t offset, std::uint64_t limit_bytes) {
  const auto target = std::make_shared<Bytes>(limit_bytes, '\0');
  LCCFS_TRY(const auto size_bytes, until_done<std::size_t>([&](auto done) {
              store_.read_data(object, offset, *target,
                               [target, done = std::move(done)](auto read) mutable { done(std::move(read)); });
            }));
  target->resize(size_bytes);
  return std::move(*target);
}

Result<std::set<ObjectIndex>> Objects::with_bytes(Ino ino, const std::vector<ObjectIndex>& indexes) {
  struct Probe {
    std::array<char, 1> byte;
    std::promise<Result<std::size_t>> answer;
  };
  std::vector<std::shared_ptr<Probe>> probes;
  for (const auto index : indexes) {
    const auto probe = probes.emplace_back(std::make_shared<Probe>());
    store_.read_data(format::data_object(ino, index), 0, probe->byte,
                     [probe](Result<std::size_t> read) { probe->answer.set_value(std::move(read)); });
  }
  std::set<ObjectIndex> there;
  std::optional<Error> error;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const auto read = probes[i]->answer.get_future().get();
    if (!read) error = read.error();
    if (read && *read > 0) there.insert(indexes[i]);
  }
  if (!error) return there;
  return is_time_out(*error) ? with_bytes(ino, indexes) : std::unexpected(*error);
}

Result<> Objects::write_data(const std::string& object, std::uint64_t offset, const Bytes& bytes) {
  ++changes_;
  const auto owner = std::make_shared<const Bytes>(bytes);
  const SharedBytes shared{std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()};
  return until_done<void>([&](auto done) { store_.write_data(object, offset, shared, std::move(done)); });
}

Result<> Objects::cut_data(const std::string& object, std::uint64_t size_bytes) {
  ++changes_;
  return until_done<void>([&](auto done) { store_.truncate_data(object, size_bytes, std::move(done)); });
}

Result<> Objects::remove_data(const std::string& object) {
  ++changes_;
  return until_done<void>([&](auto done) { store_.remove_data(object, std::move(done)); });
}

}  // namespace lccfs::repair
