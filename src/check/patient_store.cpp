// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/patient_store.h"

#include "base/log.h"

namespace lccfs::check {

namespace {

/// Of the answer to one attempt. Told once for each read.
template <class T>
bool is_to_be_sent_again(const Result<T>& answer, unsigned attempt, const std::string& what) {
  if (answer || answer.error().code != ErrorCode::timed_out || attempt == PatientStore::most_attempts) return false;
  if (attempt == 1) log::warning(what + ": no answer yet (" + answer.error().context + "): asking again");
  return true;
}

template <class Call>
auto patiently(const std::string& what, const Call& call) {
  auto answer = call();
  for (unsigned attempt = 1; is_to_be_sent_again(answer, attempt, what); ++attempt) answer = call();
  return answer;
}

}  // namespace

void PatientStore::query(MetaRead read, QueryDone done, unsigned attempt) {
  auto take = [this, read, done = std::move(done), attempt](Result<MetaSnapshot> answer) mutable {
    if (!is_to_be_sent_again(answer, attempt, read.object)) return done(std::move(answer));
    query(std::move(read), std::move(done), attempt + 1);
  };
  next().query_async(std::move(read), std::move(take));
}

void PatientStore::read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done,
                             unsigned attempt) {
  auto take = [this, object, offset, target, done = std::move(done), attempt](Result<std::size_t> answer) mutable {
    if (!is_to_be_sent_again(answer, attempt, object)) return done(std::move(answer));
    read_data(std::move(object), offset, target, std::move(done), attempt + 1);
  };
  next().read_data(std::move(object), offset, target, std::move(take));
}

Result<ListPage> PatientStore::list(std::string cursor) {
  return patiently("the list of objects", [&] { return next().list(cursor); });
}

Result<std::vector<std::string>> PatientStore::list_starts(unsigned parts) {
  return patiently("the list of objects", [&] { return next().list_starts(parts); });
}

Result<Capacity> PatientStore::capacity() {
  return patiently("the store's statistics", [&] { return next().capacity(); });
}

}  // namespace lccfs::check
