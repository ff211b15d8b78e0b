// Tests the calls that each role may make, with the real server over a socket; and the end of open streams
// when their token is revoked or expires.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/auth/method_access.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class RolesTest : public ServiceFixture {
 protected:
  // Calls the method with an empty message. If the token permits it, a stream may not end, so its end is
  // awaited for a moment only.
  grpc::Status CallEmpty(const MethodAccess& access, const std::string& token, bool is_permitted) {
    auto context = Context(token);
    if (is_permitted) {
      context->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(1500));
    }
    return CallWith(absl::StrCat("/", access.service, "/", access.method), "", std::move(context));
  }

  // Returns the status of a stream that was open before `change`, and the delay of its end.
  template <typename Change>
  void ExpectEndsSoon(const std::string& token, Change change, const std::string& message) {
    auto context = Context(token);
    auto reader = stub_->WatchJobs(context.get(), {});
    reader->WaitForInitialMetadata();
    v1::Job job;
    ASSERT_TRUE(stub_->CreateJob(Context().get(), Request("a"), &job).ok());
    v1::WatchJobsResponse response;
    // The stream is open: it gets something.
    ASSERT_TRUE(reader->Read(&response));
    change();
    const absl::Time changed = absl::Now();
    while (reader->Read(&response)) {
    }
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
    EXPECT_LT(absl::Now() - changed, absl::Seconds(10));
  }
};

TEST_F(RolesTest, ViewersCallReadMethodsAlone) {
  const std::string viewer = MakeToken("vic", v1::TOKEN_ROLE_VIEWER);
  for (const MethodAccess& access : MethodAccessTable()) {
    const bool for_viewers = access.least_role == v1::TOKEN_ROLE_VIEWER;
    const grpc::Status status = CallEmpty(access, viewer, for_viewers);
    if (for_viewers) {
      EXPECT_NE(status.error_code(), StatusCode::PERMISSION_DENIED) << access.method;
      EXPECT_NE(status.error_code(), StatusCode::UNAUTHENTICATED) << access.method;
    } else if (status.error_code() != StatusCode::UNIMPLEMENTED) {
      EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED)
          << access.method << ": " << status.error_message();
    }
  }
}

TEST_F(RolesTest, SubmittersCallAllButWhatIsForAdministrators) {
  const std::string submitter = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  for (const MethodAccess& access : MethodAccessTable()) {
    if (access.least_role == v1::TOKEN_ROLE_VIEWER) continue;
    const bool for_admins = access.least_role == v1::TOKEN_ROLE_ADMIN;
    const grpc::Status status = CallEmpty(access, submitter, !for_admins);
    if (status.error_code() == StatusCode::UNIMPLEMENTED) continue;
    EXPECT_EQ(status.error_code() == StatusCode::PERMISSION_DENIED, for_admins)
        << access.method << ": " << status.error_message();
  }
}

TEST_F(RolesTest, ARefusedCallSaysWhatIsMissing) {
  v1::Job job;
  const grpc::Status status =
      stub_->CreateJob(Context(MakeToken("vic", v1::TOKEN_ROLE_VIEWER)).get(), Request("a"), &job);
  EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("it needs the role submitter"));
  EXPECT_THAT(status.error_details(), HasSubstr("ROLE_TOO_LOW"));
}

TEST_F(RolesTest, AStreamEndsSoonAfterItsTokenIsRevoked) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  ExpectEndsSoon(
      ann, [this] { Revoke("ann"); }, "was revoked");
}

TEST_F(RolesTest, AStreamEndsSoonAfterItsTokenExpires) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_VIEWER, absl::Seconds(6));
  ExpectEndsSoon(
      ann, [] {}, "expired at");
  v1::ListJobsResponse jobs;
  const grpc::Status later = stub_->ListJobs(Context(ann).get(), {}, &jobs);
  EXPECT_EQ(later.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(later.error_message(), HasSubstr("expired at"));
}

TEST_F(RolesTest, OtherStreamsGoOn) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  const std::string bob = MakeToken("bob", v1::TOKEN_ROLE_SUBMITTER);
  auto context = Context(bob);
  auto reader = stub_->WatchJobs(context.get(), {});
  reader->WaitForInitialMetadata();
  Revoke("ann");
  absl::SleepFor(absl::Seconds(2));
  Create("a");
  v1::WatchJobsResponse response;
  EXPECT_TRUE(reader->Read(&response));
  context->TryCancel();
}

}  // namespace
}  // namespace tandem
