// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

namespace lccfs::options {

namespace po = boost::program_options;

namespace {

constexpr const char* default_conf_file = "/etc/ceph/ceph.conf";

std::string text_of(const Values& values, const char* name) {
  return values.contains(name) ? values[name].as<std::string>() : std::string();
}

Result<VolumeAddress> local_address(const Values& values) {
  for (const char* other : {"conf", "pool", "namespace", "id"}) {
    if (values.contains(other))
      return failure(ErrorCode::invalid, std::string("--local and --") + other + " exclude each other");
  }
  VolumeAddress address;
  address.local_directory = absolute_path(text_of(values, "local"));
  return address;
}

Result<VolumeAddress> pool_address(const Values& values) {
  VolumeAddress address;
  address.conf_file = absolute_path(values.contains("conf") ? text_of(values, "conf") : default_conf_file);
  address.pool = text_of(values, "pool");
  address.pool_namespace = text_of(values, "namespace");
  if (values.contains("id")) address.client_id = text_of(values, "id");
  if (address.client_id.starts_with("client.")) address.client_id.erase(0, std::string_view("client.").size());
  if (address.client_id.empty()) return failure(ErrorCode::invalid, "--id is empty");
  return address;
}

}  // namespace

Description address_options() {
  Description description("Volume: a Ceph pool, or a local directory");
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()                                                                             //
      ("conf,c", text()->value_name("FILE"), "Ceph configuration file (default: /etc/ceph/ceph.conf)")  //
      ("pool,p", text()->value_name("POOL"), "pool, by name or number")                                 //
      ("namespace,n", text()->value_name("NAMESPACE"), "namespace in the pool (default: none)")         //
      ("id", text()->value_name("CLIENT"), "Ceph client name, without \"client.\" (default: admin)")    //
      ("local", text()->value_name("DIRECTORY"), "keep the volume in this directory instead, without Ceph");
  return description;
}

Result<VolumeAddress> address_of(const Values& values) {
  if (!text_of(values, "local").empty()) return local_address(values);
  if (!text_of(values, "pool").empty()) return pool_address(values);
  return failure(ErrorCode::invalid, "which volume? Give -p POOL (with -c CEPH.CONF), or --local DIRECTORY");
}

}  // namespace lccfs::options
