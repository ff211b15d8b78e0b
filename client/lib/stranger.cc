#include "client/lib/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tandem::client {
namespace {

constexpr uid_t kNobody = 65534;

}  // namespace

bool Stranger::CanBe() { return geteuid() == 0; }

Stranger::Stranger(int port) {
  // A socket belongs to the file system user that its thread has when the socket is created.
  const auto own = static_cast<uid_t>(setfsuid(kNobody));
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setfsuid(own);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("a stranger cannot listen");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
}

Stranger::~Stranger() { close(listener_); }

std::string Stranger::Received() {
  std::string all;
  for (int one; (one = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0; close(one)) {
    char piece[4096];
    for (ssize_t size; (size = read(one, piece, sizeof(piece))) > 0;) all.append(piece, size);
  }
  return all;
}

}  // namespace tandem::client
