// SPDX-License-Identifier: LGPL-2.1-or-later
// A small HTTP server on one thread: a TCP port, and a socket in the file system. By Boost.Beast, which only this
// class's own file includes: it takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lccfs/result.h"

namespace lccfs::metrics {

struct HttpRequest {
  std::string method;  ///< "GET"
  std::string path;    ///< "/metrics"
  std::string body;
  bool from_owner = false;  ///< came by the socket in the file system: the owner of this process, or root
};
struct HttpAnswer {
  unsigned status = 200;
  std::string body;
};

/// In numbers, IPv4 or IPv6; whether this host has it, listening tells.
bool is_address(const std::string& text);

class HttpServer {
 public:
  /// Called by the server's thread, and by no other.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  HttpServer();
  /// Ends the thread, after the handler's call that is under way, and takes the socket away.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // -- before `serve`: a client that connects before that waits
  /// `address`: of this host, in numbers. The error says in one line what to do.
  Result<> listen_on_port(const std::string& address, std::uint16_t port);
  /// A socket for its owner alone, in a folder that is made if it is missing; what has that name goes.
  Result<> listen_on_socket(const std::string& folder, const std::string& name);

  void serve(Handler handler);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lccfs::metrics
