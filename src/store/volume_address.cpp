// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lccfs/volume_address.h"

namespace lccfs {

std::string VolumeAddress::describe() const {
  if (!local_directory.empty()) return "--local " + local_directory;
  std::string text = conf_file.empty() ? "" : "-c " + conf_file + " ";
  text += "-p " + pool;
  if (!pool_namespace.empty()) text += " -n " + pool_namespace;
  if (client_id != VolumeAddress{}.client_id) text += " --id " + client_id;
  return text;
}

Error VolumeAddress::no_volume() const {
  return {ErrorCode::not_found, "there is no volume at " + describe() + "; make one with: lccfs mkfs",
          Outcome::definite};
}

}  // namespace lccfs
