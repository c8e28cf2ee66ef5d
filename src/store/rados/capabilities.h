// SPDX-License-Identifier: LGPL-2.1-or-later
// What a client's key must permit. The one place of this text: README.md, docs/man and the tests are held to it
// (tests/mount/test_capabilities.py), and the programs print it.
#pragma once

namespace lccfs::rados {

/// The monitors' part: to bar one client, by its address with its nonce. Not a host (nonce 0, or a number that is 0 in
/// 32 bits; or something else before the nonce at which the monitors stop reading), not a range (a mask has at most
/// three digits), and not to take a bar away. Without a backslash: each place that has this text would treat it
/// otherwise.
inline constexpr const char* mon_capability =
    R"cap(allow r, allow command "osd blocklist" with blocklistop=add addr regex "^(any:|v[12]:)?([0-9.]+|[[][0-9a-f:.]+[]]):[0-9]+/([1-9][0-9]{3,8}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])$")cap";

inline constexpr const char* osd_capability = R"cap(allow rw pool=POOL namespace=NAMESPACE)cap";

}  // namespace lccfs::rados
