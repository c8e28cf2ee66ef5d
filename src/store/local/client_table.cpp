// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/client_table.h"

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

Result<> add_client(WriteTransaction& transaction, const std::string& id, const std::string& identity) {
  return transaction.put(Table::clients, id, identity);
}

Result<> remove_client(WriteTransaction& transaction, const std::string& id) {
  LCCFS_CHECK(transaction.remove(Table::clients, id));
  constexpr Table table = Table::watches;
  std::vector<std::string> watches;
  LCCFS_CHECK(transaction.walk(table, {}, {}, [&](auto key, auto) {  // a small table: two for each client
    if (id_of_watch(key) == id) watches.emplace_back(key);
    return true;
  }));
  for (const std::string& watch : watches) LCCFS_CHECK(transaction.remove(table, watch));
  return {};
}

Result<bool> is_client(const Transaction& transaction, const std::string& id) {
  LCCFS_TRY(const auto stored, transaction.get(Table::clients, id));
  return stored.has_value();
}

Result<std::vector<std::string>> client_ids(const Transaction& transaction) {
  std::vector<std::string> ids;
  LCCFS_CHECK(transaction.walk(Table::clients, {}, {}, [&](auto key, auto) {
    ids.emplace_back(key);
    return true;
  }));
  return ids;
}

Result<> add_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                   std::uint64_t number) {
  return transaction.put(Table::watches, watch_key(object, id, number), "1");
}

Result<> remove_watch(WriteTransaction& transaction, const std::string& object, const std::string& id,
                      std::uint64_t number) {
  return transaction.remove(Table::watches, watch_key(object, id, number));
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
