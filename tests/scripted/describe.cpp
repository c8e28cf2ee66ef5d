// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scripted/describe.h"

#include "base/text.h"

namespace lccfs::scripted {
namespace {

struct Printer {
  std::string operator()(const guard::ObjectExists&) const { return "exists"; }
  std::string operator()(const guard::VersionIs& g) const { return "version is " + std::to_string(g.version); }
  std::string operator()(const guard::XattrEquals& g) const { return g.name + " is " + printable(g.value); }
  std::string operator()(const guard::XattrAbsent& g) const { return g.name + " is absent"; }
  std::string operator()(const guard::KeyAbsent& g) const { return printable(g.key) + " is absent"; }
  std::string operator()(const guard::KeyPresent& g) const { return printable(g.key) + " is present"; }
  std::string operator()(const guard::KeyEquals& g) const { return printable(g.key) + " is " + printable(g.value); }
  std::string operator()(const guard::KeyLess& g) const {
    return printable(g.key) + " is less than " + printable(g.value);
  }
  std::string operator()(const mutation::CreateExclusive&) const { return "create"; }
  std::string operator()(const mutation::Remove&) const { return "remove the object"; }
  std::string operator()(const mutation::SetPayload& m) const { return "payload = " + printable(m.payload); }
  std::string operator()(const mutation::SetXattr& m) const { return m.name + " = " + printable(m.value); }
  std::string operator()(const mutation::RemoveXattr& m) const { return "remove " + m.name; }
  std::string operator()(const mutation::SetKey& m) const { return printable(m.key) + " = " + printable(m.value); }
  std::string operator()(const mutation::RemoveKey& m) const { return "remove " + printable(m.key); }
};

}  // namespace

std::string describe(const MetaTxn& txn) {
  std::string text = std::string(txn.step) + " on " + txn.object + "\n";
  for (const Guard& guard : txn.guards) text += "  if " + std::visit(Printer{}, guard) + "\n";
  for (const Mutation& mutation : txn.mutations) text += "  " + std::visit(Printer{}, mutation) + "\n";
  return text;
}

}  // namespace lccfs::scripted
