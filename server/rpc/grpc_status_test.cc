#include "server/rpc/grpc_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "server/rpc/status_details.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GrpcStatusTest, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(GrpcStatusTest, AnyErrorHasAReason) {
  const grpc::Status status = ToGrpcStatus(absl::NotFoundError("gone"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "gone");
  EXPECT_EQ(DetailsOf(status).details_size(), 1);
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.reason(), "NOT_FOUND");
  EXPECT_EQ(info.domain(), "tandem");
}

TEST(GrpcStatusTest, SaysWhenToComeAgain) {
  const grpc::Status status = ToGrpcStatus(WithRetryDelay(
      WithReason(absl::ResourceExhaustedError("too often"), "RATE"), absl::Milliseconds(2500)));
  EXPECT_EQ(DetailsOf(status).details_size(), 2);
  const auto retry = DetailOf<google::rpc::RetryInfo>(status);
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(GrpcStatusTest, SaysInUtf8WhatIsNot) {
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("no \xFF"
                                             "file"))
                .error_message(),
            "no \\xfffile");
  FieldViolations violations;
  violations.Add("spec.name", "is 'a\xC3'");
  const grpc::Status status = ToGrpcStatus(violations.ToStatus());
  EXPECT_EQ(DetailsOf(status).details_size(), 2);
  const auto bad_request = DetailOf<google::rpc::BadRequest>(status);
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).description(), "is 'a\\xc3'");
}

TEST(GrpcStatusTest, CutsWhatAClientWouldNotTake) {
  FieldViolations violations;
  for (int i = 0; i < 500; ++i) {
    violations.Add(absl::StrCat("spec.model.layers[", i, "].dense.units"),
                   std::string(i == 3 ? 5000 : 40, 'x'));
  }
  const grpc::Status status = ToGrpcStatus(violations.ToStatus());
  EXPECT_THAT(status.error_message(), StartsWith("500 problems: spec.model.layers[0].dense.units: xxx"));
  const auto bad_request = DetailOf<google::rpc::BadRequest>(status);
  ASSERT_GT(bad_request.field_violations_size(), 10);
  const auto& last = bad_request.field_violations(bad_request.field_violations_size() - 1);
  EXPECT_EQ(last.description(),
            absl::StrCat("and ", 501 - bad_request.field_violations_size(), " more problems"));
  // In Base64, with the other trailers.
  EXPECT_LT(status.error_message().size() + status.error_details().size() * 4 / 3, 7500);
}

// The bytes of the trailer by gRPC's rule: "%XX" for all but printable ASCII without '%'.
size_t OnTheWire(const std::string& message) {
  size_t bytes = 0;
  for (const unsigned char c : message) bytes += c < 0x20 || c > 0x7e || c == '%' ? 3 : 1;
  return bytes;
}

TEST(GrpcStatusTest, CutsWhatIsLongOnTheWire) {
  // 800 characters of 2 bytes take 4,800 bytes as %XX.
  std::string accents, percents(1700, '%');
  for (int i = 0; i < 800; ++i) accents += "\xc3\xa9";
  for (const std::string& text : {accents, percents}) {
    const std::string message = ToGrpcStatus(absl::InternalError(text)).error_message();
    EXPECT_LE(OnTheWire(message), 1800);
    EXPECT_GT(OnTheWire(message), 1790);
    EXPECT_EQ(message.substr(message.size() - 3), "...");
  }
  EXPECT_EQ(ToGrpcStatus(absl::InternalError(std::string(1800, 'x'))).error_message(),
            std::string(1800, 'x'));
  FieldViolations violations;
  for (int i = 0; i < 10; ++i) violations.Add(absl::StrCat("f", i), accents.substr(0, 200));
  const grpc::Status status = ToGrpcStatus(violations.ToStatus());
  // Two of the 10 have 600 bytes each.
  EXPECT_LE(OnTheWire(status.error_message()), 1810);
  EXPECT_THAT(status.error_message(), testing::AllOf(HasSubstr("f1: "), testing::Not(HasSubstr("f2: "))));
  EXPECT_LT(OnTheWire(status.error_message()) + status.error_details().size() * 4 / 3, 7500);
}

TEST(GrpcStatusTest, CutsBetweenCharacters) {
  std::string message;
  for (int i = 0; i < 2000; ++i) message += "\xc3\xa9";
  const std::string cut = ToGrpcStatus(absl::InternalError(message)).error_message();
  EXPECT_LT(cut.size(), 2000);
  EXPECT_EQ(cut.substr(cut.size() - 5), "\xc3\xa9...");
}

}  // namespace
}  // namespace tandem
