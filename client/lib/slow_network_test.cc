// A daemon that is far away, or on a busy machine: its first bytes arrive late.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Forwards connections to a port on loopback, one after the other. Delays the first bytes of each connection.
class SlowLink {
 public:
  SlowLink(int target, absl::Duration delay) : target_(target), delay_(delay) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Loopback(0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~SlowLink() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  void Run() {
    while (true) {
      const int near = accept(listener_, nullptr, nullptr);
      if (near < 0) return;
      absl::SleepFor(delay_);
      const int far = socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in address = Loopback(target_);
      if (connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) Pass(near, far);
      close(near);
      close(far);
    }
  }

  // Forwards bytes until one side closes.
  static void Pass(int a, int b) {
    const int sides[2] = {a, b};
    while (true) {
      pollfd ready[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
      poll(ready, 2, -1);
      for (int i = 0; i < 2; ++i) {
        if (ready[i].revents == 0) continue;
        char bytes[4096];
        const ssize_t count = read(sides[i], bytes, sizeof bytes);
        if (count <= 0 || send(sides[1 - i], bytes, count, MSG_NOSIGNAL) != count) return;
      }
    }
  }

  const int target_;
  const absl::Duration delay_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

TEST(SlowNetworkTest, ACallWaitsForASlowConnection) {
  FakeDaemon daemon;
  daemon.get_job = [](const v1::GetJobRequest& request, v1::Job* job) {
    job->set_name(request.name());
    return grpc::Status::OK;
  };
  SlowLink link(daemon.port(), absl::Milliseconds(700));
  ConnectionOptions options;
  options.address = link.address();
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<v1::Job> job = (*client)->GetJob("jobs/a");
  EXPECT_TRUE(job.ok()) << job.status();
}

}  // namespace
}  // namespace tandem::client
