// Handlers read the database and files on the pool, never on the caller's thread, which is gRPC's.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/rpc/handlers.h"
#include "server/rpc/service_fixture.h"
#include "server/store/awaited.h"

namespace tandem {
namespace {

class BlockingTest : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    context_.lifecycle = &lifecycle_;
    context_.jobs = jobs_.get();
    context_.events = events_.get();
    context_.admission = &admission_;
    context_.files = files_.get();
    context_.pool = &idle_;
    context_.user_pool = &idle_for_users_;
  }

  // If no thread may read, the handler must not answer.
  template <typename Response, typename Request>
  void ExpectOnPool(void (*handler)(const RpcContext&, const Caller&, const Request&, Reply<Response>),
                    const Request& request) {
    auto answered = std::make_shared<bool>(false);
    handler(context_, Caller{"ann"}, request, [answered](absl::StatusOr<Response>) { *answered = true; });
    EXPECT_FALSE(*answered);
  }

  template <typename Response, typename Request>
  void ExpectStreamOnPool(rpc::Source<Response> (*handler)(const RpcContext&, const Caller&, const Request&),
                          const Request& request) {
    auto answered = std::make_shared<bool>(false);
    rpc::Source<Response> source = handler(context_, Caller{"ann"}, request);
    ASSERT_TRUE(source.ok()) << source.status();
    (*source)->Next([answered](auto) { *answered = true; });
    EXPECT_FALSE(*answered);
    (*source)->Cancel();
  }

  // Has no threads, so posted work never runs.
  FairPool idle_{0, 1};
  FairPool idle_for_users_{0, 1};
  RpcContext context_;
};

TEST_F(BlockingTest, ReadsOnThePool) {
  const std::string job = Create("a");
  ExpectOnPool(&rpc::GetJob, Named<v1::GetJobRequest>(job));
  ExpectOnPool(&rpc::GetJobHistory, Named<v1::GetJobHistoryRequest>(job));
  ExpectOnPool(&rpc::ListJobs, v1::ListJobsRequest());
  ExpectOnPool(&rpc::CreateJob, Request("b", "r1"));
  ExpectOnPool(&rpc::CancelJob, Named<v1::CancelJobRequest>(job));
  ExpectStreamOnPool(&rpc::ReadLog, Named<v1::ReadLogRequest>(job));
  v1::ReadArtifactRequest artifact;
  artifact.set_name(job);
  artifact.set_artifact("model.safetensors");
  ExpectStreamOnPool(&rpc::ReadArtifact, artifact);
}

// Reading a data set may take long, and must not use up the threads of all calls.
TEST_F(BlockingTest, ReadsDataSetsOnTheUsersPool) {
  FairPool pool(1, 1);
  context_.pool = &pool;
  ExpectOnPool(&rpc::ListDatasets, v1::ListDatasetsRequest());
  ExpectOnPool(&rpc::GetDataset, Named<v1::GetDatasetRequest>("mnist"));
  ExpectOnPool(&rpc::FetchDataset, Named<v1::FetchDatasetRequest>("mnist"));
  ExpectOnPool(&rpc::ListUploads, v1::ListUploadsRequest());
  ExpectOnPool(&rpc::GetUpload, Named<v1::GetUploadRequest>("uploads/" + std::string(32, 'a')));
  rpc::Source<v1::EvaluateResponse> source =
      rpc::Evaluate(context_, Caller{"ann"}, Named<v1::EvaluateRequest>(Create("a")));
  ASSERT_TRUE(source.ok()) << source.status();
  auto answered = std::make_shared<bool>(false);
  (*source)->Next([answered](auto) { *answered = true; });
  // The single thread has then finished all earlier work.
  absl::Notification done;
  pool.Post("ann", [&done] { done.Notify(); });
  done.WaitForNotification();
  EXPECT_FALSE(*answered);
}

TEST_F(BlockingTest, AsksGpusOnThePool) {
  context_.scheduler = scheduler_.get();
  bool asked = false;
  context_.refresh_gpu = [&asked](v1::GpuStatus*) { asked = true; };
  ExpectOnPool(&rpc::ListDevices, v1::ListDevicesRequest());
  EXPECT_FALSE(asked);
}

TEST_F(BlockingTest, AStreamThatIsCancelledBeforeItsSourceIsThereEnds) {
  FairPool pool(1, 1);
  context_.pool = &pool;
  v1::ReadLogRequest log;
  log.set_name(Create("a"));
  log.set_follow(true);
  rpc::Source<v1::ReadLogResponse> source = rpc::ReadLog(context_, Caller{"ann"}, log);
  ASSERT_TRUE(source.ok()) << source.status();
  (*source)->Cancel();
  Awaited<absl::Status> ended;
  (*source)->Next([done = ended.Done()](auto result) { done(result.status()); });
  const absl::Status status = ended.Get();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  pool.Stop();
}

}  // namespace
}  // namespace tandem
