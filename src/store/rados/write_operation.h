// SPDX-License-Identifier: LGPL-2.1-or-later
// A metadata transaction as one RADOS write operation.
#pragma once

#include <rados/librados.hpp>

#include "lccfs/object_store.h"

namespace lccfs::rados {

/// Guards first, in the order given, then the mutations. Neighbours of one kind become one operation of RADOS.
void build(const MetaTxn& txn, librados::ObjectWriteOperation& operation);

librados::bufferlist to_bufferlist(const Bytes& bytes);

}  // namespace lccfs::rados
