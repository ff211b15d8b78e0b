// Handlers read the database and files on the pool, never on the caller's thread, which is gRPC's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

#include "absl/synchronization/notification.h"
#include "server/rpc/handlers.h"
#include "server/rpc/service_fixture.h"
#include "server/store/awaited.h"

namespace tandem {
namespace {

using grpc::StatusCode;

class BlockingTest : public ServiceFixture {
 protected:
  // If no thread may read, the handler must not answer.
  template <typename Response, typename Request, typename... Given>
  void ExpectOnPool(void (*handler)(const Caller&, const Request&, Reply<Response>, Given...),
                    const Request& request, std::type_identity_t<Given>... given) {
    auto answered = std::make_shared<bool>(false);
    handler(
        Caller{"ann"}, request, [answered](absl::StatusOr<Response>) { *answered = true; }, given...);
    EXPECT_FALSE(*answered);
  }

  template <typename Response, typename Request, typename... Given>
  void ExpectStreamOnPool(rpc::Source<Response> (*handler)(const Caller&, const Request&, Given...),
                          const Request& request, std::type_identity_t<Given>... given) {
    auto answered = std::make_shared<bool>(false);
    rpc::Source<Response> source = handler(Caller{"ann"}, request, given...);
    ASSERT_TRUE(source.ok()) << source.status();
    (*source)->Next([answered](auto) { *answered = true; });
    EXPECT_FALSE(*answered);
    (*source)->Cancel();
  }

  // Takes all threads of the administrator and of "ann" in this pool until the returned object is notified.
  // `threads` is the pool's limit for a user.
  static std::shared_ptr<absl::Notification> Occupy(FairPool* pool, int threads) {
    auto end = std::make_shared<absl::Notification>();
    for (const char* const user : {kAdminUser, "ann"}) {
      for (int i = 0; i < threads; ++i) pool->Post(user, [end] { end->WaitForNotification(); });
    }
    return end;
  }

  // The call must end with this code, before its deadline. The handler's work must find the code.
  template <typename Stub, typename Request, typename Response>
  static void ExpectAnswer(const std::unique_ptr<Stub>& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                           const Request& request, StatusCode code = StatusCode::OK,
                           const std::string& token = kToken) {
    Response response;
    const grpc::Status status = (stub.get()->*method)(Context(token).get(), request, &response);
    EXPECT_EQ(status.error_code(), code) << request.GetTypeName() << ": " << status.error_message();
  }

  // The same for a method that streams its responses.
  template <typename Stub, typename Request, typename Response>
  static void ExpectEnd(const std::unique_ptr<Stub>& stub,
                        std::unique_ptr<grpc::ClientReader<Response>> (Stub::*method)(grpc::ClientContext*,
                                                                                      const Request&),
                        const Request& request, StatusCode code) {
    const auto context = Context();
    const auto reader = (stub.get()->*method)(context.get(), request);
    Response response;
    while (reader->Read(&response)) {
    }
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), code) << request.GetTypeName() << ": " << status.error_message();
  }

  // Names of a job, sweep and upload that do not exist.
  static constexpr char kNoJob[] = "jobs/none-aaaaaa";
  static constexpr char kNoSweep[] = "sweeps/none-aaaaaa";
  static constexpr char kNoUpload[] = "uploads/none";

  // Has no threads, so posted work never runs.
  FairPool idle_{0, 1};
};

TEST_F(BlockingTest, ReadsOnThePool) {
  const std::string job = Create("a");
  ExpectOnPool(&rpc::GetJob, Named<v1::GetJobRequest>(job), jobs_.get(), &idle_);
  ExpectOnPool(&rpc::GetJobHistory, Named<v1::GetJobHistoryRequest>(job), jobs_.get(), &idle_);
  ExpectOnPool(&rpc::ListJobs, v1::ListJobsRequest(), jobs_.get(), &idle_);
  ExpectOnPool(&rpc::CreateJob, Request("b", "r1"), jobs_.get(), &lifecycle_, nullptr, uploads_.get(),
               &idle_);
  ExpectOnPool(&rpc::CancelJob, Named<v1::CancelJobRequest>(job), jobs_.get(), &idle_);
  ExpectStreamOnPool(&rpc::ReadLog, Named<v1::ReadLogRequest>(job), jobs_.get(), events_.get(), files_.get(),
                     &idle_);
  v1::ReadArtifactRequest artifact;
  artifact.set_name(job);
  artifact.set_artifact("model.safetensors");
  ExpectStreamOnPool(&rpc::ReadArtifact, artifact, jobs_.get(), &lifecycle_, nullptr, pool_.get(), &idle_);
  ExpectOnPool(&rpc::ListDatasets, v1::ListDatasetsRequest(), datasets_.get(), &idle_);
  ExpectOnPool(&rpc::GetDataset, Named<v1::GetDatasetRequest>("mnist"), datasets_.get(), &idle_);
  ExpectOnPool(&rpc::FetchDataset, Named<v1::FetchDatasetRequest>("mnist"), datasets_.get(), nullptr, &idle_);
  ExpectOnPool(&rpc::ListUploads, v1::ListUploadsRequest(), uploads_.get(), &idle_);
  ExpectOnPool(&rpc::GetUpload, Named<v1::GetUploadRequest>("uploads/" + std::string(32, 'a')),
               uploads_.get(), &idle_);
  ExpectStreamOnPool(&rpc::Evaluate, Named<v1::EvaluateRequest>(job), jobs_.get(), scheduler_.get(),
                     models_.get(), datasets_.get(), nullptr, &idle_);
  ExpectStreamOnPool(&rpc::ExportModel, Named<v1::ExportModelRequest>(job), jobs_.get(), scheduler_.get(),
                     models_.get(), &idle_);
  auto predict = Named<v1::PredictRequest>(job);
  predict.set_split(v1::DATASET_SPLIT_TRAINING);
  ExpectStreamOnPool(&rpc::Predict, predict, jobs_.get(), scheduler_.get(), models_.get(), datasets_.get(),
                     nullptr, pool_.get(), &idle_);
}

TEST_F(BlockingTest, AnswersShortReadsDuringLongWork) {
  const std::string job = Create("a");
  // An administrator's change of a job needs no thread.
  const std::string ann = MakeToken("ann");
  const auto end = Occupy(user_pool_.get(), 2);
  ExpectAnswer(stub_, &v1::JobService::Stub::GetJob, Named<v1::GetJobRequest>(job));
  ExpectAnswer(stub_, &v1::JobService::Stub::GetJobHistory, Named<v1::GetJobHistoryRequest>(job));
  ExpectAnswer(stub_, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest());
  ExpectAnswer(sweep_stub_, &v1::SweepService::Stub::ListSweeps, v1::ListSweepsRequest());
  ExpectAnswer(daemon_stub_, &v1::DaemonService::Stub::ListQueue, v1::ListQueueRequest());
  ExpectAnswer(daemon_stub_, &v1::DaemonService::Stub::ListBackups, v1::ListBackupsRequest());
  v1::ListCheckpointsRequest checkpoints;
  checkpoints.set_job(job);
  ExpectAnswer(stub_, &v1::JobService::Stub::ListCheckpoints, checkpoints);
  v1::UpdateJobRequest update;
  update.mutable_job()->set_name(kNoJob);
  update.mutable_update_mask()->add_paths("priority");
  ExpectAnswer(stub_, &v1::JobService::Stub::UpdateJob, update, StatusCode::NOT_FOUND, ann);
  ExpectAnswer(stub_, &v1::JobService::Stub::CancelJob, Named<v1::CancelJobRequest>(kNoJob),
               StatusCode::NOT_FOUND, ann);
  ExpectAnswer(stub_, &v1::JobService::Stub::PauseJob, Named<v1::PauseJobRequest>(kNoJob),
               StatusCode::NOT_FOUND, ann);
  ExpectAnswer(stub_, &v1::JobService::Stub::DeleteJob, Named<v1::DeleteJobRequest>(kNoJob),
               StatusCode::NOT_FOUND, ann);
  ExpectAnswer(sweep_stub_, &v1::SweepService::Stub::GetSweep, Named<v1::GetSweepRequest>(kNoSweep),
               StatusCode::NOT_FOUND);
  ExpectAnswer(sweep_stub_, &v1::SweepService::Stub::CancelSweep, Named<v1::CancelSweepRequest>(kNoSweep),
               StatusCode::NOT_FOUND);
  ExpectAnswer(sweep_stub_, &v1::SweepService::Stub::DeleteSweep, Named<v1::DeleteSweepRequest>(kNoSweep),
               StatusCode::NOT_FOUND);
  ExpectEnd(stub_, &v1::JobService::Stub::ReadLog, Named<v1::ReadLogRequest>(kNoJob), StatusCode::NOT_FOUND);
  auto predict = Named<v1::PredictRequest>(kNoJob);
  predict.add_inputs()->set_csv("1");
  ExpectEnd(model_stub_, &v1::ModelService::Stub::Predict, predict, StatusCode::NOT_FOUND);
  ExpectEnd(model_stub_, &v1::ModelService::Stub::ExportModel, Named<v1::ExportModelRequest>(kNoJob),
            StatusCode::NOT_FOUND);
  end->Notify();
}

// Reading a data set may take long, and must not use up the threads of short reads.
TEST_F(BlockingTest, DoesLongWorkOnTheUsersPool) {
  const auto end = Occupy(pool_.get(), 1);
  ExpectAnswer(stub_, &v1::JobService::Stub::CreateJob, Request("b", "r1"));
  ExpectAnswer(stub_, &v1::JobService::Stub::ParseJob, v1::ParseJobRequest());
  ExpectAnswer(sweep_stub_, &v1::SweepService::Stub::ParseSweep, v1::ParseSweepRequest());
  ExpectAnswer(daemon_stub_, &v1::DaemonService::Stub::ListDatasets, v1::ListDatasetsRequest());
  ExpectAnswer(daemon_stub_, &v1::DaemonService::Stub::GetDataset, Named<v1::GetDatasetRequest>("mnist"),
               StatusCode::NOT_FOUND);
  ExpectAnswer(dataset_stub_, &v1::DatasetService::Stub::FetchDataset,
               Named<v1::FetchDatasetRequest>("mnist"), StatusCode::FAILED_PRECONDITION);
  ExpectAnswer(dataset_stub_, &v1::DatasetService::Stub::ListUploads, v1::ListUploadsRequest());
  ExpectAnswer(dataset_stub_, &v1::DatasetService::Stub::GetUpload, Named<v1::GetUploadRequest>(kNoUpload),
               StatusCode::NOT_FOUND);
  ExpectAnswer(dataset_stub_, &v1::DatasetService::Stub::DeleteUpload,
               Named<v1::DeleteUploadRequest>(kNoUpload), StatusCode::NOT_FOUND);
  ExpectAnswer(dataset_stub_, &v1::DatasetService::Stub::DeleteDataset,
               Named<v1::DeleteDatasetRequest>("mnist"), StatusCode::NOT_FOUND);
  ExpectAnswer(stub_, &v1::JobService::Stub::ResumeJob, Named<v1::ResumeJobRequest>(kNoJob),
               StatusCode::NOT_FOUND);
  ExpectAnswer(stub_, &v1::JobService::Stub::ForkJob, Named<v1::ForkJobRequest>(kNoJob),
               StatusCode::NOT_FOUND);
  // Only the work finds that the model is missing.
  ExpectAnswer(model_stub_, &v1::ModelService::Stub::DescribeModel, v1::DescribeModelRequest(),
               StatusCode::INVALID_ARGUMENT);
  auto artifact = Named<v1::ReadArtifactRequest>(kNoJob);
  artifact.set_artifact("model.safetensors");
  ExpectEnd(stub_, &v1::JobService::Stub::ReadArtifact, artifact, StatusCode::NOT_FOUND);
  ExpectEnd(model_stub_, &v1::ModelService::Stub::Evaluate, Named<v1::EvaluateRequest>(kNoJob),
            StatusCode::NOT_FOUND);
  auto predict = Named<v1::PredictRequest>(kNoJob);
  predict.set_split(v1::DATASET_SPLIT_TRAINING);
  ExpectEnd(model_stub_, &v1::ModelService::Stub::Predict, predict, StatusCode::NOT_FOUND);
  end->Notify();
}

TEST_F(BlockingTest, AsksGpusOnThePool) {
  bool asked = false;
  ExpectOnPool(
      &rpc::ListDevices, v1::ListDevicesRequest(), scheduler_.get(),
      [&asked](v1::GpuStatus*) { asked = true; }, nullptr, &idle_);
  EXPECT_FALSE(asked);
}

TEST_F(BlockingTest, AStreamThatIsCancelledBeforeItsSourceIsThereEnds) {
  FairPool pool(1, 1);
  v1::ReadLogRequest log;
  log.set_name(Create("a"));
  log.set_follow(true);
  rpc::Source<v1::ReadLogResponse> source =
      rpc::ReadLog(Caller{"ann"}, log, jobs_.get(), events_.get(), files_.get(), &pool);
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
