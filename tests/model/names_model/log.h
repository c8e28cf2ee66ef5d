// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A client's log: changes that were answered, and that the store does not have yet; and the batches that take them
// there.
#pragma once

#include <vector>

#include "state.h"

namespace names_model {

using Batch = std::vector<int>;  // indices into the log

bool has_records(const Client& client, int directory);
bool removes(const Record& record, int ino);

/// Its removal is in the log.
bool is_doomed(const Client& client, int ino);

/// Insertions answered before this index, in other directories: a removal waits for them.
bool insertions_elsewhere(const Client& client, int directory, int before);

void add_record(State& state, int client, const Record& record);
void drop(Client& client, const Batch& batch);

/// All batches of the directory that may be sent now.
std::vector<Batch> batches(const State& state, int client, int directory);

/// false: refused.
bool apply(State& state, int client, int directory, const Batch& batch);

/// In one byte, never 0.
u8 encode(const Batch& batch);
Batch decode(const Client& client, int directory, u8 code);

}  // namespace names_model
