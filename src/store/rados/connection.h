// SPDX-License-Identifier: LGPL-2.1-or-later
// A connected librados client and the pools of one volume.
#pragma once

#include <memory>
#include <rados/librados.hpp>
#include <string>

#include "lccfs/result.h"
#include "lccfs/volume_address.h"

namespace lccfs::rados {

/// Immutable once opened, but for use_data_pool. Any thread may use what the accessors answer.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const VolumeAddress& address, const StoreOptions& options);
  Connection() = default;
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  librados::Rados& cluster() { return cluster_; }
  librados::IoCtx& metadata() { return metadata_; }
  librados::IoCtx& data() { return data_; }
  Result<> use_data_pool(const std::string& name);
  bool has_namespace() const { return !namespace_.empty(); }
  bool has_data_pool() { return data_.get_id() != metadata_.get_id(); }

 private:
  Result<> configure(const VolumeAddress& address, const StoreOptions& options);
  bool names_monitors();
  Result<> connect(const VolumeAddress& address, const StoreOptions& options);
  Result<> open_pool(const std::string& name_or_number, librados::IoCtx& pool);

  librados::Rados cluster_;
  librados::IoCtx metadata_;
  librados::IoCtx data_;
  std::string namespace_;
};

}  // namespace lccfs::rados
