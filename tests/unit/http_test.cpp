// SPDX-License-Identifier: LGPL-2.1-or-later
// The small server, and its client.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <set>

#include "base/descriptor.h"
#include "metrics/http_client.h"
#include "metrics/http_server.h"
#include "metrics/run_folder.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

using namespace lccfs;
using namespace lccfs::metrics;

namespace {

class Folder : public test::TemporaryFolder {
 public:
  HttpPlace place(const std::string& name) const { return {.socket = path() + "/" + name, .address = "", .port = 0}; }
};

HttpAnswer echo(const HttpRequest& request) {
  if (request.path == "/refused") return {403, "not for you\n"};
  if (request.path == "/silent") return {500, ""};
  if (request.path == "/long") return {404, "\r\n\x1b[2J" + std::string(9999, 'x') + "\nmore"};
  return {200, request.method + " " + request.path + " " + request.body + (request.from_owner ? " owner" : " other")};
}

/// A port that is free at this moment.
std::uint16_t listen_somewhere(HttpServer& server) {
  for (std::uint16_t port = 42'000; port < 42'200; ++port) {
    if (server.listen_on_port("127.0.0.1", port)) return port;
  }
  return 0;
}

/// A socket with that name; nothing comes of it before `listen` is called.
Descriptor socket_at(const HttpPlace& place) {
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, place.socket.c_str());
  REQUIRE(bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return made;
}

bool takes_another(const HttpPlace& place, std::list<Descriptor>& waiting) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, place.socket.c_str());
  waiting.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  return connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a server answers on its socket and on its port, and knows which it was") {
  const Folder folder;
  HttpServer server;
  REQUIRE(server.listen_on_socket(folder.path() + "/run", "1.sock"));
  const std::uint16_t port = listen_somewhere(server);
  server.serve(echo);
  CHECK(http_ask(folder.place("run/1.sock"), "PUT", "/x", "body") == "PUT /x body owner");
  CHECK(http_ask({.socket = "", .address = "127.0.0.1", .port = port}, "GET", "/x") == "GET /x  other");
  struct stat values = {};
  REQUIRE(stat((folder.path() + "/run/1.sock").c_str(), &values) == 0);
  CHECK((values.st_mode & 07777) == 0600);
}

TEST_CASE("what a server refuses is an error of one line, with where, the status and its words") {
  const Folder folder;
  HttpServer server;
  REQUIRE(server.listen_on_socket(folder.path(), "1.sock"));
  server.serve(echo);
  const auto said = [place = folder.place("1.sock")](const std::string& path) {
    const auto refused = http_ask(place, "GET", path);
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().context.starts_with(place.socket + ": refused with status "));
    return refused.error().context.substr(place.socket.size() + 2);
  };
  CHECK(said("/refused") == "refused with status 403: not for you");
  CHECK(said("/silent") == "refused with status 500");
  CHECK(said("/long") == "refused with status 404: \\x1b[2J" + std::string(196, 'x'));
}

TEST_CASE("a port that is taken, and an address that is none, are errors of one line") {
  HttpServer first, second;
  const std::uint16_t port = listen_somewhere(first);
  const auto taken = second.listen_on_port("127.0.0.1", port);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == ErrorCode::busy);
  CHECK(taken.error().context ==
        "cannot listen on 127.0.0.1 port " + std::to_string(port) + ": another program does; choose another port");
  const auto nowhere = second.listen_on_port("localhost", port);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::invalid);
}

TEST_CASE("what says no HTTP does not keep a server from answering others") {
  const Folder folder;
  HttpServer server;
  REQUIRE(server.listen_on_socket(folder.path(), "1.sock"));
  server.serve(echo);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, (folder.path() + "/1.sock").c_str());
  const int silent = socket(AF_UNIX, SOCK_STREAM, 0), loud = socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(connect(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(connect(loud, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const std::string noise(20'000, '\xff');
  CHECK(send(loud, noise.data(), noise.size(), MSG_NOSIGNAL) > 0);
  CHECK(http_ask(folder.place("1.sock"), "GET", "/x") == "GET /x  owner");
  const std::string too_long(100'000, 'x');
  CHECK_FALSE(http_ask(folder.place("1.sock"), "PUT", "/x", too_long));
  CHECK(http_ask(folder.place("1.sock"), "GET", "/x") == "GET /x  owner");
  close(silent);
  close(loud);
}

TEST_CASE("a server that is gone has taken its socket away") {
  const Folder folder;
  {
    HttpServer server;
    REQUIRE(server.listen_on_socket(folder.path(), "1.sock"));
    server.serve(echo);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto nobody = http_ask(folder.place("1.sock"), "GET", "/x");
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == ErrorCode::not_found);
}

TEST_CASE("of the sockets in a folder those go on which nobody listens, and nothing else") {
  const Folder folder;
  HttpServer server;
  REQUIRE(server.listen_on_socket(folder.path(), "1.sock"));
  server.serve(echo);
  socket_at(folder.place("2.sock"));  // closed at once, as the kernel does it for who is killed
  const auto stopped = socket_at(folder.place("3.sock"));
  REQUIRE(listen(stopped.get(), 0) == 0);
  std::list<Descriptor> waiting;
  while (takes_another(folder.place("3.sock"), waiting)) {
  }
  const auto about_to_listen = socket_at(folder.place(".4.sock"));
  std::ofstream(folder / "5.sock") << "no socket";
  std::ofstream(folder / "0:39") << "6";
  std::filesystem::create_symlink(folder / "2.sock", folder / "7.sock");
  remove_dead_sockets(folder.path());
  CHECK(names_in(folder.path()) == std::set<std::string>{"1.sock", "3.sock", ".4.sock", "5.sock", "0:39", "7.sock"});
  CHECK(http_ask(folder.place("1.sock"), "GET", "/x") == "GET /x  owner");
}

TEST_CASE("sockets are looked for in a folder that is not there, and none is found") {
  const Folder folder;
  remove_dead_sockets(folder.path() + "/run");
  remove_dead_sockets("");
  remove_dead_socket(folder.path() + "/1.sock");
  CHECK(std::filesystem::is_empty(folder.path()));
}
