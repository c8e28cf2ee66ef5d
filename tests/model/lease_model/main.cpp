// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An explicit-state model of the write lease (docs/DATA.md). tests/model/run builds and calls it; ../native_model.h has its words.
#include "../native_model.h"
#include "cases.h"
#include "history.h"
#include "rules.h"
#include "search.h"

namespace {

struct Model {
  using Case = lease_model::Case;
  static constexpr const char* name = "lease_model";
  static constexpr auto& rules = lease_model::rule_texts;
  static constexpr int sweep_count = lease_model::sweep_count;

  static auto named_cases() { return lease_model::named_cases(); }
  static auto sweep(int number) { return lease_model::sweep(number); }
  static auto explore(const Case& one, std::size_t limit, bool with_trace) {
    return lease_model::explore(one, limit, with_trace);
  }
  static std::string title(const Case& one) { return one.name; }
  static void after_a_case() { lease_model::forget_if_many(); }
};

}  // namespace

int main(int argc, char** argv) { return native_model::Program<Model>::run({argv + 1, argv + argc}); }
