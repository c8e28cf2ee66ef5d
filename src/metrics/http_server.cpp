// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/http_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"

namespace lccfs::metrics {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::generic::stream_protocol;
using LocalProtocol = asio::local::stream_protocol;

namespace {

/// A connection that sends or takes nothing for so long is closed.
constexpr std::chrono::seconds patience{10};
constexpr std::size_t most_body_bytes = 4096;
/// Further connections are closed at once: the descriptors are the mount's, too.
constexpr unsigned most_connections = 64;

/// One connection, from its first request to its end. Lives as long as something of it is under way.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(stream_protocol::socket socket, bool from_owner, const HttpServer::Handler& handler, unsigned& count)
      : stream_(std::move(socket)), from_owner_(from_owner), handler_(handler), count_(count) {
    ++count_;
  }
  ~Connection() { --count_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    parser_.emplace();
    parser_->body_limit(most_body_bytes);
    stream_.expires_after(patience);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](const beast::error_code& error, auto) {
      if (!error) self->answer();
    });
  }

 private:
  void answer() {
    const auto& request = parser_->get();
    const HttpAnswer answer =
        handler_({std::string(request.method_string()), std::string(request.target()), request.body(), from_owner_});
    response_ = {static_cast<http::status>(answer.status), request.version()};
    response_.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response_.keep_alive(request.keep_alive());
    if (request.method() == http::verb::head) {
      response_.content_length(answer.body.size());
    } else {
      response_.body() = answer.body;
      response_.prepare_payload();
    }
    stream_.expires_after(patience);
    http::async_write(stream_, response_, [self = shared_from_this()](const beast::error_code& error, auto) {
      if (!error && self->response_.keep_alive()) self->read();
    });
  }

  beast::basic_stream<stream_protocol> stream_;
  const bool from_owner_;
  const HttpServer::Handler& handler_;
  unsigned& count_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

std::unexpected<Error> cannot_listen(const std::string& where, const boost::system::error_code& error) {
  const std::string what = "cannot listen on " + where + ": ";
  if (error == boost::system::errc::address_in_use)
    return failure(ErrorCode::busy, what + "another program does; choose another port");
  return failure(ErrorCode::io, what + error.message());
}

}  // namespace

bool is_address(const std::string& text) {
  boost::system::error_code error;
  asio::ip::make_address(text, error);
  return !error;
}

class HttpServer::Impl {
 public:
  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
  }

  Result<> listen_on_port(const std::string& address, std::uint16_t port) {
    boost::system::error_code error;
    const auto parsed = asio::ip::make_address(address, error);
    if (error) return failure(ErrorCode::invalid, "'" + address + "' is not an address of this host, in numbers");
    const asio::ip::tcp::endpoint endpoint(parsed, port);
    asio::ip::tcp::acceptor acceptor(context_);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return cannot_listen(address + " port " + std::to_string(port), error);
    acceptors_.push_back({stream_acceptor(std::move(acceptor)), false});
    return {};
  }

  /// It gets its name when it listens: a socket that refuses is one whose process is gone.
  Result<> listen_on_socket(const std::string& folder, const std::string& name) {
    const std::string path = folder + "/" + name, made = folder + "/." + name;
    ::mkdir(folder.c_str(), 0755);
    ::unlink(made.c_str());
    if (made.size() >= sizeof(sockaddr_un{}.sun_path))
      return failure(ErrorCode::name_too_long, path + " is too long for a socket");
    boost::system::error_code error;
    LocalProtocol::acceptor acceptor(context_);
    acceptor.open(LocalProtocol(), error);
    if (!error && ::fchmod(acceptor.native_handle(), 0600) != 0)
      error.assign(errno, boost::system::system_category());  // before its name is there: for nobody else at any time
    if (!error) acceptor.bind(LocalProtocol::endpoint(made), error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error && ::rename(made.c_str(), path.c_str()) != 0) error.assign(errno, boost::system::system_category());
    if (error) return failure(ErrorCode::io, path + ": " + error.message());
    socket_path_ = path;
    acceptors_.push_back({stream_acceptor(std::move(acceptor)), true});
    return {};
  }

  void serve(Handler handler) {
    handler_ = std::move(handler);
    for (Acceptor& acceptor : acceptors_) accept(acceptor);
    thread_ = std::thread([this] { run(); });
  }

 private:
  struct Acceptor {
    asio::basic_socket_acceptor<stream_protocol> socket;
    bool is_for_owner;
  };

  template <class Socket>
  asio::basic_socket_acceptor<stream_protocol> stream_acceptor(Socket socket) {
    const stream_protocol protocol(socket.local_endpoint().protocol());
    return {context_, protocol, socket.release()};
  }

  void accept(Acceptor& acceptor) {
    acceptor.socket.async_accept([this, &acceptor](const beast::error_code& error, stream_protocol::socket socket) {
      if (!error && connections_ < most_connections)
        std::make_shared<Connection>(std::move(socket), acceptor.is_for_owner, handler_, connections_)->read();
      if (error) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // no descriptors: they may come back
      accept(acceptor);
    });
  }

  void run() {
    try {
      context_.run();
    } catch (const std::exception& error) {
      log::error(std::string("metrics are served no more: ") + error.what());
    }
  }

  Handler handler_;
  unsigned connections_ = 0;
  std::string socket_path_;
  asio::io_context context_{1};
  std::list<Acceptor> acceptors_;
  std::thread thread_;
};

HttpServer::HttpServer() : impl_(std::make_unique<Impl>()) {}
HttpServer::~HttpServer() = default;

Result<> HttpServer::listen_on_port(const std::string& address, std::uint16_t port) {
  return impl_->listen_on_port(address, port);
}

Result<> HttpServer::listen_on_socket(const std::string& folder, const std::string& name) {
  return impl_->listen_on_socket(folder, name);
}

void HttpServer::serve(Handler handler) { impl_->serve(std::move(handler)); }

}  // namespace lccfs::metrics
