// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/http_client.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "base/text.h"

namespace lccfs::metrics {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t most_answer_bytes = 64U << 20;

std::unexpected<Error> cannot_ask(const HttpPlace& place, int error) {
  const auto code = error == ECONNREFUSED || error == ENOENT  ? ErrorCode::not_found
                    : error == EACCES || error == EPERM       ? ErrorCode::permission_denied
                    : error == EAGAIN || error == EINPROGRESS ? ErrorCode::timed_out
                                                              : ErrorCode::io;
  return failure(code, shown(place) + ": " + (code == ErrorCode::timed_out ? "no answer" : std::strerror(error)));
}

class Connected {
 public:
  explicit Connected(int family) : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

  bool connect(const sockaddr* address, socklen_t size, std::chrono::seconds patience) const {
    const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
    ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return ::connect(descriptor_.get(), address, size) == 0;
  }
  bool send(const std::string& text) const {
    return ::send(descriptor_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// All until its end; false: errno says why not.
  bool receive(std::string& all) const {
    char part[65536];
    for (;;) {
      const ssize_t got = ::recv(descriptor_.get(), part, sizeof part, 0);
      if (got <= 0) return got == 0;
      all.append(part, static_cast<std::size_t>(got));
      if (all.size() > most_answer_bytes) return errno = EFBIG, false;
    }
  }

 private:
  const Descriptor descriptor_;
};

Result<std::string> exchange(const HttpPlace& place, const std::string& request, std::chrono::seconds patience) {
  std::string answer;
  const auto ask = [&](const Connected& connected, const sockaddr* address, socklen_t size) {
    return connected.connect(address, size, patience) && connected.send(request) && connected.receive(answer);
  };
  if (!place.socket.empty()) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (place.socket.size() >= sizeof address.sun_path) return cannot_ask(place, ENAMETOOLONG);
    std::memcpy(address.sun_path, place.socket.data(), place.socket.size());
    if (!ask(Connected(AF_UNIX), reinterpret_cast<const sockaddr*>(&address), sizeof address))
      return cannot_ask(place, errno);
    return answer;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0)
    return failure(ErrorCode::not_found, "there is no host '" + place.address + "'");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (ask(Connected(one->ai_family), one->ai_addr, one->ai_addrlen)) return answer;
  }
  return cannot_ask(place, errno);
}

/// What answers may be any server: it says as much as it likes, or nothing.
std::string refusal(const http::response<http::string_body>& answer) {
  constexpr std::size_t most_shown_bytes = 200;
  constexpr const char* line_ends = "\r\n";
  const std::string_view said = answer.body();
  const auto line = said.substr(std::min(said.find_first_not_of(line_ends), said.size()));
  const auto text = line.substr(0, std::min(line.find_first_of(line_ends), most_shown_bytes));
  return "refused with status " + std::to_string(answer.result_int()) + (text.empty() ? "" : ": " + printable(text));
}

}  // namespace

std::string shown(const HttpPlace& place) {
  return place.socket.empty() ? place.address + " port " + std::to_string(place.port) : place.socket;
}

Result<std::string> http_ask(const HttpPlace& place, const std::string& method, const std::string& path,
                             const std::string& body, std::chrono::seconds patience) {
  const std::string request =
      method + " " + path +
      " HTTP/1.1\r\nHost: lccfs\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;
  LCCFS_TRY(const std::string answer, exchange(place, request, patience));
  http::response_parser<http::string_body> parser;
  parser.body_limit(most_answer_bytes);
  parser.eager(true);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(answer), error);
  if (error || !parser.is_done()) return failure(ErrorCode::io, shown(place) + ": what answers there is no lccfs");
  if (parser.get().result() != http::status::ok)
    return failure(ErrorCode::invalid, shown(place) + ": " + refusal(parser.get()));
  return std::move(parser.get().body());
}

}  // namespace lccfs::metrics
