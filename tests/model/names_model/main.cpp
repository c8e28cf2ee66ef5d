// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An explicit-state model of leased directories. tests/model/run builds and calls it; ../native_model.h has its words.
#include "../native_model.h"
#include "cases.h"
#include "rules.h"
#include "search.h"

namespace {

struct Model {
  using Case = names_model::Case;
  static constexpr const char* name = "names_model";
  static constexpr auto& rules = names_model::rule_texts;
  static constexpr int sweep_count = names_model::sweep_count;

  static auto named_cases() { return names_model::named_cases(); }
  static auto sweep(int number) { return names_model::sweep(number); }
  static auto explore(const Case& one, std::size_t limit, bool with_trace) {
    return names_model::explore(one, limit, with_trace);
  }
  static std::string title(const Case& one) { return one.name + ": " + describe(one); }
  static void after_a_case() {}
};

}  // namespace

int main(int argc, char** argv) { return native_model::Program<Model>::run({argv + 1, argv + argc}); }
