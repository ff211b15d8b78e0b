// Tests calls of the client that the daemon answers at once, calls that wait for a fetch, and broken streams.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"
#include "client/lib/resumable_stream.h"
#include "client/lib/while_fetching.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClientCallsTest, ListsUploadsCheckpointsAndSweepsPageAfterPage) {
  FakeDaemon daemon;
  const auto is_last = [](const auto& request, auto* response) {
    if (!request.page_token().empty()) return true;
    response->set_next_page_token("2");
    return false;
  };
  daemon.list_uploads = [&](const v1::ListUploadsRequest& request, v1::ListUploadsResponse* response) {
    response->add_uploads()->set_name(is_last(request, response) ? "uploads/b" : "uploads/a");
    return grpc::Status::OK;
  };
  daemon.list_checkpoints = [&](const v1::ListCheckpointsRequest& request,
                                v1::ListCheckpointsResponse* response) -> grpc::Status {
    if (request.job() != "jobs/a") return {grpc::StatusCode::NOT_FOUND, "no such job"};
    response->add_checkpoints()->set_step(is_last(request, response) ? 20 : 10);
    return grpc::Status::OK;
  };
  daemon.list_sweeps = [&](const v1::ListSweepsRequest& request, v1::ListSweepsResponse* response) {
    response->add_sweeps()->set_name(is_last(request, response) ? "sweeps/b" : "sweeps/a");
    return grpc::Status::OK;
  };
  const auto client = daemon.Connect();
  const absl::StatusOr<std::vector<v1::Upload>> uploads = client->ListUploads();
  ASSERT_TRUE(uploads.ok()) << uploads.status();
  ASSERT_EQ(uploads->size(), 2);
  EXPECT_EQ(uploads->back().name(), "uploads/b");
  const absl::StatusOr<std::vector<v1::Checkpoint>> checkpoints = client->ListCheckpoints("jobs/a");
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
  ASSERT_EQ(checkpoints->size(), 2);
  EXPECT_EQ(checkpoints->back().step(), 20);
  EXPECT_TRUE(absl::IsNotFound(client->ListCheckpoints("jobs/b").status()));
  EXPECT_EQ(client->ListSweeps(0)->size(), 2);
  EXPECT_EQ(client->ListSweeps(1)->size(), 1);
  // An error on any page is the list's error.
  daemon.list_uploads = nullptr;
  daemon.list_sweeps = nullptr;
  EXPECT_TRUE(absl::IsUnimplemented(client->ListUploads().status()));
  EXPECT_TRUE(absl::IsUnimplemented(client->ListSweeps(0).status()));
}

TEST(ClientCallsTest, ChangesNameTheirTargets) {
  FakeDaemon daemon;
  daemon.update_job = [](const v1::UpdateJobRequest& request, v1::Job* job) -> grpc::Status {
    if (request.update_mask().paths_size() != 1 || request.update_mask().paths(0) != "priority") {
      return {grpc::StatusCode::INVALID_ARGUMENT, "wrong mask"};
    }
    *job = request.job();
    return grpc::Status::OK;
  };
  std::vector<std::string> calls;
  const auto note = [&](const auto& request, v1::DeviceState state, v1::Device* device) {
    calls.push_back(request.ShortDebugString());
    device->set_name(request.name());
    device->set_state(state);
    return grpc::Status::OK;
  };
  daemon.drain_device = [&](const v1::DrainDeviceRequest& request, v1::Device* device) {
    return note(request, v1::DEVICE_STATE_DRAINED, device);
  };
  daemon.exclude_device = [&](const v1::ExcludeDeviceRequest& request, v1::Device* device) {
    return note(request, v1::DEVICE_STATE_EXCLUDED, device);
  };
  daemon.resume_device = [&](const v1::ResumeDeviceRequest& request, v1::Device* device) {
    return note(request, v1::DEVICE_STATE_ACTIVE, device);
  };
  daemon.delete_upload = [&](const v1::DeleteUploadRequest& request) {
    calls.push_back(request.name());
    return grpc::Status::OK;
  };
  daemon.delete_sweep = [&](const v1::DeleteSweepRequest& request) -> grpc::Status {
    calls.push_back(request.name());
    return {grpc::StatusCode::FAILED_PRECONDITION, "has not ended"};
  };
  const auto client = daemon.Connect();
  const absl::StatusOr<v1::Job> job = client->SetPriority("jobs/a", -5);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "jobs/a");
  EXPECT_EQ(job->priority(), -5);
  EXPECT_EQ(client->DrainDevice("devices/cpu:0", "a new fan")->state(), v1::DEVICE_STATE_DRAINED);
  EXPECT_EQ(client->ExcludeDevice("devices/cpu:1", "too hot")->state(), v1::DEVICE_STATE_EXCLUDED);
  EXPECT_EQ(client->ResumeDevice("devices/cpu:0")->state(), v1::DEVICE_STATE_ACTIVE);
  EXPECT_TRUE(client->DeleteUpload("uploads/u").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client->DeleteSweep("sweeps/s")));
  EXPECT_THAT(calls, ElementsAre("name: \"devices/cpu:0\" reason: \"a new fan\"",
                                 "name: \"devices/cpu:1\" reason: \"too hot\"", "name: \"devices/cpu:0\"",
                                 "uploads/u", "sweeps/s"));
}

// Keeps the progress of fetches, and stops the wait after `most` calls.
class CountingFetches : public FetchObserver {
 public:
  explicit CountingFetches(int most) : most_(most) {}
  bool OnFetching(const v1::FetchProgress& progress) override {
    seen.push_back(progress);
    return static_cast<int>(seen.size()) < most_;
  }
  void OnFetched() override { ++fetched; }
  std::vector<v1::FetchProgress> seen;
  int fetched = 0;

 private:
  const int most_;
};

TEST(FetchTest, APublicSetIsAwaited) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.fetch_dataset = [&](const v1::FetchDatasetRequest& request, v1::Dataset* dataset) {
    dataset->set_name("datasets/" + request.name());
    const int call = ++calls;
    dataset->set_state(call < 3 ? v1::DATASET_STATE_FETCHING : v1::DATASET_STATE_UNSPECIFIED);
    dataset->mutable_fetch()->set_bytes_done(call);
    return grpc::Status::OK;
  };
  const auto client = daemon.Connect();
  CountingFetches fetches(/*most=*/100);
  client->SetFetchObserver(&fetches);
  const absl::StatusOr<v1::Dataset> dataset = client->FetchDataset("mnist");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->name(), "datasets/mnist");
  ASSERT_EQ(fetches.seen.size(), 2);
  EXPECT_EQ(fetches.seen[1].bytes_done(), 2);
  EXPECT_EQ(fetches.fetched, 1);
  // A user who stops the wait gets the unfinished set.
  calls = 0;
  CountingFetches once(/*most=*/1);
  client->SetFetchObserver(&once);
  EXPECT_EQ(client->FetchDataset("mnist")->state(), v1::DATASET_STATE_FETCHING);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(once.fetched, 0);
  // Without an observer the client also waits.
  calls = 0;
  client->SetFetchObserver(nullptr);
  EXPECT_NE(client->FetchDataset("mnist")->state(), v1::DATASET_STATE_FETCHING);
  EXPECT_EQ(calls, 3);
}

// Returns the daemon's answer to a call whose data it fetches.
grpc::Status BeingFetched(const std::string& bytes_done) {
  google::rpc::ErrorInfo info;
  info.set_reason("DATA_BEING_FETCHED");
  info.set_domain("tandem");
  (*info.mutable_metadata())["bytes_done"] = bytes_done;
  (*info.mutable_metadata())["bytes_total"] = "70";
  (*info.mutable_metadata())["files_done"] = "1";
  (*info.mutable_metadata())["files_total"] = "4";
  return DetailedStatus(grpc::StatusCode::UNAVAILABLE, "the data is being fetched", info);
}

class QuietObserver : public StreamObserver {};

TEST(FetchTest, AStreamIsRepeatedUntilItsDataIsThere) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.predict = [&](const v1::PredictRequest&, grpc::ServerWriter<v1::PredictResponse>* writer) {
    if (++calls == 1) return BeingFetched("30");
    v1::PredictResponse response;
    response.add_predictions();
    writer->Write(response);
    return grpc::Status::OK;
  };
  const auto client = daemon.Connect();
  CountingFetches fetches(/*most=*/100);
  client->SetFetchObserver(&fetches);
  QuietObserver observer;
  int predictions = 0;
  const absl::Status status = client->Predict(
      {}, observer, [&](const v1::PredictResponse& response) { predictions += response.predictions_size(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(predictions, 1);
  EXPECT_EQ(fetches.seen.size(), 1);
}

TEST(FetchTest, ACallIsRepeatedUntilItsDataIsThere) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.create_job = [&](const v1::CreateJobRequest&, v1::Job* job) {
    const int call = ++calls;
    if (call == 1) return BeingFetched("30");
    // A number that cannot be read counts as unknown.
    if (call == 2) return BeingFetched("many");
    job->set_name("jobs/a");
    return grpc::Status::OK;
  };
  const auto client = daemon.Connect();
  CountingFetches fetches(/*most=*/100);
  client->SetFetchObserver(&fetches);
  const absl::StatusOr<v1::Job> job = client->CreateJob({}, "id", false);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(fetches.seen.size(), 2);
  EXPECT_EQ(fetches.seen[0].bytes_done(), 30);
  EXPECT_EQ(fetches.seen[0].bytes_total(), 70);
  EXPECT_EQ(fetches.seen[0].files_done(), 1);
  EXPECT_EQ(fetches.seen[0].files_total(), 4);
  EXPECT_EQ(fetches.seen[1].bytes_done(), 0);
  EXPECT_EQ(fetches.fetched, 1);
  // A user who stops the wait gets the daemon's answer.
  calls = 0;
  CountingFetches once(/*most=*/1);
  client->SetFetchObserver(&once);
  const absl::Status stopped = client->CreateJob({}, "id", false).status();
  EXPECT_TRUE(absl::IsUnavailable(stopped)) << stopped;
  EXPECT_TRUE(IsBeingFetched(stopped));
  EXPECT_EQ(calls, 1);
}

TEST(TimeoutTest, ADaemonThatReadsDataHasMoreTime) {
  // Each answer comes after the client's timeout.
  const auto late = [](const auto&, auto*) -> grpc::Status {
    absl::SleepFor(absl::Milliseconds(400));
    return grpc::Status::OK;
  };
  FakeDaemon daemon;
  daemon.create_job = late;
  daemon.resume_job = late;
  daemon.fork_job = late;
  daemon.create_sweep = late;
  daemon.describe_model = late;
  daemon.get_dataset = late;
  daemon.get_job = late;
  ConnectionOptions options;
  options.address = daemon.address();
  options.timeout = absl::Milliseconds(200);
  const std::unique_ptr<Client> client = *Client::Create(options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->GetJob("jobs/a").status()));
  EXPECT_TRUE(client->CreateJob({}, "", /*validate_only=*/false).ok());
  EXPECT_TRUE(client->ResumeJob("jobs/a").ok());
  EXPECT_TRUE(client->ForkJob({}).ok());
  EXPECT_TRUE(client->CreateSweep({}, "", /*validate_only=*/false).ok());
  EXPECT_TRUE(client->DescribeModel({}).ok());
  EXPECT_TRUE(client->GetDataset("datasets/a").ok());
}

TEST(ReadTest, AGapIsDataLoss) {
  FakeDaemon daemon;
  daemon.read_artifact = [](const v1::ReadArtifactRequest& request,
                            grpc::ServerWriter<v1::ReadArtifactResponse>* writer) {
    v1::ReadArtifactResponse piece;
    piece.set_offset(request.offset() + 1);
    piece.set_data("x");
    writer->Write(piece);
    return grpc::Status::OK;
  };
  daemon.read_log = [](const v1::ReadLogRequest& request, grpc::ServerWriter<v1::ReadLogResponse>* writer) {
    v1::ReadLogResponse piece;
    piece.set_offset(request.offset() + 2);
    piece.set_data("x");
    writer->Write(piece);
    return grpc::Status::OK;
  };
  const auto client = daemon.Connect();
  StreamObserver observer;
  const absl::Status artifact =
      client->ReadArtifact("jobs/a", "model.safetensors", 5, observer,
                           [](const v1::ReadArtifactResponse&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsDataLoss(artifact)) << artifact;
  EXPECT_THAT(std::string(artifact.message()), HasSubstr("byte 6 instead of byte 5"));
  const absl::Status log =
      client->ReadLog("jobs/a", 0, 0, false, observer, [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsDataLoss(log)) << log;
  EXPECT_THAT(std::string(log.message()), HasSubstr("byte 2 instead of byte 0"));
}

}  // namespace
}  // namespace tandem::client
