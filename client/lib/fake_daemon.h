#ifndef TANDEM_CLIENT_LIB_FAKE_DAEMON_H_
#define TANDEM_CLIENT_LIB_FAKE_DAEMON_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/lib/client.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tandem/v1/model_service.grpc.pb.h"
#include "tandem/v1/sweep_service.grpc.pb.h"

namespace tandem::client {

// A daemon for tests, in this process, on loopback. Each method calls the test's function of the same name,
// on a thread of gRPC. Set the functions before the first call. A method without a function returns
// UNIMPLEMENTED.
class FakeDaemon : public v1::JobService::Service,
                   public v1::ModelService::Service,
                   public v1::DatasetService::Service,
                   public v1::SweepService::Service,
                   public v1::DaemonService::Service {
 public:
  // Listens on `port`, or on a free port if it is 0. `set_up`, if given, sets functions before the first call
  // arrives.
  explicit FakeDaemon(
      int port = 0,
      const std::shared_ptr<grpc::ServerCredentials>& credentials = grpc::InsecureServerCredentials(),
      const std::function<void(FakeDaemon&)>& set_up = {});
  ~FakeDaemon() override;

  // Returns a client of this daemon, without a token.
  std::unique_ptr<Client> Connect() const;
  // Returns "127.0.0.1:PORT".
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  // If not empty, every call must have this token.
  std::string token;

  std::function<grpc::Status(const v1::CreateJobRequest&, v1::Job*)> create_job;
  std::function<grpc::Status(const v1::GetJobRequest&, v1::Job*)> get_job;
  std::function<grpc::Status(const v1::GetJobHistoryRequest&, v1::GetJobHistoryResponse*)> get_job_history;
  std::function<grpc::Status(const v1::ListJobsRequest&, v1::ListJobsResponse*)> list_jobs;
  std::function<grpc::Status(const v1::CancelJobRequest&, v1::Job*)> cancel_job;
  std::function<grpc::Status(const v1::UpdateJobRequest&, v1::Job*)> update_job;
  std::function<grpc::Status(const v1::PauseJobRequest&, v1::Job*)> pause_job;
  std::function<grpc::Status(const v1::ResumeJobRequest&, v1::Job*)> resume_job;
  std::function<grpc::Status(const v1::ForkJobRequest&, v1::Job*)> fork_job;
  std::function<grpc::Status(const v1::ListCheckpointsRequest&, v1::ListCheckpointsResponse*)>
      list_checkpoints;
  std::function<grpc::Status(const v1::DeleteJobRequest&)> delete_job;
  std::function<grpc::Status(const v1::WatchJobRequest&, grpc::ServerContext*,
                             grpc::ServerWriter<v1::JobEvent>*)>
      watch_job;
  std::function<grpc::Status(const v1::WatchJobsRequest&, grpc::ServerContext*,
                             grpc::ServerWriter<v1::WatchJobsResponse>*)>
      watch_jobs;
  std::function<grpc::Status(const v1::ReadLogRequest&, grpc::ServerWriter<v1::ReadLogResponse>*)> read_log;
  std::function<grpc::Status(const v1::ReadArtifactRequest&, grpc::ServerWriter<v1::ReadArtifactResponse>*)>
      read_artifact;
  std::function<grpc::Status(const v1::DescribeModelRequest&, v1::ModelDescription*)> describe_model;
  std::function<grpc::Status(const v1::PredictRequest&, grpc::ServerWriter<v1::PredictResponse>*)> predict;
  std::function<grpc::Status(const v1::ExportModelRequest&, grpc::ServerWriter<v1::ExportModelResponse>*)>
      export_model;
  std::function<grpc::Status(const v1::EvaluateRequest&, grpc::ServerWriter<v1::EvaluateResponse>*)> evaluate;
  // Default: version 9.9.9.
  std::function<grpc::Status(grpc::ServerContext*, v1::Daemon*)> get_daemon;
  std::function<grpc::Status(v1::ListQueueResponse*)> list_queue;
  std::function<grpc::Status(v1::ListDevicesResponse*)> list_devices;
  std::function<grpc::Status(const v1::DrainDeviceRequest&, v1::Device*)> drain_device;
  std::function<grpc::Status(const v1::ResumeDeviceRequest&, v1::Device*)> resume_device;
  std::function<grpc::Status(const v1::ExcludeDeviceRequest&, v1::Device*)> exclude_device;
  std::function<grpc::Status(v1::ListDatasetsResponse*)> list_datasets;
  std::function<grpc::Status(const v1::GetDatasetRequest&, v1::Dataset*)> get_dataset;
  std::function<grpc::Status(const v1::FetchDatasetRequest&, v1::Dataset*)> fetch_dataset;
  std::function<grpc::Status(const v1::CreateDatasetRequest&, v1::Dataset*)> create_dataset;
  std::function<grpc::Status(const v1::DeleteDatasetRequest&)> delete_dataset;
  std::function<grpc::Status(const v1::ListUploadsRequest&, v1::ListUploadsResponse*)> list_uploads;
  std::function<grpc::Status(const v1::DeleteUploadRequest&)> delete_upload;
  std::function<grpc::Status(const v1::CreateUploadRequest&, v1::Upload*)> create_upload;
  std::function<grpc::Status(grpc::ServerReader<v1::UploadFilesRequest>*, v1::Upload*)> upload_files;
  std::function<grpc::Status(const v1::CreateSweepRequest&, v1::Sweep*)> create_sweep;
  std::function<grpc::Status(const v1::GetSweepRequest&, v1::Sweep*)> get_sweep;
  std::function<grpc::Status(const v1::ListSweepsRequest&, v1::ListSweepsResponse*)> list_sweeps;
  std::function<grpc::Status(const v1::CancelSweepRequest&, v1::Sweep*)> cancel_sweep;
  std::function<grpc::Status(const v1::DeleteSweepRequest&)> delete_sweep;
  std::function<grpc::Status(const v1::CreateBackupRequest&, v1::Backup*)> create_backup;
  std::function<grpc::Status(v1::ListBackupsResponse*)> list_backups;
  std::function<grpc::Status(const v1::CreateTokenRequest&, v1::CreateTokenResponse*)> create_token;
  std::function<grpc::Status(v1::ListTokensResponse*)> list_tokens;
  std::function<grpc::Status(const v1::ShutdownRequest&, v1::ShutdownResponse*)> shutdown;

 private:
  using Context = grpc::ServerContext;

  grpc::Status CreateJob(Context* context, const v1::CreateJobRequest* request, v1::Job* job) override {
    return Answer(context, create_job, *request, job);
  }
  grpc::Status GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* job) override {
    return Answer(context, get_job, *request, job);
  }
  grpc::Status GetJobHistory(Context* context, const v1::GetJobHistoryRequest* request,
                             v1::GetJobHistoryResponse* response) override {
    return Answer(context, get_job_history, *request, response);
  }
  grpc::Status ListJobs(Context* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    return Answer(context, list_jobs, *request, response);
  }
  grpc::Status CancelJob(Context* context, const v1::CancelJobRequest* request, v1::Job* job) override {
    return Answer(context, cancel_job, *request, job);
  }
  grpc::Status UpdateJob(Context* context, const v1::UpdateJobRequest* request, v1::Job* job) override {
    return Answer(context, update_job, *request, job);
  }
  grpc::Status PauseJob(Context* context, const v1::PauseJobRequest* request, v1::Job* job) override {
    return Answer(context, pause_job, *request, job);
  }
  grpc::Status ResumeJob(Context* context, const v1::ResumeJobRequest* request, v1::Job* job) override {
    return Answer(context, resume_job, *request, job);
  }
  grpc::Status ForkJob(Context* context, const v1::ForkJobRequest* request, v1::Job* job) override {
    return Answer(context, fork_job, *request, job);
  }
  grpc::Status ListCheckpoints(Context* context, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override {
    return Answer(context, list_checkpoints, *request, response);
  }
  grpc::Status DeleteJob(Context* context, const v1::DeleteJobRequest* request,
                         google::protobuf::Empty*) override {
    return Answer(context, delete_job, *request);
  }
  grpc::Status WatchJob(Context* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override {
    return Answer(context, watch_job, *request, context, writer);
  }
  grpc::Status WatchJobs(Context* context, const v1::WatchJobsRequest* request,
                         grpc::ServerWriter<v1::WatchJobsResponse>* writer) override {
    return Answer(context, watch_jobs, *request, context, writer);
  }
  grpc::Status ReadLog(Context* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::ReadLogResponse>* writer) override {
    return Answer(context, read_log, *request, writer);
  }
  grpc::Status ReadArtifact(Context* context, const v1::ReadArtifactRequest* request,
                            grpc::ServerWriter<v1::ReadArtifactResponse>* writer) override {
    return Answer(context, read_artifact, *request, writer);
  }
  grpc::Status DescribeModel(Context* context, const v1::DescribeModelRequest* request,
                             v1::ModelDescription* response) override {
    return Answer(context, describe_model, *request, response);
  }
  grpc::Status Predict(Context* context, const v1::PredictRequest* request,
                       grpc::ServerWriter<v1::PredictResponse>* writer) override {
    return Answer(context, predict, *request, writer);
  }
  grpc::Status ExportModel(Context* context, const v1::ExportModelRequest* request,
                           grpc::ServerWriter<v1::ExportModelResponse>* writer) override {
    return Answer(context, export_model, *request, writer);
  }
  grpc::Status Evaluate(Context* context, const v1::EvaluateRequest* request,
                        grpc::ServerWriter<v1::EvaluateResponse>* writer) override {
    return Answer(context, evaluate, *request, writer);
  }
  grpc::Status GetDaemon(Context* context, const v1::GetDaemonRequest*, v1::Daemon* daemon) override {
    if (get_daemon != nullptr) return get_daemon(context, daemon);
    daemon->set_version("9.9.9");
    return grpc::Status::OK;
  }
  grpc::Status ListQueue(Context* context, const v1::ListQueueRequest*,
                         v1::ListQueueResponse* response) override {
    return Answer(context, list_queue, response);
  }
  grpc::Status ListDevices(Context* context, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* response) override {
    return Answer(context, list_devices, response);
  }
  grpc::Status DrainDevice(Context* context, const v1::DrainDeviceRequest* request,
                           v1::Device* device) override {
    return Answer(context, drain_device, *request, device);
  }
  grpc::Status ResumeDevice(Context* context, const v1::ResumeDeviceRequest* request,
                            v1::Device* device) override {
    return Answer(context, resume_device, *request, device);
  }
  grpc::Status ExcludeDevice(Context* context, const v1::ExcludeDeviceRequest* request,
                             v1::Device* device) override {
    return Answer(context, exclude_device, *request, device);
  }
  grpc::Status ListDatasets(Context* context, const v1::ListDatasetsRequest*,
                            v1::ListDatasetsResponse* response) override {
    return Answer(context, list_datasets, response);
  }
  grpc::Status GetDataset(Context* context, const v1::GetDatasetRequest* request,
                          v1::Dataset* dataset) override {
    return Answer(context, get_dataset, *request, dataset);
  }
  grpc::Status FetchDataset(Context* context, const v1::FetchDatasetRequest* request,
                            v1::Dataset* dataset) override {
    return Answer(context, fetch_dataset, *request, dataset);
  }
  grpc::Status CreateDataset(Context* context, const v1::CreateDatasetRequest* request,
                             v1::Dataset* response) override {
    return Answer(context, create_dataset, *request, response);
  }
  grpc::Status DeleteDataset(Context* context, const v1::DeleteDatasetRequest* request,
                             google::protobuf::Empty*) override {
    return Answer(context, delete_dataset, *request);
  }
  grpc::Status ListUploads(Context* context, const v1::ListUploadsRequest* request,
                           v1::ListUploadsResponse* response) override {
    return Answer(context, list_uploads, *request, response);
  }
  grpc::Status DeleteUpload(Context* context, const v1::DeleteUploadRequest* request,
                            google::protobuf::Empty*) override {
    return Answer(context, delete_upload, *request);
  }
  grpc::Status CreateUpload(Context* context, const v1::CreateUploadRequest* request,
                            v1::Upload* response) override {
    return Answer(context, create_upload, *request, response);
  }
  grpc::Status UploadFiles(Context* context, grpc::ServerReader<v1::UploadFilesRequest>* reader,
                           v1::Upload* response) override {
    return Answer(context, upload_files, reader, response);
  }
  grpc::Status CreateSweep(Context* context, const v1::CreateSweepRequest* request,
                           v1::Sweep* sweep) override {
    return Answer(context, create_sweep, *request, sweep);
  }
  grpc::Status GetSweep(Context* context, const v1::GetSweepRequest* request, v1::Sweep* sweep) override {
    return Answer(context, get_sweep, *request, sweep);
  }
  grpc::Status ListSweeps(Context* context, const v1::ListSweepsRequest* request,
                          v1::ListSweepsResponse* response) override {
    return Answer(context, list_sweeps, *request, response);
  }
  grpc::Status CancelSweep(Context* context, const v1::CancelSweepRequest* request,
                           v1::Sweep* sweep) override {
    return Answer(context, cancel_sweep, *request, sweep);
  }
  grpc::Status DeleteSweep(Context* context, const v1::DeleteSweepRequest* request,
                           google::protobuf::Empty*) override {
    return Answer(context, delete_sweep, *request);
  }
  grpc::Status CreateBackup(Context* context, const v1::CreateBackupRequest* request,
                            v1::Backup* backup) override {
    return Answer(context, create_backup, *request, backup);
  }
  grpc::Status ListBackups(Context* context, const v1::ListBackupsRequest*,
                           v1::ListBackupsResponse* response) override {
    return Answer(context, list_backups, response);
  }
  grpc::Status CreateToken(Context* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    return Answer(context, create_token, *request, response);
  }
  grpc::Status ListTokens(Context* context, const v1::ListTokensRequest*,
                          v1::ListTokensResponse* response) override {
    return Answer(context, list_tokens, response);
  }
  grpc::Status Shutdown(Context* context, const v1::ShutdownRequest* request,
                        v1::ShutdownResponse* response) override {
    return Answer(context, shutdown, *request, response);
  }

  // Checks the token, then calls `function` if it is set.
  template <typename Function, typename... Arguments>
  grpc::Status Answer(Context* context, const Function& function, Arguments&&... arguments) {
    if (!token.empty()) {
      const auto sent = context->client_metadata().find("authorization");
      if (sent == context->client_metadata().end() || sent->second != "Bearer " + token) {
        return {grpc::StatusCode::UNAUTHENTICATED, "a wrong token"};
      }
    }
    if (!function) return {grpc::StatusCode::UNIMPLEMENTED, "the test gave no answer"};
    return function(std::forward<Arguments>(arguments)...);
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a status with a detail, such as google.rpc.ErrorInfo, as the daemon packs it.
grpc::Status DetailedStatus(grpc::StatusCode code, const std::string& message,
                            const google::protobuf::Message& detail);

// Returns the daemon's status for a bad request: INVALID_ARGUMENT with a google.rpc.BadRequest of (field,
// description) pairs.
grpc::Status BadRequestStatus(const std::string& message,
                              const std::vector<std::pair<std::string, std::string>>& violations);

// Returns the daemon's status for a call that it cannot answer now: UNAVAILABLE with a google.rpc.ErrorInfo.
grpc::Status UnavailableStatus(const std::string& message);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_FAKE_DAEMON_H_
