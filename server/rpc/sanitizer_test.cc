// The thread sanitizer's hints about gRPC (third_party/grpc/tsan_handover.cc) must be enough and not too
// much: handlers with locks pass, and racing handlers are found. Other builds find nothing.

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "gtest/gtest.h"
#include "tandem/v1/daemon_service.grpc.pb.h"

namespace tandem {
namespace {

constexpr int kClients = 4;
constexpr int kCallsEach = 100;

// Runs the function once per call, on gRPC's threads.
class Service : public v1::DaemonService::CallbackService {
 public:
  explicit Service(std::function<void()> function) : function_(std::move(function)) {}

  grpc::ServerUnaryReactor* GetDaemon(grpc::CallbackServerContext* context, const v1::GetDaemonRequest*,
                                      v1::Daemon*) override {
    function_();
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::function<void()> function_;
};

void Serve(std::function<void()> function) {
  Service service(std::move(function));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([client, port] {
      grpc::ChannelArguments own_connection;
      own_connection.SetInt("client", client);
      const auto channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                                     grpc::InsecureChannelCredentials(), own_connection);
      const auto stub = v1::DaemonService::NewStub(channel);
      for (int call = 0; call < kCallsEach; ++call) {
        grpc::ClientContext context;
        v1::Daemon daemon;
        const grpc::Status status = stub->GetDaemon(&context, {}, &daemon);
        EXPECT_TRUE(status.ok()) << status.error_message();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server->Shutdown();
}

TEST(SanitizerTest, HandlersThatLockDoNotRace) {
  Mutex mutex;
  int calls = 0;
  Serve([&] {
    MutexLock lock(&mutex);
    ++calls;
  });
  // Unlocked, because all handlers end before the server.
  EXPECT_EQ(calls, kClients * kCallsEach);
}

#ifdef TANDEM_TSAN
TEST(SanitizerDeathTest, HandlersThatDoNotLockRace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int calls = 0;
        std::atomic<int> begun = 0;
        Serve([&] {
          // Two calls are here at once, and no synchronization orders one before the other.
          begun.fetch_add(1, std::memory_order_relaxed);
          while (begun.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
          ++calls;
        });
      },
      testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace tandem
