// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rules.h"

namespace names_model {

const RuleText rule_texts[rule_count] = {
#define NAMES_MODEL_TEXT(name, needed_by, words) {#name, needed_by, words},
    NAMES_MODEL_RULES(NAMES_MODEL_TEXT)
#undef NAMES_MODEL_TEXT
};

namespace {
int rule_off = -1;
}

bool on(Rule rule) { return rule != rule_off; }

void switch_off(int rule) { rule_off = rule; }

}  // namespace names_model
