// Tests the audit log's records of calls, with the real server over a socket.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "server/rpc/service_fixture.h"
#include "server/store/eventually.h"

namespace tandem {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class AuditTest : public ServiceFixture {
 protected:
  // Returns all lines, after the log was closed.
  std::vector<json> Lines() {
    audit_->Close();
    std::ifstream file(folder_->path() + "/audit.log");
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);) {
      text_ += line + "\n";
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  // Returns "user method resource code" of each line.
  static std::vector<std::string> Short(const std::vector<json>& lines) {
    std::vector<std::string> texts;
    for (const json& line : lines) {
      texts.push_back(absl::StrCat(line.value("user", "-"), " ", line.value("method", "-"), " ",
                                   line.value("resource", "-"), " ", line.value("code", "-")));
    }
    return texts;
  }

  std::string text_;
};

TEST_F(AuditTest, SaysWhoChangedWhatAndWhatWasRefused) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context(ann).get(), Request("a"), &job).ok());
  // Reading calls leave no record.
  v1::Job seen;
  ASSERT_TRUE(stub_->GetJob(Context(bob).get(), Named<v1::GetJobRequest>(job.name()), &seen).ok());
  EXPECT_EQ(CancelAs(bob, job.name()).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CancelAs("no-such-token-0123456789", job.name()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  v1::ListTokensResponse tokens;
  EXPECT_EQ(daemon_stub_->ListTokens(Context(bob).get(), {}, &tokens).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(CancelAs(ann, job.name()).ok());

  const std::vector<json> lines = Lines();
  EXPECT_THAT(Short(lines), ElementsAre("admin CreateToken tokens/ann OK", "admin CreateToken tokens/bob OK",
                                        absl::StrCat("ann CreateJob ", job.name(), " OK"),
                                        absl::StrCat("bob CancelJob ", job.name(), " PERMISSION_DENIED"),
                                        "- /tandem.v1.JobService/CancelJob - UNAUTHENTICATED",
                                        "bob ListTokens - PERMISSION_DENIED",
                                        absl::StrCat("ann CancelJob ", job.name(), " OK")));
  EXPECT_THAT(lines[2].value("peer", ""), StartsWith("ipv4:127.0.0.1:"));
  EXPECT_EQ(lines[2].value("call", "").size(), 16);
  EXPECT_EQ(lines[3].value("reason", ""), "NOT_YOUR_JOB");
  // The log has no secret, whoever sent it.
  for (const std::string& secret : {ann, bob, std::string(kToken), std::string("no-such-token-0123456789")}) {
    EXPECT_EQ(text_.find(secret), std::string::npos);
  }
}

// A large request is parsed later, in its user's turn.
TEST_F(AuditTest, SaysWhatALargeRequestIsAbout) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context(ann).get(), Request("a"), &job).ok());
  v1::CancelJobRequest cancel;
  cancel.set_name(job.name());
  cancel.GetReflection()->MutableUnknownFields(&cancel)->AddLengthDelimited(15, std::string(20'000, 'x'));
  v1::Job cancelled;
  EXPECT_EQ(stub_->CancelJob(Context(bob).get(), cancel, &cancelled).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(stub_->CancelJob(Context(ann).get(), cancel, &cancelled).ok());
  const std::vector<std::string> lines = Short(Lines());
  EXPECT_THAT(lines, ::testing::Contains(absl::StrCat("bob CancelJob ", job.name(), " PERMISSION_DENIED")));
  EXPECT_THAT(lines, ::testing::Contains(absl::StrCat("ann CancelJob ", job.name(), " OK")));
}

// A failed upload call keeps its data, so its record names the upload.
TEST_F(AuditTest, SaysOfWhatUploadABrokenCallIs) {
  v1::CreateUploadRequest create;
  create.mutable_upload()->set_manifest_sha256(std::string(32, 'x'));
  create.mutable_upload()->set_files(1);
  create.mutable_upload()->set_bytes(10);
  v1::Upload upload;
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context().get(), create, &upload).ok());
  const auto context = Context();
  v1::Upload progress;
  auto writer = dataset_stub_->UploadFiles(context.get(), &progress);
  v1::UploadFilesRequest piece;
  piece.set_name(upload.name());
  piece.mutable_file()->set_path("../out");
  writer->Write(piece);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // The record of a stream follows a moment after the client's answer.
  const auto is_written = [this] {
    return ContentOrEmpty(folder_->path() + "/audit.log").find("UploadFiles") != std::string::npos;
  };
  EXPECT_TRUE(Eventually(is_written));
  EXPECT_THAT(Short(Lines()),
              ElementsAre(absl::StrCat("admin CreateUpload ", upload.name(), " OK"),
                          absl::StrCat("admin UploadFiles ", upload.name(), " INVALID_ARGUMENT")));
}

TEST_F(AuditTest, AFloodOfStrangersLeavesFewLines) {
  for (int i = 0; i < 300; ++i) CancelAs("no-such-token-0123456789", "jobs/a");
  const std::string ann = MakeToken("ann");
  const std::vector<json> lines = Lines();
  int refused = 0;
  int64_t left_out = 0;
  for (const json& line : lines) {
    if (line.value("code", "") == "UNAUTHENTICATED") ++refused;
    if (line.value("event", "") == "left_out") left_out += line["count"].get<int64_t>();
  }
  EXPECT_LT(refused, 250);
  EXPECT_EQ(refused + left_out, 300);
  EXPECT_EQ(lines.back().value("event", ""), "left_out");
  EXPECT_EQ(lines[lines.size() - 2].value("method", ""), "CreateToken");
}

}  // namespace
}  // namespace tandem
