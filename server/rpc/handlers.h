#ifndef TANDEM_SERVER_RPC_HANDLERS_H_
#define TANDEM_SERVER_RPC_HANDLERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/empty.pb.h"
#include "server/admission/admission.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/memo.h"
#include "server/admission/remote_data.h"
#include "server/auth/caller.h"
#include "server/auth/token_registry.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/events/event_hub.h"
#include "server/events/item_source.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/file_watcher.h"
#include "server/rpc/job_drain.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/local_data.h"
#include "server/rpc/quotas.h"
#include "server/rpc/reply.h"
#include "server/rpc/request_sink.h"
#include "server/scheduler/scheduler.h"
#include "server/store/backups.h"
#include "server/workers/model_workers.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/dataset_service.pb.h"
#include "tandem/v1/job_service.pb.h"
#include "tandem/v1/model_service.pb.h"
#include "tandem/v1/sweep_service.pb.h"

// One function per method, in a file of its name. device_states.cc, tokens.cc, backups.cc and sweeps.cc have
// several functions each. tandem/v1/*_service.proto describes the methods and their errors. The functions
// keep no state and know nothing of gRPC. A request lives until its reply. The last parameters are the
// objects that a function uses; the *_service.cc files pass them. These objects must outlive the call. `pool`
// runs short reads of the database and files. `user_pool` runs work that depends on the size of users' data:
// admission, uploads, removals.

namespace tandem::rpc {

template <typename Response>
using Source = absl::StatusOr<std::unique_ptr<ItemSource<Response>>>;

void CreateJob(const Caller& caller, const v1::CreateJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, const Lifecycle* lifecycle, const JobRequests* requests, Uploads* uploads,
               FairPool* user_pool);
void ParseJob(const Caller& caller, const v1::ParseJobRequest& request, Reply<v1::ParseJobResponse> reply,
              FairPool* user_pool);
void UpdateJob(const Caller& caller, const v1::UpdateJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, FairPool* pool);
void GetJob(const Caller& caller, const v1::GetJobRequest& request, Reply<v1::Job> reply, JobMachine* jobs,
            FairPool* pool);
void GetJobHistory(const Caller& caller, const v1::GetJobHistoryRequest& request,
                   Reply<v1::GetJobHistoryResponse> reply, JobMachine* jobs, FairPool* pool);
void ListJobs(const Caller& caller, const v1::ListJobsRequest& request, Reply<v1::ListJobsResponse> reply,
              JobMachine* jobs, FairPool* pool);
void CancelJob(const Caller& caller, const v1::CancelJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, FairPool* pool);
void PauseJob(const Caller& caller, const v1::PauseJobRequest& request, Reply<v1::Job> reply,
              JobMachine* jobs, FairPool* pool);
void ResumeJob(const Caller& caller, const v1::ResumeJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, const Lifecycle* lifecycle, const DatasetCatalog* datasets,
               const LocalData* local_data, const Quotas* quotas, FairPool* user_pool);
void ForkJob(const Caller& caller, const v1::ForkJobRequest& request, Reply<v1::Job> reply, JobMachine* jobs,
             const Lifecycle* lifecycle, const Admission* admission, const JobRequests* requests,
             FairPool* user_pool);
void ListCheckpoints(const Caller& caller, const v1::ListCheckpointsRequest& request,
                     Reply<v1::ListCheckpointsResponse> reply, JobMachine* jobs, FairPool* pool);
void DeleteJob(const Caller& caller, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply, JobMachine* jobs, FairPool* pool);
Source<v1::JobEvent> WatchJob(const Caller& caller, const v1::WatchJobRequest& request, EventHub* events);
Source<v1::WatchJobsResponse> WatchJobs(const Caller& caller, const v1::WatchJobsRequest& request,
                                        EventHub* events);
Source<v1::ReadLogResponse> ReadLog(const Caller& caller, const v1::ReadLogRequest& request, JobMachine* jobs,
                                    EventHub* events, FileWatcher* files, FairPool* pool);
Source<v1::ReadArtifactResponse> ReadArtifact(const Caller& caller, const v1::ReadArtifactRequest& request,
                                              JobMachine* jobs, const Lifecycle* lifecycle,
                                              Memo<bool>* checked_artifacts, FairPool* pool,
                                              FairPool* user_pool);

void ParseSweep(const Caller& caller, const v1::ParseSweepRequest& request,
                Reply<v1::ParseSweepResponse> reply, FairPool* user_pool);
void CreateSweep(const Caller& caller, const v1::CreateSweepRequest& request, Reply<v1::Sweep> reply,
                 JobMachine* jobs, const Lifecycle* lifecycle, const Quotas* quotas,
                 const JobRequests* requests, Uploads* uploads, FairPool* user_pool);
void GetSweep(const Caller& caller, const v1::GetSweepRequest& request, Reply<v1::Sweep> reply,
              JobMachine* jobs, FairPool* pool);
void ListSweeps(const Caller& caller, const v1::ListSweepsRequest& request,
                Reply<v1::ListSweepsResponse> reply, JobMachine* jobs, FairPool* pool);
void CancelSweep(const Caller& caller, const v1::CancelSweepRequest& request, Reply<v1::Sweep> reply,
                 JobMachine* jobs, FairPool* pool);
void DeleteSweep(const Caller& caller, const v1::DeleteSweepRequest& request,
                 Reply<google::protobuf::Empty> reply, JobMachine* jobs, FairPool* pool);

void DescribeModel(const Caller& caller, const v1::DescribeModelRequest& request,
                   Reply<v1::ModelDescription> reply, JobMachine* jobs, const DatasetCatalog* datasets,
                   const LocalData* local_data, FairPool* user_pool);
Source<v1::PredictResponse> Predict(const Caller& caller, const v1::PredictRequest& request, JobMachine* jobs,
                                    const Scheduler* scheduler, ModelWorkers* models,
                                    const DatasetCatalog* datasets, const LocalData* local_data,
                                    FairPool* pool, FairPool* user_pool);
Source<v1::ExportModelResponse> ExportModel(const Caller& caller, const v1::ExportModelRequest& request,
                                            JobMachine* jobs, const Scheduler* scheduler,
                                            ModelWorkers* models, FairPool* pool);
Source<v1::EvaluateResponse> Evaluate(const Caller& caller, const v1::EvaluateRequest& request,
                                      JobMachine* jobs, const Scheduler* scheduler, ModelWorkers* models,
                                      const DatasetCatalog* datasets, const LocalData* local_data,
                                      FairPool* user_pool);

void GetDaemon(const Caller& caller, const v1::GetDaemonRequest& request, Reply<v1::Daemon> reply,
               const v1::Daemon* daemon);
void ListDevices(const Caller& caller, const v1::ListDevicesRequest& request,
                 Reply<v1::ListDevicesResponse> reply, const Scheduler* scheduler,
                 std::function<void(v1::GpuStatus*)> refresh_gpu,
                 std::function<absl::StatusOr<std::vector<v1::ClusterPartition>>()> partitions,
                 FairPool* pool);
void ListDatasets(const Caller& caller, const v1::ListDatasetsRequest& request,
                  Reply<v1::ListDatasetsResponse> reply, const DatasetCatalog* datasets, FairPool* user_pool);
void GetDataset(const Caller& caller, const v1::GetDatasetRequest& request, Reply<v1::Dataset> reply,
                const DatasetCatalog* datasets, FairPool* user_pool);
void CreateDataset(const Caller& caller, const v1::CreateDatasetRequest& request, Reply<v1::Dataset> reply,
                   DatasetRegistry* registry, Uploads* uploads, const LocalData* local_data,
                   FairPool* user_pool);
void DeleteDataset(const Caller& caller, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply, DatasetRegistry* registry,
                   const DatasetCatalog* datasets, FairPool* user_pool);
void CreateUpload(const Caller& caller, const v1::CreateUploadRequest& request, Reply<v1::Upload> reply,
                  Uploads* uploads, const Quotas* quotas, FairPool* user_pool);
void GetUpload(const Caller& caller, const v1::GetUploadRequest& request, Reply<v1::Upload> reply,
               Uploads* uploads, FairPool* user_pool);
void ListUploads(const Caller& caller, const v1::ListUploadsRequest& request,
                 Reply<v1::ListUploadsResponse> reply, Uploads* uploads, FairPool* user_pool);
void DeleteUpload(const Caller& caller, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply, Uploads* uploads, FairPool* user_pool);
std::unique_ptr<RequestSink<v1::UploadFilesRequest, v1::Upload>> UploadFiles(const Caller& caller,
                                                                             Uploads* uploads,
                                                                             FairPool* user_pool);
void FetchDataset(const Caller& caller, const v1::FetchDatasetRequest& request, Reply<v1::Dataset> reply,
                  const DatasetCatalog* datasets, RemoteData* remote, FairPool* user_pool);
void DrainDevice(const Caller& caller, const v1::DrainDeviceRequest& request, Reply<v1::Device> reply,
                 Scheduler* scheduler);
void ResumeDevice(const Caller& caller, const v1::ResumeDeviceRequest& request, Reply<v1::Device> reply,
                  Scheduler* scheduler);
void ExcludeDevice(const Caller& caller, const v1::ExcludeDeviceRequest& request, Reply<v1::Device> reply,
                   Scheduler* scheduler);
void ListQueue(const Caller& caller, const v1::ListQueueRequest& request, Reply<v1::ListQueueResponse> reply,
               Scheduler* scheduler, FairPool* pool);
void CreateToken(const Caller& caller, const v1::CreateTokenRequest& request,
                 Reply<v1::CreateTokenResponse> reply, TokenRegistry* tokens, Scheduler* scheduler);
void ListTokens(const Caller& caller, const v1::ListTokensRequest& request,
                Reply<v1::ListTokensResponse> reply, TokenRegistry* tokens);
void RevokeToken(const Caller& caller, const v1::RevokeTokenRequest& request, Reply<v1::Token> reply,
                 TokenRegistry* tokens, Scheduler* scheduler);
void CreateBackup(const Caller& caller, const v1::CreateBackupRequest& request, Reply<v1::Backup> reply,
                  Backups* backups, FairPool* pool);
void ListBackups(const Caller& caller, const v1::ListBackupsRequest& request,
                 Reply<v1::ListBackupsResponse> reply, const Backups* backups, FairPool* pool);
void Shutdown(const Caller& caller, const v1::ShutdownRequest& request, Reply<v1::ShutdownResponse> reply,
              Lifecycle* lifecycle, JobDrain* drain, FairPool* pool);

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
