#ifndef TANDEM_SERVER_RPC_HANDLERS_H_
#define TANDEM_SERVER_RPC_HANDLERS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/empty.pb.h"
#include "server/auth/token_registry.h"
#include "server/events/item_source.h"
#include "server/rpc/reply.h"
#include "server/rpc/request_sink.h"
#include "server/rpc/rpc_context.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/dataset_service.pb.h"
#include "tandem/v1/job_service.pb.h"
#include "tandem/v1/model_service.pb.h"
#include "tandem/v1/sweep_service.pb.h"

// One function per method, each in a file of its name. tandem/v1/*_service.proto describes the methods and
// their errors. The functions keep no state and know nothing of gRPC. A request lives until its reply.
// Functions that depend on the caller get `caller`.

namespace tandem::rpc {

template <typename Response>
using Source = absl::StatusOr<std::unique_ptr<ItemSource<Response>>>;

void CreateJob(const RpcContext& context, const Caller& caller, const v1::CreateJobRequest& request,
               Reply<v1::Job> reply);
void ParseJob(const RpcContext& context, const Caller& caller, const v1::ParseJobRequest& request,
              Reply<v1::ParseJobResponse> reply);
void UpdateJob(const RpcContext& context, const Caller& caller, const v1::UpdateJobRequest& request,
               Reply<v1::Job> reply);
void GetJob(const RpcContext& context, const Caller& caller, const v1::GetJobRequest& request,
            Reply<v1::Job> reply);
void GetJobHistory(const RpcContext& context, const Caller& caller, const v1::GetJobHistoryRequest& request,
                   Reply<v1::GetJobHistoryResponse> reply);
void ListJobs(const RpcContext& context, const Caller& caller, const v1::ListJobsRequest& request,
              Reply<v1::ListJobsResponse> reply);
void CancelJob(const RpcContext& context, const Caller& caller, const v1::CancelJobRequest& request,
               Reply<v1::Job> reply);
void PauseJob(const RpcContext& context, const Caller& caller, const v1::PauseJobRequest& request,
              Reply<v1::Job> reply);
void ResumeJob(const RpcContext& context, const Caller& caller, const v1::ResumeJobRequest& request,
               Reply<v1::Job> reply);
void ForkJob(const RpcContext& context, const Caller& caller, const v1::ForkJobRequest& request,
             Reply<v1::Job> reply);
void ListCheckpoints(const RpcContext& context, const Caller& caller,
                     const v1::ListCheckpointsRequest& request, Reply<v1::ListCheckpointsResponse> reply);
void DeleteJob(const RpcContext& context, const Caller& caller, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply);
Source<v1::JobEvent> WatchJob(const RpcContext& context, const v1::WatchJobRequest& request);
Source<v1::WatchJobsResponse> WatchJobs(const RpcContext& context, const v1::WatchJobsRequest& request);
Source<v1::ReadLogResponse> ReadLog(const RpcContext& context, const Caller& caller,
                                    const v1::ReadLogRequest& request);
Source<v1::ReadArtifactResponse> ReadArtifact(const RpcContext& context, const Caller& caller,
                                              const v1::ReadArtifactRequest& request);

void CreateSweep(const RpcContext& context, const Caller& caller, const v1::CreateSweepRequest& request,
                 Reply<v1::Sweep> reply);
void GetSweep(const RpcContext& context, const Caller& caller, const v1::GetSweepRequest& request,
              Reply<v1::Sweep> reply);
void ListSweeps(const RpcContext& context, const Caller& caller, const v1::ListSweepsRequest& request,
                Reply<v1::ListSweepsResponse> reply);
void CancelSweep(const RpcContext& context, const Caller& caller, const v1::CancelSweepRequest& request,
                 Reply<v1::Sweep> reply);
void DeleteSweep(const RpcContext& context, const Caller& caller, const v1::DeleteSweepRequest& request,
                 Reply<google::protobuf::Empty> reply);

void DescribeModel(const RpcContext& context, const Caller& caller, const v1::DescribeModelRequest& request,
                   Reply<v1::ModelDescription> reply);
Source<v1::PredictResponse> Predict(const RpcContext& context, const Caller& caller,
                                    const v1::PredictRequest& request);
Source<v1::EvaluateResponse> Evaluate(const RpcContext& context, const Caller& caller,
                                      const v1::EvaluateRequest& request);

void GetDaemon(const RpcContext& context, const Caller& caller, const v1::GetDaemonRequest& request,
               Reply<v1::Daemon> reply);
void ListDevices(const RpcContext& context, const Caller& caller, const v1::ListDevicesRequest& request,
                 Reply<v1::ListDevicesResponse> reply);
void ListDatasets(const RpcContext& context, const Caller& caller, const v1::ListDatasetsRequest& request,
                  Reply<v1::ListDatasetsResponse> reply);
void GetDataset(const RpcContext& context, const Caller& caller, const v1::GetDatasetRequest& request,
                Reply<v1::Dataset> reply);
void CreateDataset(const RpcContext& context, const Caller& caller, const v1::CreateDatasetRequest& request,
                   Reply<v1::Dataset> reply);
void DeleteDataset(const RpcContext& context, const Caller& caller, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply);
void CreateUpload(const RpcContext& context, const Caller& caller, const v1::CreateUploadRequest& request,
                  Reply<v1::Upload> reply);
void GetUpload(const RpcContext& context, const Caller& caller, const v1::GetUploadRequest& request,
               Reply<v1::Upload> reply);
void ListUploads(const RpcContext& context, const Caller& caller, const v1::ListUploadsRequest& request,
                 Reply<v1::ListUploadsResponse> reply);
void DeleteUpload(const RpcContext& context, const Caller& caller, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply);
std::unique_ptr<RequestSink<v1::UploadFilesRequest, v1::Upload>> UploadFiles(const RpcContext& context,
                                                                             Caller caller);
void FetchDataset(const RpcContext& context, const Caller& caller, const v1::FetchDatasetRequest& request,
                  Reply<v1::Dataset> reply);
void DrainDevice(const RpcContext& context, const v1::DrainDeviceRequest& request, Reply<v1::Device> reply);
void ResumeDevice(const RpcContext& context, const v1::ResumeDeviceRequest& request, Reply<v1::Device> reply);
void ExcludeDevice(const RpcContext& context, const v1::ExcludeDeviceRequest& request,
                   Reply<v1::Device> reply);
void ListQueue(const RpcContext& context, const Caller& caller, const v1::ListQueueRequest& request,
               Reply<v1::ListQueueResponse> reply);
void CreateToken(const RpcContext& context, const v1::CreateTokenRequest& request,
                 Reply<v1::CreateTokenResponse> reply);
void ListTokens(const RpcContext& context, const v1::ListTokensRequest& request,
                Reply<v1::ListTokensResponse> reply);
void RevokeToken(const RpcContext& context, const v1::RevokeTokenRequest& request, Reply<v1::Token> reply);
void CreateBackup(const RpcContext& context, const Caller& caller, const v1::CreateBackupRequest& request,
                  Reply<v1::Backup> reply);
void ListBackups(const RpcContext& context, const Caller& caller, const v1::ListBackupsRequest& request,
                 Reply<v1::ListBackupsResponse> reply);
void Shutdown(const RpcContext& context, const Caller& caller, const v1::ShutdownRequest& request,
              Reply<v1::ShutdownResponse> reply);

// Returns `id`, the id in `name`. INVALID_ARGUMENT for the field "name" if `id` is empty. `kind` is "job" or
// "sweep".
absl::StatusOr<std::string> CheckName(absl::string_view kind, const std::string& name, std::string id);
// Turns NOT_FOUND into a message with `reason` that names the job or sweep; returns any other status
// unchanged.
absl::Status ExplainNotFound(const absl::Status& status, absl::string_view kind, const std::string& name,
                             absl::string_view reason);
// Returns the id in "jobs/<id>". INVALID_ARGUMENT for the field "name".
absl::StatusOr<std::string> ParseJobName(const std::string& name);
// Returns the id in "uploads/<id>". INVALID_ARGUMENT for the field "name".
absl::StatusOr<std::string> ParseUploadName(const std::string& name);
// Returns the answer of a method without a result: an empty message, or the error.
inline absl::StatusOr<google::protobuf::Empty> EmptyOr(const absl::Status& status) {
  if (!status.ok()) return status;
  return google::protobuf::Empty();
}
// ExplainNotFound for a job, with the reason JOB_NOT_FOUND.
absl::Status ExplainJobError(const absl::Status& status, const std::string& name);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_HANDLERS_H_
