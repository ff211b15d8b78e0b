// Tests large requests of every unary method, with the real server over a socket. A large request is parsed
// in its user's turn, on the pool, and not on gRPC's threads.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/auth/method_access.h"
#include "server/rpc/request_bytes.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class LargeRequestsTest : public ServiceFixture {
 protected:
  // Returns the paths of all unary methods, Shutdown last: it ends the daemon's service.
  static std::vector<std::string> UnaryMethods() {
    std::vector<std::string> paths;
    std::string shutdown;
    for (const MethodAccess& access : MethodAccessTable()) {
      const google::protobuf::ServiceDescriptor* const service =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(access.service));
      const google::protobuf::MethodDescriptor& method =
          *service->FindMethodByName(std::string(access.method));
      if (method.client_streaming() || method.server_streaming()) continue;
      std::string path = absl::StrCat("/", access.service, "/", access.method);
      if (access.method == "Shutdown") {
        shutdown = std::move(path);
      } else {
        paths.push_back(std::move(path));
      }
    }
    paths.push_back(std::move(shutdown));
    return paths;
  }

  // Returns a message of `size` bytes and a few more, with an unknown field that parsers keep.
  static std::string Padded(int64_t size) {
    google::protobuf::Empty message;
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(1000, std::string(size, 'x'));
    return message.SerializeAsString();
  }
};

TEST_F(LargeRequestsTest, EndLikeSmallOnes) {
  for (const std::string& path : UnaryMethods()) {
    if (absl::EndsWith(path, "/Shutdown")) {
      // The daemon shuts down once.
      const grpc::Status status = CallWith(path, Padded(kSmallRequestBytes));
      EXPECT_TRUE(status.ok()) << status.error_message();
      continue;
    }
    const grpc::Status small = CallWith(path, "");
    const grpc::Status large = CallWith(path, Padded(kSmallRequestBytes));
    EXPECT_EQ(large.error_code(), small.error_code()) << path << ": " << large.error_message();
  }
}

TEST_F(LargeRequestsTest, AreRefusedIfTheyAreNoMessages) {
  for (const std::string& path : UnaryMethods()) {
    // 0xff begins no field.
    const grpc::Status status = CallWith(path, std::string(kSmallRequestBytes + 1, '\xff'));
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << path;
    EXPECT_THAT(status.error_message(), HasSubstr("cannot read the message")) << path;
  }
  // Field 1, a text of one byte that is not UTF-8.
  const grpc::Status text = CallWith("/tandem.v1.JobService/GetJob", "\x0a\x01\xff");
  EXPECT_EQ(text.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(text.error_message(), HasSubstr("has a text that is not UTF-8"));
}

TEST_F(LargeRequestsTest, AreRefusedWhileTheirUserHoldsAllTheRoom) {
  FairPool::Hold all;
  absl::Notification taken;
  pool_->Offer(kAdminUser, FairPool::Room().bytes, [&](absl::StatusOr<FairPool::Hold> hold) {
    ASSERT_TRUE(hold.ok()) << hold.status();
    all = *std::move(hold);
    taken.Notify();
  });
  taken.WaitForNotification();
  for (const std::string& path : UnaryMethods()) {
    const grpc::Status status = CallWith(path, Padded(FairPool::Room().small));
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << path;
    EXPECT_THAT(status.error_details(), HasSubstr("TOO_MANY_WAITING_CALLS")) << path;
  }
}

}  // namespace
}  // namespace tandem
