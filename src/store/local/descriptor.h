// SPDX-License-Identifier: LGPL-2.1-or-later
// An open file descriptor, closed by its owner's end; and what the system's errors mean.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lccfs/result.h"

namespace lccfs::local {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// The error of a system call that has just failed: errno's meaning, and its text after `what`.
[[nodiscard]] Error system_error(const std::string& what, Outcome outcome = Outcome::definite);
[[nodiscard]] Error system_error(int number, const std::string& what, Outcome outcome = Outcome::definite);

/// What is in the directory `name` of `directory`, but "." and "..".
Result<std::vector<std::string>> names_in(int directory, const std::string& name, const std::string& what);

/// Makes what happened to the names in this directory durable.
Result<> sync_directory(int directory, const std::string& what);

}  // namespace lccfs::local
