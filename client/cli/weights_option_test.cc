// Initial weights of the user's own machine: --weights.
#include <string>

#include "client/cli/app_fixture.h"
#include "client/lib/fake_daemon.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class WeightsTest : public AppFixture {
 protected:
  WeightsTest() {
    daemon_.create_upload = [this](const v1::CreateUploadRequest& request, v1::Upload* response) {
      *response = request.upload();
      response->set_name("uploads/u1");
      response->set_files_received(sent_.empty() ? 0 : 1);
      return grpc::Status::OK;
    };
    daemon_.upload_files = [this](grpc::ServerReader<v1::UploadFilesRequest>* reader, v1::Upload* response) {
      v1::UploadFilesRequest piece;
      while (reader->Read(&piece)) {
        if (piece.has_file()) sent_ += piece.file().path() + ":";
        sent_ += piece.data();
      }
      response->set_name("uploads/u1");
      response->set_files(1);
      response->set_files_received(1);
      return grpc::Status::OK;
    };
    daemon_.create_job = [this](const v1::CreateJobRequest& request, v1::Job* job) {
      request_ = request;
      *job = Job("jobs/lenet-1", v1::JOB_STATE_QUEUED);
      return grpc::Status::OK;
    };
    daemon_.create_sweep = [this](const v1::CreateSweepRequest& request, v1::Sweep* sweep) {
      sweep_ = request;
      sweep->set_name("sweeps/rates-1");
      return grpc::Status::OK;
    };
  }

  std::string sent_;
  v1::CreateJobRequest request_;
  v1::CreateSweepRequest sweep_;
  const std::string file_ = Write("job.yaml", "name: x\ninitial_weights: {except_layers: [fc]}\n");
  const std::string weights_ = Write("model.safetensors", "weights");
};

TEST_F(WeightsTest, AreUploadedAndNamedInTheJob) {
  EXPECT_EQ(Run({"submit", file_, "--weights", weights_}), 0) << terminal_.err();
  EXPECT_EQ(sent_, "model.safetensors:weights");
  EXPECT_EQ(request_.spec().initial_weights().file(), "uploads/u1/model.safetensors");
  EXPECT_EQ(request_.spec().initial_weights().except_layers(0), "fc");
  EXPECT_FALSE(request_.validate_only());
  EXPECT_THAT(terminal_.err(), HasSubstr("uploading 1 file"));
  // The daemon has the upload.
  EXPECT_EQ(Run({"validate", file_, "--weights", weights_}), 0) << terminal_.err();
  EXPECT_EQ(sent_, "model.safetensors:weights");
  EXPECT_EQ(request_.spec().initial_weights().file(), "uploads/u1/model.safetensors");
  EXPECT_TRUE(request_.validate_only());
}

TEST_F(WeightsTest, AreThoseOfAllJobsOfASweep) {
  const std::vector<std::string> command = {"sweep", file_, "--grid", "training.seed=1,2", "--weights"};
  const auto with = [&](const std::string& weights) {
    std::vector<std::string> whole = command;
    whole.push_back(weights);
    return whole;
  };
  EXPECT_EQ(Run(with(weights_)), 0) << terminal_.err();
  EXPECT_EQ(sent_, "model.safetensors:weights");
  EXPECT_EQ(sweep_.sweep().base().initial_weights().file(), "uploads/u1/model.safetensors");
  EXPECT_EQ(sweep_.sweep().base().initial_weights().except_layers(0), "fc");
  EXPECT_EQ(RunAnew(with(folder_ + "/none.safetensors")), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--weights: "));
}

TEST_F(WeightsTest, AUrlIsLeftToTheDaemon) {
  const std::string pinned = "https://example.com/m.safetensors#sha256=" + std::string(64, '0');
  for (const std::string& url :
       {std::string("https://example.com/m.safetensors"), pinned, std::string("s3://bucket/m.safetensors")}) {
    EXPECT_EQ(RunAnew({"submit", file_, "--weights", url}), 0) << terminal_.err();
    EXPECT_EQ(request_.spec().initial_weights().file(), url);
    EXPECT_EQ(request_.spec().initial_weights().except_layers(0), "fc");
    EXPECT_EQ(RunAnew({"submit", file_, "--set", "initial_weights.file=" + url}), 0) << terminal_.err();
    EXPECT_EQ(request_.spec().initial_weights().file(), url);
    EXPECT_EQ(RunAnew({"sweep", file_, "--grid", "training.seed=1,2", "--weights", url}), 0);
    EXPECT_EQ(sweep_.sweep().base().initial_weights().file(), url);
  }
  EXPECT_EQ(sent_, "");
}

TEST_F(WeightsTest, HaveOneSource) {
  const std::string by_file = Write("file.yaml", "name: x\ninitial_weights: {file: other.safetensors}\n");
  EXPECT_EQ(Run({"submit", by_file, "--weights", weights_}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("--weights: is " + weights_ + ", but " + by_file +
                        " has initial_weights.file, other.safetensors; give only one of them\n"));
  EXPECT_EQ(
      Run({"validate", file_, "--weights", weights_, "--set", "initial_weights.artifact.job=jobs/lenet-1"}),
      2);
  EXPECT_THAT(terminal_.err(), HasSubstr("has initial_weights.artifact, of jobs/lenet-1"));
  EXPECT_EQ(Run({"submit", file_, "--weights", "/no/model.safetensors"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--weights: there is no file /no/model.safetensors"));
  EXPECT_EQ(sent_, "");
}

TEST_F(WeightsTest, OfAnotherModelAreAFaultOfTheOption) {
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return client::BadRequestStatus("1 field", {{"spec.initial_weights.file", "lacks fc.weight"}});
  };
  EXPECT_EQ(Run({"submit", file_, "--weights", weights_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--weights: lacks fc.weight\n"));
}

}  // namespace
}  // namespace tandem::cli
