// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/watch_table.h"

namespace lccfs::local {
namespace {

std::string watch_key(const std::string& object, const std::string& id, std::uint64_t number) {
  return object + '\0' + id + '.' + std::to_string(number);
}

std::string_view id_of_watch(std::string_view key) {
  const auto start = key.find('\0') + 1;
  return key.substr(start, key.find('.', start) - start);
}

}  // namespace

Result<> add_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                   std::uint64_t number) {
  return transaction.put(Table::watches, watch_key(object, id, number), "1");
}

Result<> remove_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                      std::uint64_t number) {
  return transaction.remove(Table::watches, watch_key(object, id, number));
}

Result<> remove_watches_but(WriteTransaction& transaction, const std::set<std::string>& ids) {
  std::vector<std::string> others;
  LCCFS_CHECK(transaction.walk(Table::watches, {}, {}, [&](auto key, auto) {  // a small table: two for each client
    if (!ids.contains(std::string(id_of_watch(key)))) others.emplace_back(key);
    return true;
  }));
  for (const std::string& watch : others) LCCFS_CHECK(transaction.remove(Table::watches, watch));
  return {};
}

Result<std::vector<std::string>> watchers(const Transaction& transaction, const std::string& object) {
  std::vector<std::string> ids;
  LCCFS_CHECK(transaction.walk(Table::watches, object + '\0', {}, [&](auto key, auto) {
    const auto id = id_of_watch(key);
    if (ids.empty() || ids.back() != id) ids.emplace_back(id);
    return true;
  }));
  return ids;
}

}  // namespace lccfs::local
