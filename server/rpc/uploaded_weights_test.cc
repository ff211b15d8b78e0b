#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/datasets/sample_upload.h"
#include "server/rpc/service_fixture.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

// Jobs whose initial weights are a file of an upload.
class UploadedWeightsTest : public ServiceFixture {
 protected:
  // Uploads the sample's first `pieces` pieces; -1: all. Returns the upload's name.
  std::string Upload(int pieces = -1, const std::string& token = kToken) {
    v1::CreateUploadRequest request;
    *request.mutable_upload() = sample_.Declaration();
    v1::Upload upload;
    EXPECT_TRUE(dataset_stub_->CreateUpload(Context(token).get(), request, &upload).ok());
    const std::unique_ptr<grpc::ClientContext> context = Context(token);
    auto writer = dataset_stub_->UploadFiles(context.get(), &upload);
    std::vector<v1::UploadFilesRequest> sent = sample_.Pieces(upload);
    sent[0].set_name(upload.name());
    if (pieces >= 0) sent.resize(pieces);
    for (const v1::UploadFilesRequest& piece : sent) EXPECT_TRUE(writer->Write(piece));
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    return upload.name();
  }
  grpc::Status Submit(const std::string& file, v1::Job* job, const std::string& token = kToken,
                      const std::string& request_id = "", bool validate_only = false) {
    v1::CreateJobRequest request = Request("next", request_id);
    request.mutable_spec()->mutable_initial_weights()->set_file(file);
    request.set_validate_only(validate_only);
    return stub_->CreateJob(Context(token).get(), request, job);
  }
  void DeleteUpload(const std::string& name) {
    google::protobuf::Empty empty;
    const grpc::Status deleted =
        dataset_stub_->DeleteUpload(Context().get(), Named<v1::DeleteUploadRequest>(name), &empty);
    EXPECT_TRUE(deleted.ok()) << deleted.error_message();
  }
  std::string KeptBy(const v1::Job& job) const {
    std::ifstream file(KeptWeightsPath(jobs_->FolderOf(Id(job.name()))));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Returns the number of kept files of all jobs.
  int Kept() const {
    const std::string folder = KeptWeightsFolder(std::filesystem::path(jobs_->FolderOf("a")).parent_path());
    if (!std::filesystem::exists(folder)) return 0;
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  const SampleUpload sample_{{{"a/weights.safetensors", "weights"}, {"b.safetensors", "others"}}};
};

TEST_F(UploadedWeightsTest, AreKeptBeforeTheJobExists) {
  const std::string upload = Upload();
  v1::Job job;
  const grpc::Status created = Submit(upload + "/a/weights.safetensors", &job);
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_EQ(KeptBy(job), "weights");
  EXPECT_FALSE(job.has_last_checkpoint());
  EXPECT_FALSE(job.has_forked_from());
  EXPECT_EQ(job.spec().initial_weights().file(), upload + "/a/weights.safetensors");
  DeleteUpload(upload);
  EXPECT_EQ(KeptBy(job), "weights");
  EXPECT_EQ(Kept(), 1);
}

TEST_F(UploadedWeightsTest, ARepeatedRequestIsTheSameJob) {
  const std::string upload = Upload();
  v1::Job first, second;
  ASSERT_TRUE(Submit(upload + "/b.safetensors", &first, kToken, "again").ok());
  DeleteUpload(upload);
  const grpc::Status repeated = Submit(upload + "/b.safetensors", &second, kToken, "again");
  ASSERT_TRUE(repeated.ok()) << repeated.error_message();
  EXPECT_EQ(first.name(), second.name());
  EXPECT_EQ(Kept(), 1);
}

TEST_F(UploadedWeightsTest, OnlyAWholeUploadHasFiles) {
  const std::string upload = Upload(/*pieces=*/1);
  const auto refuse = [&](const std::string& file, const std::string& why) {
    v1::Job job;
    const grpc::Status refused = Submit(file, &job);
    EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT) << file;
    EXPECT_THAT(refused.error_message(), HasSubstr("spec.initial_weights.file"));
    EXPECT_THAT(refused.error_message(), HasSubstr(why));
    EXPECT_EQ(Kept(), 0) << file;
  };
  refuse(upload + "/b.safetensors", "only 0 of the upload's 2 files have arrived");
  ASSERT_EQ(Upload(), upload);
  refuse(upload + "/c.safetensors", "the upload has no such file");
  refuse(upload + "/a", "the upload has no such file");
  refuse(upload + "/../../tandem.db", "has the part '..'");
  refuse(upload + "/", "is empty");
  refuse("uploads/0123456789abcdef/b.safetensors", "there is no such upload");
  v1::Job job;
  EXPECT_TRUE(Submit(upload + "/b.safetensors", &job, kToken, "", /*validate_only=*/true).ok());
  EXPECT_EQ(Kept(), 0);
}

TEST_F(UploadedWeightsTest, AreOfTheOwnUploadUnlessTheCallerIsAnAdministrator) {
  const std::string ann = MakeToken("ann"), bob = MakeToken("bob");
  const std::string upload = Upload(/*pieces=*/-1, ann);
  v1::Job job;
  for (const bool validate_only : {true, false}) {
    const grpc::Status refused = Submit(upload + "/b.safetensors", &job, bob, "", validate_only);
    EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(refused.error_message(), HasSubstr("it belongs to \"ann\""));
    EXPECT_THAT(refused.error_details(), HasSubstr("NOT_YOUR_UPLOAD"));
  }
  EXPECT_EQ(Kept(), 0);
  EXPECT_TRUE(Submit(upload + "/b.safetensors", &job, ann).ok());
  EXPECT_TRUE(Submit(upload + "/b.safetensors", &job).ok());
  EXPECT_EQ(Kept(), 2);
}

// As after a restoration of a database without the files.
TEST_F(UploadedWeightsTest, AJobWithoutItsFileIsNotResumed) {
  v1::Job job;
  ASSERT_TRUE(Submit(Upload() + "/b.safetensors", &job).ok());
  workers_.AwaitStarted(Id(job.name()));
  Report(job.name(), {Started(1)});
  Finish(job.name(), 2, v1::JOB_STATE_FAILED);
  const std::string kept = KeptWeightsPath(jobs_->FolderOf(Id(job.name())));
  std::filesystem::rename(kept, kept + ".aside");
  v1::Job resumed;
  const auto resume = [&] {
    return stub_->ResumeJob(Context().get(), Named<v1::ResumeJobRequest>(job.name()), &resumed);
  };
  const grpc::Status refused = resume();
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("submit a new job with the file"));
  EXPECT_THAT(refused.error_details(), HasSubstr("INITIAL_WEIGHTS_DELETED"));
  std::filesystem::rename(kept + ".aside", kept);
  const grpc::Status again = resume();
  EXPECT_TRUE(again.ok()) << again.error_message();
}

// Returns a sweep over two seeds, from these weights.
v1::CreateSweepRequest SweepOf(const v1::JobSpec& base, const std::string& file) {
  v1::CreateSweepRequest request;
  *request.mutable_sweep()->mutable_base() = base;
  request.mutable_sweep()->mutable_base()->mutable_initial_weights()->set_file(file);
  v1::SweepGridField& axis = *request.mutable_sweep()->add_grid();
  axis.set_field("training.seed");
  axis.add_values()->set_number_value(1);
  axis.add_values()->set_number_value(2);
  return request;
}

TEST_F(UploadedWeightsTest, EachJobOfASweepKeepsTheFile) {
  const std::string upload = Upload();
  v1::CreateSweepRequest request = SweepOf(Request("next").spec(), upload + "/b.safetensors");
  request.set_request_id("again");
  v1::Sweep sweep, repeated;
  request.set_validate_only(true);
  EXPECT_TRUE(sweep_stub_->CreateSweep(Context().get(), request, &sweep).ok());
  EXPECT_EQ(Kept(), 0);
  request.set_validate_only(false);
  const grpc::Status created = sweep_stub_->CreateSweep(Context().get(), request, &sweep);
  ASSERT_TRUE(created.ok()) << created.error_message();
  DeleteUpload(upload);
  ASSERT_EQ(sweep.results_size(), 2);
  EXPECT_NE(sweep.results(0).job(), sweep.results(1).job());
  for (const v1::SweepResult& result : sweep.results()) {
    v1::Job job;
    ASSERT_TRUE(stub_->GetJob(Context().get(), Named<v1::GetJobRequest>(result.job()), &job).ok());
    EXPECT_EQ(KeptBy(job), "others");
    EXPECT_EQ(job.spec().initial_weights().file(), upload + "/b.safetensors");
    EXPECT_EQ(job.sweep(), sweep.name());
  }
  const grpc::Status again = sweep_stub_->CreateSweep(Context().get(), request, &repeated);
  ASSERT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ(repeated.name(), sweep.name());
  EXPECT_EQ(Kept(), 2);
}

TEST_F(UploadedWeightsTest, ARefusedSweepKeepsNothing) {
  const std::string upload = Upload();
  v1::CreateSweepRequest request = SweepOf(Request("next").spec(), upload + "/c.safetensors");
  v1::Sweep sweep;
  grpc::Status refused = sweep_stub_->CreateSweep(Context().get(), request, &sweep);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("sweep.base.initial_weights.file"));
  EXPECT_THAT(refused.error_message(), HasSubstr("the upload has no such file"));
  // The second job has no file.
  request = SweepOf(Request("next").spec(), upload + "/b.safetensors");
  v1::SweepGridField& axis = *request.mutable_sweep()->mutable_grid(0);
  axis.set_field("initial_weights.file");
  axis.mutable_values(0)->set_string_value(upload + "/b.safetensors");
  axis.mutable_values(1)->set_string_value(upload + "/c.safetensors");
  refused = sweep_stub_->CreateSweep(Context().get(), request, &sweep);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT) << refused.error_message();
  EXPECT_EQ(Kept(), 0);
  // Each job has a file of its own.
  axis.mutable_values(1)->set_string_value(upload + "/a/weights.safetensors");
  const grpc::Status created = sweep_stub_->CreateSweep(Context().get(), request, &sweep);
  ASSERT_TRUE(created.ok()) << created.error_message();
  v1::Job job;
  ASSERT_TRUE(stub_->GetJob(Context().get(), Named<v1::GetJobRequest>(sweep.results(1).job()), &job).ok());
  EXPECT_EQ(KeptBy(job), "weights");
}

// Each reservation is within the limit; both jobs together are not.
TEST_F(UploadedWeightsTest, ASweepBeyondTheQuotaKeepsNothing) {
  SetQuota({.max_queued_jobs = 1});
  const std::string ann = MakeToken("ann");
  const std::string upload = Upload(/*pieces=*/-1, ann);
  const v1::CreateSweepRequest request = SweepOf(Request("next").spec(), upload + "/b.safetensors");
  v1::Sweep sweep;
  const grpc::Status refused = sweep_stub_->CreateSweep(Context(ann).get(), request, &sweep);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_EQ(Kept(), 0);
}

}  // namespace
}  // namespace tandem
