// SPDX-License-Identifier: LGPL-2.1-or-later
// local_store_writer DIRECTORY: a client that writes until it is killed. It watches writers_session, prints its
// identity, and then a line for each write that was acknowledged: kind (m or d), writer, number.
#include <unistd.h>

#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/local/local_store.h"
#include "unit/local_store_child.h"

namespace {

using namespace lccfs;

class Silent : public WatchHandler {
 public:
  void on_notify(Bytes, std::move_only_function<void(Bytes)> answer) override { answer("here"); }
  void on_lost(Error) override {}
};

void print(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);  // one call: lines of threads do not mix
}

Result<> write_data(ObjectStore& store, const std::string& object, const std::string& text) {
  const auto owner = std::make_shared<const std::string>(text);
  std::promise<Result<>> promise;
  store.write_data(object, 0, {std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()},
                   [&](Result<> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

void write_for_ever(ObjectStore& store, unsigned writer) {
  const std::string name = std::to_string(writer);
  for (unsigned number = 0;; ++number) {
    const std::string text = test::number_text(number);
    MetaTxn txn{test::writers_metadata(writer),
                "write",
                {},
                {mutation::SetPayload{text}, mutation::SetXattr{"x", text}, mutation::SetKey{"k", text}}};
    if (!store.apply(std::move(txn))) _exit(1);
    print("m " + name + " " + std::to_string(number) + "\n");
    if (!write_data(store, test::writers_data(writer), text)) _exit(1);
    print("d " + name + " " + std::to_string(number) + "\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  StoreOptions options;
  options.create = true;
  const auto store = open_local_store(argv[1], options);
  if (!store) {
    std::cerr << store.error().context << "\n";
    return 1;
  }
  const auto made = (*store)->apply({test::writers_session, "make", {}, {mutation::CreateExclusive{}}});
  if (!made && made.error().code != ErrorCode::exists) return 1;
  const auto watch = (*store)->watch(test::writers_session, std::make_shared<Silent>());
  if (!watch) return 1;
  print((*store)->identity() + "\n");
  std::vector<std::jthread> threads;
  for (unsigned writer = 0; writer < test::writers; ++writer)
    threads.emplace_back([&, writer] { write_for_ever(**store, writer); });
}
