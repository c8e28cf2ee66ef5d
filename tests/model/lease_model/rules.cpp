// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rules.h"

namespace lease_model {

const RuleText rule_texts[rule_count] = {
#define LEASE_MODEL_TEXT(name, number, words) {#name, number, words},
    LEASE_MODEL_RULES(LEASE_MODEL_TEXT)
#undef LEASE_MODEL_TEXT
};

namespace {
int rule_off = -1;
}

bool on(Rule rule) { return rule != rule_off; }

void switch_off(int rule) { rule_off = rule; }

}  // namespace lease_model
