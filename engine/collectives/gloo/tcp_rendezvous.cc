#include "engine/collectives/gloo/tcp_rendezvous.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <thread>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"

// The protocol: a connection has a single question and its answer. The question has its kind ('J'oin,
// 'P'ublish or 'A'wait), the limit of the answer in milliseconds, the key and the value. The answer says
// whether there is a value, and the value. Numbers have 32 bits, least byte first, as in these machines'
// memory. Texts follow their lengths.
namespace tandem {
namespace {

constexpr uint32_t kLongestText = 1 << 16;
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);
// The extra time for data on the wire.
constexpr absl::Duration kTransferTime = absl::Seconds(10);

uint32_t Milliseconds(absl::Duration time) {
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(time), 0, UINT32_MAX));
}

struct Question {
  char wanted = 'A';
  uint32_t milliseconds = 0;
  std::string key;
  std::string value;
};

// The key under which the server publishes its address for other hosts after all have joined. The value is
// empty if all are on this host.
constexpr char kOuterHost[] = "outer-host";

// A socket that is closed by its destructor.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  int fd() const { return fd_.get(); }
  bool open() const { return fd_.valid(); }

  // Sets the longest wait of each Read and Write for the other side.
  void SetPatience(absl::Duration patience) const {
    const timeval time = absl::ToTimeval(patience);
    setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  }
  bool Write(absl::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(count);
    }
    return true;
  }
  bool Read(void* data, size_t bytes) const {
    auto* free = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t count = recv(fd(), free, bytes, 0);
      // With a timeout, SIGCONT after SIGSTOP interrupts the call too, although nobody handles the signal.
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      free += count;
      bytes -= count;
    }
    return true;
  }
  bool ReadText(std::string* text) const {
    uint32_t length = 0;
    if (!Read(&length, sizeof(length)) || length > kLongestText) return false;
    text->resize(length);
    return Read(text->data(), length);
  }

 private:
  UniqueFd fd_;
};

void AppendText(const std::string& text, std::string* bytes) {
  const auto length = static_cast<uint32_t>(text.size());
  bytes->append(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes->append(text);
}

// Returns the socket's own address, in digits.
std::string OwnAddress(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char text[NI_MAXHOST] = {};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  // IPv4, as a socket for both families shows it.
  const absl::string_view whole = text;
  constexpr absl::string_view kMapped = "::ffff:";
  return std::string(whole.substr(0, kMapped.size()) == kMapped ? whole.substr(kMapped.size()) : whole);
}

// Returns whether only this host can reach the address.
bool IsLoopback(const std::string& host) { return host == "::1" || absl::StartsWith(host, "127."); }

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// INVALID_ARGUMENT if `address` is no HOST:PORT, UNAVAILABLE if the host is unknown.
absl::StatusOr<Addresses> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port == 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is no HOST:PORT with a port from 1 to 65535"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &wanted, &found); error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot find the host ", host, ": ", gai_strerror(error)));
  }
  return Addresses(found, &freeaddrinfo);
}

absl::StatusOr<Socket> ConnectOnce(const std::string& address) {
  TANDEM_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address));
  int error = 0;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket connection(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connection.SetPatience(kTransferTime);
    if (connection.open() && connect(connection.fd(), one->ai_addr, one->ai_addrlen) == 0) return connection;
    error = errno;
  }
  return absl::UnavailableError(absl::StrCat("cannot reach ", address, ": ", strerror(error)));
}

// Retries until a process listens there, or until `deadline`.
absl::StatusOr<Socket> Connect(const std::string& address, absl::Duration deadline) {
  while (true) {
    absl::StatusOr<Socket> connection = ConnectOnce(address);
    if (connection.ok() || !absl::IsUnavailable(connection.status()) || Clock::Real()->Elapsed() >= deadline)
      return connection;
    absl::SleepFor(kRetryInterval);
  }
}

// Sends a question. If `own_host` is given, it receives the address of this host on the connection.
absl::StatusOr<std::string> Ask(const std::string& address, const Question& question,
                                std::string* own_host = nullptr) {
  const absl::Duration patience = absl::Milliseconds(question.milliseconds);
  TANDEM_ASSIGN_OR_RETURN(const Socket connection, Connect(address, Clock::Real()->Elapsed() + patience));
  if (own_host != nullptr) *own_host = OwnAddress(connection.fd());
  connection.SetPatience(patience + kTransferTime);
  std::string bytes(1, question.wanted);
  bytes.append(reinterpret_cast<const char*>(&question.milliseconds), sizeof(question.milliseconds));
  AppendText(question.key, &bytes);
  AppendText(question.value, &bytes);
  char known = 0;
  std::string value;
  if (!connection.Write(bytes) || !connection.Read(&known, 1) || !connection.ReadText(&value)) {
    return absl::UnavailableError(absl::StrCat("lost the connection to ", address));
  }
  if (known == 0) {
    return absl::DeadlineExceededError(absl::StrCat(question.key, " has not become known at ", address,
                                                    " within ", absl::FormatDuration(patience)));
  }
  return value;
}

}  // namespace

// Stores published values and answers questions. Each connection has a thread until it is answered. A large
// group asks thousands of questions, and the server lives as long as the group.
class TcpRendezvous::Server {
 public:
  explicit Server(Socket listener) : listener_(std::move(listener)) {
    thread_ = std::thread([this] { Accept(); });
  }
  ~Server() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      shutdown(listener_.fd(), SHUT_RDWR);
      for (const Connection& connection : connections_) shutdown(connection.socket.fd(), SHUT_RDWR);
    }
    thread_.join();
    std::thread last;
    {
      MutexLock lock(&mutex_);
      const auto answered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return connections_.empty(); };
      mutex_.Await(absl::Condition(&answered));
      last = std::move(answered_);
    }
    if (last.joinable()) last.join();
  }

  // Waits until `others` processes have joined. Then publishes the outer address for processes on this host.
  // Returns this host's address, or the number of joined processes after `timeout`.
  std::variant<std::string, int> AwaitHost(int others, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto complete = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return joined_ >= others; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&complete), timeout)) return joined_;
    values_.emplace(kOuterHost, outer_host_);
    return outer_host_.empty() ? host_ : outer_host_;
  }

 private:
  struct Connection {
    Socket socket;
    std::thread thread;
  };

  void Accept() {
    while (true) {
      Socket connection(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      const int error = errno;
      // No file or memory is left. Others may release some.
      if (!connection.open() && (error == EMFILE || error == ENFILE || error == ENOMEM)) {
        absl::SleepFor(absl::Milliseconds(100));
      }
      MutexLock lock(&mutex_);
      if (stopping_) return;
      if (!connection.open()) {
        // For example, the client has closed the connection. The next accept may succeed.
        if (error != EBADF && error != EINVAL) continue;
        return;
      }
      connection.SetPatience(kTransferTime);
      const auto added = connections_.insert(connections_.end(), {std::move(connection), std::thread()});
      added->thread = std::thread([this, added] {
        Answer(added->socket);
        Forget(added);
      });
    }
  }

  void Answer(const Socket& connection) {
    Question question;
    if (connection.Read(&question.wanted, 1) &&
        connection.Read(&question.milliseconds, sizeof(question.milliseconds)) &&
        connection.ReadText(&question.key) && connection.ReadText(&question.value)) {
      std::string answer(1, '\0');
      std::string value;
      {
        MutexLock lock(&mutex_);
        if (question.wanted == 'J') Join(OwnAddress(connection.fd()));
        if (question.wanted == 'P') values_.emplace(question.key, std::move(question.value));
        const auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return stopping_ || question.wanted == 'J' || values_.count(question.key) > 0;
        };
        mutex_.AwaitWithTimeout(absl::Condition(&known), absl::Milliseconds(question.milliseconds));
        if (const auto found = values_.find(question.key); found != values_.end()) {
          answer[0] = 1;
          value = found->second;
        }
        if (question.wanted == 'J') answer[0] = 1;
      }
      AppendText(value, &answer);
      connection.Write(answer);
    }
  }

  // Closes an answered connection. Its thread ends, and the next ending thread joins it.
  void Forget(std::list<Connection>::iterator connection) {
    std::thread before;
    {
      MutexLock lock(&mutex_);
      before = std::exchange(answered_, std::move(connection->thread));
      connections_.erase(connection);
    }
    if (before.joinable()) before.join();
  }

  // Records a process that joined and reached this host at `address`.
  void Join(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++joined_;
    if (host_.empty()) host_ = address;
    if (outer_host_.empty() && !IsLoopback(address)) outer_host_ = address;
  }

  const Socket listener_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int joined_ ABSL_GUARDED_BY(mutex_) = 0;
  // This host's address, as used by the first process that joined, and by the first process on another host.
  std::string host_ ABSL_GUARDED_BY(mutex_);
  std::string outer_host_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  // The unanswered connections, and the thread of the last answered connection.
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread answered_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

TcpRendezvous::TcpRendezvous(std::string address) : address_(std::move(address)) {}

TcpRendezvous::~TcpRendezvous() = default;

absl::StatusOr<std::unique_ptr<TcpRendezvous>> TcpRendezvous::Serve(const std::string& address, int others,
                                                                    absl::Duration timeout) {
  TANDEM_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address));
  // Both families, because processes may reach this host by different names.
  Socket listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 six = {};
  sockaddr_in four = {};
  const int on = 1, off = 0;
  const sockaddr* own = reinterpret_cast<const sockaddr*>(&six);
  socklen_t size = sizeof(six);
  const sockaddr* first = addresses->ai_addr;
  const in_port_t port = first->sa_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6*>(first)->sin6_port
                             : reinterpret_cast<const sockaddr_in*>(first)->sin_port;
  six.sin6_family = AF_INET6;
  six.sin6_port = port;
  four.sin_family = AF_INET;
  four.sin_port = port;
  if (listener.open()) {
    setsockopt(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  } else {
    listener = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    own = reinterpret_cast<const sockaddr*>(&four);
    size = sizeof(four);
  }
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.fd(), own, size) != 0 || listen(listener.fd(), SOMAXCONN) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at the port of ", address, ": ", strerror(errno)));
  }
  std::unique_ptr<TcpRendezvous> rendezvous(new TcpRendezvous(address));
  rendezvous->server_ = std::make_unique<Server>(std::move(listener));
  const std::variant<std::string, int> host = rendezvous->server_->AwaitHost(others, timeout);
  if (const int* const came = std::get_if<int>(&host); came != nullptr) {
    return absl::DeadlineExceededError(absl::StrCat(*came, " of ", others, " other workers came to ", address,
                                                    " within ", absl::FormatDuration(timeout)));
  }
  rendezvous->host_ = std::get<std::string>(host);
  return rendezvous;
}

absl::StatusOr<std::unique_ptr<TcpRendezvous>> TcpRendezvous::Reach(const std::string& address,
                                                                    absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real()->Elapsed() + timeout;
  std::unique_ptr<TcpRendezvous> rendezvous(new TcpRendezvous(address));
  TANDEM_RETURN_IF_ERROR(Ask(address,
                             {.wanted = 'J', .milliseconds = Milliseconds(timeout), .key = "", .value = ""},
                             &rendezvous->host_)
                             .status());
  if (!IsLoopback(rendezvous->host_)) return rendezvous;
  TANDEM_ASSIGN_OR_RETURN(const std::string outer,
                          rendezvous->Await(kOuterHost, deadline - Clock::Real()->Elapsed()));
  if (!outer.empty()) rendezvous->host_ = outer;
  return rendezvous;
}

absl::Status TcpRendezvous::Publish(const std::string& key, const std::string& value) {
  return Ask(address_,
             {.wanted = 'P', .milliseconds = Milliseconds(kTransferTime), .key = key, .value = value})
      .status();
}

absl::StatusOr<std::string> TcpRendezvous::Await(const std::string& key, absl::Duration timeout) {
  return Ask(address_, {.wanted = 'A', .milliseconds = Milliseconds(timeout), .key = key, .value = ""});
}

}  // namespace tandem
