// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuzz/round_trip.h"

using namespace lccfs::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return lccfs::fuzz::choose_and_round_trip<NumberRecord, TimeRecord, AttrRecord, StateRecord, BackPointerRecord,
                                            EntryRecord, MapBlock, DecisionRecord, LockStateRecord,
                                            DirectoryLeaseRecord, LocksRecord, TakenRecord>(data, size);
}
