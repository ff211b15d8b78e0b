#include "client/lib/fake_daemon.h"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tandem::client {

FakeDaemon::FakeDaemon(int port, const std::shared_ptr<grpc::ServerCredentials>& credentials,
                       const std::function<void(FakeDaemon&)>& set_up) {
  if (set_up) set_up(*this);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20);  // The daemon's limit.
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), credentials, &port_);
  builder.RegisterService(static_cast<v1::JobService::Service*>(this));
  builder.RegisterService(static_cast<v1::ModelService::Service*>(this));
  builder.RegisterService(static_cast<v1::DatasetService::Service*>(this));
  builder.RegisterService(static_cast<v1::SweepService::Service*>(this));
  builder.RegisterService(static_cast<v1::DaemonService::Service*>(this));
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

std::unique_ptr<Client> FakeDaemon::Connect() const {
  ConnectionOptions options;
  options.address = address();
  return Client::Create(options).value();
}

template <typename Function, typename... Arguments>
grpc::Status FakeDaemon::Answer(grpc::ServerContext* context, const Function& function,
                                Arguments&&... arguments) {
  if (!token.empty()) {
    const auto sent = context->client_metadata().find("authorization");
    if (sent == context->client_metadata().end() || sent->second != "Bearer " + token) {
      return {grpc::StatusCode::UNAUTHENTICATED, "a wrong token"};
    }
  }
  if (!function) return {grpc::StatusCode::UNIMPLEMENTED, "the test gave no answer"};
  return function(std::forward<Arguments>(arguments)...);
}

grpc::Status FakeDaemon::CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request,
                                   v1::Job* job) {
  return Answer(context, create_job, *request, job);
}

grpc::Status FakeDaemon::CreateSweep(grpc::ServerContext* context, const v1::CreateSweepRequest* request,
                                     v1::Sweep* sweep) {
  return Answer(context, create_sweep, *request, sweep);
}

grpc::Status FakeDaemon::GetSweep(grpc::ServerContext* context, const v1::GetSweepRequest* request,
                                  v1::Sweep* sweep) {
  return Answer(context, get_sweep, *request, sweep);
}

grpc::Status FakeDaemon::ListSweeps(grpc::ServerContext* context, const v1::ListSweepsRequest* request,
                                    v1::ListSweepsResponse* response) {
  return Answer(context, list_sweeps, *request, response);
}

grpc::Status FakeDaemon::CancelSweep(grpc::ServerContext* context, const v1::CancelSweepRequest* request,
                                     v1::Sweep* sweep) {
  return Answer(context, cancel_sweep, *request, sweep);
}

grpc::Status FakeDaemon::GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                                v1::Job* job) {
  return Answer(context, get_job, *request, job);
}

grpc::Status FakeDaemon::GetJobHistory(grpc::ServerContext* context, const v1::GetJobHistoryRequest* request,
                                       v1::GetJobHistoryResponse* response) {
  return Answer(context, get_job_history, *request, response);
}

grpc::Status FakeDaemon::ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                                  v1::ListJobsResponse* response) {
  return Answer(context, list_jobs, *request, response);
}

grpc::Status FakeDaemon::CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                                   v1::Job* job) {
  return Answer(context, cancel_job, *request, job);
}

grpc::Status FakeDaemon::UpdateJob(grpc::ServerContext* context, const v1::UpdateJobRequest* request,
                                   v1::Job* job) {
  return Answer(context, update_job, *request, job);
}

grpc::Status FakeDaemon::PauseJob(grpc::ServerContext* context, const v1::PauseJobRequest* request,
                                  v1::Job* job) {
  return Answer(context, pause_job, *request, job);
}

grpc::Status FakeDaemon::ResumeJob(grpc::ServerContext* context, const v1::ResumeJobRequest* request,
                                   v1::Job* job) {
  return Answer(context, resume_job, *request, job);
}

grpc::Status FakeDaemon::ForkJob(grpc::ServerContext* context, const v1::ForkJobRequest* request,
                                 v1::Job* job) {
  return Answer(context, fork_job, *request, job);
}

grpc::Status FakeDaemon::ListCheckpoints(grpc::ServerContext* context,
                                         const v1::ListCheckpointsRequest* request,
                                         v1::ListCheckpointsResponse* response) {
  return Answer(context, list_checkpoints, *request, response);
}

grpc::Status FakeDaemon::DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                                   google::protobuf::Empty*) {
  return Answer(context, delete_job, *request);
}

grpc::Status FakeDaemon::WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                                  grpc::ServerWriter<v1::JobEvent>* writer) {
  return Answer(context, watch_job, *request, context, writer);
}

grpc::Status FakeDaemon::WatchJobs(grpc::ServerContext* context, const v1::WatchJobsRequest* request,
                                   grpc::ServerWriter<v1::WatchJobsResponse>* writer) {
  return Answer(context, watch_jobs, *request, context, writer);
}

grpc::Status FakeDaemon::ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                                 grpc::ServerWriter<v1::ReadLogResponse>* writer) {
  return Answer(context, read_log, *request, writer);
}

grpc::Status FakeDaemon::ReadArtifact(grpc::ServerContext* context, const v1::ReadArtifactRequest* request,
                                      grpc::ServerWriter<v1::ReadArtifactResponse>* writer) {
  return Answer(context, read_artifact, *request, writer);
}

grpc::Status FakeDaemon::DescribeModel(grpc::ServerContext* context, const v1::DescribeModelRequest* request,
                                       v1::ModelDescription* response) {
  return Answer(context, describe_model, *request, response);
}

grpc::Status FakeDaemon::Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                                 grpc::ServerWriter<v1::PredictResponse>* writer) {
  return Answer(context, predict, *request, writer);
}

grpc::Status FakeDaemon::Evaluate(grpc::ServerContext* context, const v1::EvaluateRequest* request,
                                  grpc::ServerWriter<v1::EvaluateResponse>* writer) {
  return Answer(context, evaluate, *request, writer);
}

grpc::Status FakeDaemon::GetDaemon(grpc::ServerContext* context, const v1::GetDaemonRequest*,
                                   v1::Daemon* daemon) {
  if (get_daemon != nullptr) return get_daemon(context, daemon);
  daemon->set_version("9.9.9");
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::ListQueue(grpc::ServerContext* context, const v1::ListQueueRequest*,
                                   v1::ListQueueResponse* response) {
  return Answer(context, list_queue, response);
}

grpc::Status FakeDaemon::ListDevices(grpc::ServerContext* context, const v1::ListDevicesRequest*,
                                     v1::ListDevicesResponse* response) {
  return Answer(context, list_devices, response);
}

grpc::Status FakeDaemon::DrainDevice(grpc::ServerContext* context, const v1::DrainDeviceRequest* request,
                                     v1::Device* device) {
  return Answer(context, drain_device, *request, device);
}

grpc::Status FakeDaemon::ResumeDevice(grpc::ServerContext* context, const v1::ResumeDeviceRequest* request,
                                      v1::Device* device) {
  return Answer(context, resume_device, *request, device);
}

grpc::Status FakeDaemon::ExcludeDevice(grpc::ServerContext* context, const v1::ExcludeDeviceRequest* request,
                                       v1::Device* device) {
  return Answer(context, exclude_device, *request, device);
}

grpc::Status FakeDaemon::ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest*,
                                      v1::ListDatasetsResponse* response) {
  return Answer(context, list_datasets, response);
}

grpc::Status FakeDaemon::GetDataset(grpc::ServerContext* context, const v1::GetDatasetRequest* request,
                                    v1::Dataset* dataset) {
  return Answer(context, get_dataset, *request, dataset);
}

grpc::Status FakeDaemon::FetchDataset(grpc::ServerContext* context, const v1::FetchDatasetRequest* request,
                                      v1::Dataset* dataset) {
  return Answer(context, fetch_dataset, *request, dataset);
}

grpc::Status FakeDaemon::CreateDataset(grpc::ServerContext* context, const v1::CreateDatasetRequest* request,
                                       v1::Dataset* response) {
  return Answer(context, create_dataset, *request, response);
}

grpc::Status FakeDaemon::DeleteDataset(grpc::ServerContext* context, const v1::DeleteDatasetRequest* request,
                                       google::protobuf::Empty*) {
  return Answer(context, delete_dataset, *request);
}

grpc::Status FakeDaemon::ListUploads(grpc::ServerContext* context, const v1::ListUploadsRequest* request,
                                     v1::ListUploadsResponse* response) {
  return Answer(context, list_uploads, *request, response);
}

grpc::Status FakeDaemon::DeleteUpload(grpc::ServerContext* context, const v1::DeleteUploadRequest* request,
                                      google::protobuf::Empty*) {
  return Answer(context, delete_upload, *request);
}

grpc::Status FakeDaemon::CreateUpload(grpc::ServerContext* context, const v1::CreateUploadRequest* request,
                                      v1::Upload* response) {
  return Answer(context, create_upload, *request, response);
}

grpc::Status FakeDaemon::UploadFiles(grpc::ServerContext* context,
                                     grpc::ServerReader<v1::UploadFilesRequest>* reader,
                                     v1::Upload* response) {
  return Answer(context, upload_files, reader, response);
}

grpc::Status FakeDaemon::DeleteSweep(grpc::ServerContext* context, const v1::DeleteSweepRequest* request,
                                     google::protobuf::Empty*) {
  return Answer(context, delete_sweep, *request);
}

grpc::Status FakeDaemon::CreateBackup(grpc::ServerContext* context, const v1::CreateBackupRequest* request,
                                      v1::Backup* backup) {
  return Answer(context, create_backup, *request, backup);
}

grpc::Status FakeDaemon::ListBackups(grpc::ServerContext* context, const v1::ListBackupsRequest*,
                                     v1::ListBackupsResponse* response) {
  return Answer(context, list_backups, response);
}

grpc::Status FakeDaemon::CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                                     v1::CreateTokenResponse* response) {
  return Answer(context, create_token, *request, response);
}

grpc::Status FakeDaemon::ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest*,
                                    v1::ListTokensResponse* response) {
  return Answer(context, list_tokens, response);
}

grpc::Status FakeDaemon::Shutdown(grpc::ServerContext* context, const v1::ShutdownRequest* request,
                                  v1::ShutdownResponse* response) {
  return Answer(context, shutdown, *request, response);
}

grpc::Status BadRequestStatus(const std::string& message,
                              const std::vector<std::pair<std::string, std::string>>& violations) {
  google::rpc::BadRequest bad_request;
  for (const auto& [field, description] : violations) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
  }
  google::rpc::Status status;
  status.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  status.set_message(message);
  status.add_details()->PackFrom(bad_request);
  return {grpc::StatusCode::INVALID_ARGUMENT, message, status.SerializeAsString()};
}

grpc::Status UnavailableStatus(const std::string& message) {
  google::rpc::ErrorInfo info;
  info.set_reason("UNAVAILABLE");
  info.set_domain("tandem");
  google::rpc::Status status;
  status.set_code(grpc::StatusCode::UNAVAILABLE);
  status.set_message(message);
  status.add_details()->PackFrom(info);
  return {grpc::StatusCode::UNAVAILABLE, message, status.SerializeAsString()};
}

}  // namespace tandem::client
