#include "server/rpc/connection_gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// If the peer acknowledges no data for this long, the connection is closed.
constexpr int kUserTimeoutMilliseconds = 30'000;
// The least time between two log lines about refused connections.
constexpr absl::Duration kTellInterval = absl::Seconds(10);
// The delay before the next try if the process has no free file.
constexpr int kNoFileMilliseconds = 100;
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);
constexpr absl::Duration kShortInterval = absl::Milliseconds(20);
// The interval between looks is at least this many times a look's processor time. On a busy machine, a look
// lasts far longer than its processor time.
constexpr int kLookPart = 20;
// The least time between two searches for closed connections. A search makes a system call per connection. A
// full gate searches at once.
constexpr absl::Duration kForgetInterval = absl::Seconds(1);
constexpr absl::Duration kRefusal = absl::Seconds(10);
// The most new connections of an address per second.
constexpr int kMostNew = 100;

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

// Returns the processor time that the calling thread has used.
absl::Duration ThreadTime() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

// Returns a listening socket; -1 and errno on failure.
int ListenOn(const addrinfo& where) {
  const int fd = socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  // Accepted connections inherit these options.
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
  if (bind(fd, where.ai_addr, where.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

PeerAddress PeerOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& narrow = reinterpret_cast<const sockaddr_in&>(peer);
    return {{reinterpret_cast<const char*>(&narrow.sin_addr), 4}, ntohs(narrow.sin_port)};
  }
  const auto& wide = reinterpret_cast<const sockaddr_in6&>(peer);
  const auto* bytes = reinterpret_cast<const char*>(wide.sin6_addr.s6_addr);
  const int port = ntohs(wide.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&wide.sin6_addr)) return {std::string(bytes + 12, 4), port};
  return {std::string(bytes, 16), port};
}

std::string TextOf(const PeerAddress& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(peer.ip.size() == 4 ? AF_INET : AF_INET6, peer.ip.data(), text, sizeof(text));
  return text;
}

uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionGate>> ConnectionGate::Listen(const ListenAddress& address,
                                                                       const Limits& limits) {
  int most = limits.most > 0 ? limits.most : std::numeric_limits<int>::max();
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    const auto part = static_cast<int64_t>(files.rlim_cur) / limits.files_per_connection;
    most = static_cast<int>(std::min<int64_t>(most, std::max<int64_t>(1, part)));
  }
  std::unique_ptr<ConnectionGate> gate(new ConnectionGate(most, limits.most_option));
  gate->port_ = address.port;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int result =
          getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
      result != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToString(),
                                                      ": the host is unknown: ", gai_strerror(result),
                                                      "; choose another with ", limits.address_option));
  }
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    // A name may have several addresses. All use the same port.
    auto* port = one->ai_family == AF_INET6 ? &reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_port
                                            : &reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port;
    *port = htons(static_cast<uint16_t>(gate->port_));
    const int fd = ListenOn(*one);
    if (fd < 0) {
      error = errno;
      continue;
    }
    gate->files_.push_back(fd);
    if (gate->port_ == 0) gate->port_ = PortOf(fd);
  }
  freeaddrinfo(found);
  if (gate->files_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToString(), ": ",
                                                      strerror(error), "; choose another with ",
                                                      limits.address_option));
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  gate->files_.push_back(wake);
  return gate;
}

ConnectionGate::~ConnectionGate() {
  Stop();
  for (const int fd : files_) close(fd);
}

void ConnectionGate::Start(std::unique_ptr<Acceptor> acceptor, Look look) {
  acceptor_ = std::move(acceptor);
  look_ = std::move(look);
  thread_ = std::thread([this] { Run(); });
}

void ConnectionGate::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(files_.back(), &one, sizeof(one));
  thread_.join();
  for (const int fd : files_) close(fd);
  files_.clear();
}

void ConnectionGate::Run() {
  std::vector<pollfd> events;
  for (const int fd : files_) events.push_back({fd, POLLIN, 0});
  while (true) {
    // Without connections, no look is needed.
    const bool looks = look_ != nullptr && !connections_.empty();
    const absl::Duration wait = std::max(next_look_ - Clock::Real()->Elapsed(), absl::ZeroDuration());
    const int timeout = looks ? static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1 : -1;
    if (poll(events.data(), events.size(), timeout) < 0 && errno != EINTR) {
      spdlog::error("cannot accept more connections: {}; restart the daemon", strerror(errno));
      return;
    }
    if (events.back().revents != 0) return;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      if (events[i].revents != 0) Accept(events[i].fd);
    }
    if (looks && Clock::Real()->Elapsed() >= next_look_) LookForHarm();
  }
}

void ConnectionGate::Accept(int listener) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      pollfd stop = {files_.back(), POLLIN, 0};
      poll(&stop, 1, kNoFileMilliseconds);
    }
    return;
  }
  PeerAddress from = PeerOf(peer);
  const std::string address = SourceOf(from.ip);
  if (const auto until = refused_.find(address); until != refused_.end()) {
    if (Clock::Real()->Elapsed() < until->second) {
      close(fd);
      return;
    }
    refused_.erase(until);
  }
  // A client that reconnects rapidly does harm before a look finds it.
  if (const absl::Duration now = Clock::Real()->Elapsed(); now >= new_until_) {
    new_until_ = now + absl::Seconds(1);
    new_.clear();
  }
  if (!IsLoopback(from.ip) && ++new_[address] > kMostNew) {
    close(fd);
    return;
  }
  const int most_of_one = std::max(1, most_ / 2);
  const auto is_full = [&] {
    return connections_.size() >= static_cast<size_t>(most_) || counts_[address] >= most_of_one;
  };
  if (is_full()) Forget();
  if (is_full()) {
    close(fd);
    if (Clock::Real()->Elapsed() - told_ < kTellInterval) return;
    told_ = Clock::Real()->Elapsed();
    spdlog::warn(
        "cannot accept a connection: {} are open, and at most {} may be, {} of them from one address "
        "({})",
        connections_.size(), most_, most_of_one, most_option_);
    return;
  }
  connections_.push_back({fd, CookieOf(fd), address, std::move(from)});
  ++counts_[address];
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

void ConnectionGate::LookForHarm() {
  const absl::Duration begin = Clock::Real()->Elapsed();
  const absl::Duration used = ThreadTime();
  const Harm harm = look_();
  for (const PeerAddress& peer : harm.peers) Shut(peer);
  absl::erase_if(refused_, [begin](const auto& one) { return one.second <= begin; });
  if (begin >= next_forget_) {
    Forget();
    next_forget_ = begin + kForgetInterval;
  }
  next_look_ = Clock::Real()->Elapsed() +
               std::max(harm.is_likely ? kShortInterval : kLookInterval, kLookPart * (ThreadTime() - used));
}

void ConnectionGate::Shut(const PeerAddress& peer) {
  for (Connection& one : connections_) {
    if (one.peer != peer || one.is_shut) continue;
    // The descriptor may belong to another file by now. The duplicate keeps its file from changing.
    const int fd = fcntl(one.fd, F_DUPFD_CLOEXEC, 0);
    // Without a free descriptor, the next look tries again.
    if (fd < 0) continue;
    one.is_shut = true;
    const bool is_same = CookieOf(fd) == one.cookie;
    if (is_same) {
      // Ends the connection at once, even with unread data. gRPC sees an error and closes it.
      const sockaddr nobody = {.sa_family = AF_UNSPEC, .sa_data = {}};
      connect(fd, &nobody, sizeof(nobody));
      const absl::Duration now = Clock::Real()->Elapsed();
      // All users of this machine use loopback.
      const bool refuses = !IsLoopback(peer.ip);
      if (refuses) refused_[one.address] = now + kRefusal;
      if (refuses || now - told_of_harm_ >= kTellInterval) {
        told_of_harm_ = now;
        spdlog::warn(
            "closed a connection of {}{}: it cancels calls before their answers", TextOf(peer),
            refuses ? absl::StrCat(" and refused its address for ", absl::FormatDuration(kRefusal)) : "");
      }
    }
    close(fd);
  }
}

void ConnectionGate::Forget() {
  counts_.clear();
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [](const Connection& one) { return CookieOf(one.fd) != one.cookie; }),
                     connections_.end());
  for (const Connection& one : connections_) ++counts_[one.address];
}

}  // namespace tandem
