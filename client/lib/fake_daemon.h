#ifndef TANDEM_CLIENT_LIB_FAKE_DAEMON_H_
#define TANDEM_CLIENT_LIB_FAKE_DAEMON_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

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
  grpc::Status CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request,
                         v1::Job* job) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::Job* job) override;
  grpc::Status GetJobHistory(grpc::ServerContext* context, const v1::GetJobHistoryRequest* request,
                             v1::GetJobHistoryResponse* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::Job* job) override;
  grpc::Status UpdateJob(grpc::ServerContext* context, const v1::UpdateJobRequest* request,
                         v1::Job* job) override;
  grpc::Status PauseJob(grpc::ServerContext* context, const v1::PauseJobRequest* request,
                        v1::Job* job) override;
  grpc::Status ResumeJob(grpc::ServerContext* context, const v1::ResumeJobRequest* request,
                         v1::Job* job) override;
  grpc::Status ForkJob(grpc::ServerContext* context, const v1::ForkJobRequest* request,
                       v1::Job* job) override;
  grpc::Status ListCheckpoints(grpc::ServerContext* context, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override;
  grpc::Status DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                         google::protobuf::Empty* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override;
  grpc::Status WatchJobs(grpc::ServerContext* context, const v1::WatchJobsRequest* request,
                         grpc::ServerWriter<v1::WatchJobsResponse>* writer) override;
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::ReadLogResponse>* writer) override;
  grpc::Status ReadArtifact(grpc::ServerContext* context, const v1::ReadArtifactRequest* request,
                            grpc::ServerWriter<v1::ReadArtifactResponse>* writer) override;
  grpc::Status DescribeModel(grpc::ServerContext* context, const v1::DescribeModelRequest* request,
                             v1::ModelDescription* response) override;
  grpc::Status Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                       grpc::ServerWriter<v1::PredictResponse>* writer) override;
  grpc::Status Evaluate(grpc::ServerContext* context, const v1::EvaluateRequest* request,
                        grpc::ServerWriter<v1::EvaluateResponse>* writer) override;
  grpc::Status GetDaemon(grpc::ServerContext* context, const v1::GetDaemonRequest* request,
                         v1::Daemon* daemon) override;
  grpc::Status ListQueue(grpc::ServerContext* context, const v1::ListQueueRequest* request,
                         v1::ListQueueResponse* response) override;
  grpc::Status ListDevices(grpc::ServerContext* context, const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override;
  grpc::Status DrainDevice(grpc::ServerContext* context, const v1::DrainDeviceRequest* request,
                           v1::Device* device) override;
  grpc::Status ResumeDevice(grpc::ServerContext* context, const v1::ResumeDeviceRequest* request,
                            v1::Device* device) override;
  grpc::Status ExcludeDevice(grpc::ServerContext* context, const v1::ExcludeDeviceRequest* request,
                             v1::Device* device) override;
  grpc::Status ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest* request,
                            v1::ListDatasetsResponse* response) override;
  grpc::Status GetDataset(grpc::ServerContext* context, const v1::GetDatasetRequest* request,
                          v1::Dataset* dataset) override;
  grpc::Status FetchDataset(grpc::ServerContext* context, const v1::FetchDatasetRequest* request,
                            v1::Dataset* dataset) override;
  grpc::Status CreateDataset(grpc::ServerContext* context, const v1::CreateDatasetRequest* request,
                             v1::Dataset* response) override;
  grpc::Status DeleteDataset(grpc::ServerContext* context, const v1::DeleteDatasetRequest* request,
                             google::protobuf::Empty* response) override;
  grpc::Status ListUploads(grpc::ServerContext* context, const v1::ListUploadsRequest* request,
                           v1::ListUploadsResponse* response) override;
  grpc::Status DeleteUpload(grpc::ServerContext* context, const v1::DeleteUploadRequest* request,
                            google::protobuf::Empty* response) override;
  grpc::Status CreateUpload(grpc::ServerContext* context, const v1::CreateUploadRequest* request,
                            v1::Upload* response) override;
  grpc::Status UploadFiles(grpc::ServerContext* context, grpc::ServerReader<v1::UploadFilesRequest>* reader,
                           v1::Upload* response) override;
  grpc::Status CreateSweep(grpc::ServerContext* context, const v1::CreateSweepRequest* request,
                           v1::Sweep* sweep) override;
  grpc::Status GetSweep(grpc::ServerContext* context, const v1::GetSweepRequest* request,
                        v1::Sweep* sweep) override;
  grpc::Status ListSweeps(grpc::ServerContext* context, const v1::ListSweepsRequest* request,
                          v1::ListSweepsResponse* response) override;
  grpc::Status CancelSweep(grpc::ServerContext* context, const v1::CancelSweepRequest* request,
                           v1::Sweep* sweep) override;
  grpc::Status DeleteSweep(grpc::ServerContext* context, const v1::DeleteSweepRequest* request,
                           google::protobuf::Empty* response) override;
  grpc::Status CreateBackup(grpc::ServerContext* context, const v1::CreateBackupRequest* request,
                            v1::Backup* backup) override;
  grpc::Status ListBackups(grpc::ServerContext* context, const v1::ListBackupsRequest* request,
                           v1::ListBackupsResponse* response) override;
  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status Shutdown(grpc::ServerContext* context, const v1::ShutdownRequest* request,
                        v1::ShutdownResponse* response) override;

  // Checks the token, then calls `function` if it is set.
  template <typename Function, typename... Arguments>
  grpc::Status Answer(grpc::ServerContext* context, const Function& function, Arguments&&... arguments);

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Returns the daemon's status for a bad request: INVALID_ARGUMENT with a google.rpc.BadRequest of (field,
// description) pairs.
grpc::Status BadRequestStatus(const std::string& message,
                              const std::vector<std::pair<std::string, std::string>>& violations);

// Returns the daemon's status for a call that it cannot answer now: UNAVAILABLE with a google.rpc.ErrorInfo.
grpc::Status UnavailableStatus(const std::string& message);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_FAKE_DAEMON_H_
