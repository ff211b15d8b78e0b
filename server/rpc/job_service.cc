#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeJobService(const CallParts* calls, const RpcServer::Parts& parts,
                                              const rpc::LocalData* local_data, const rpc::Quotas* quotas,
                                              const rpc::JobRequests* requests,
                                              Memo<bool>* checked_artifacts) {
  // Tells a watcher of future changes the cursor from which it starts.
  const auto tell_cursor = [events = parts.events](grpc::CallbackServerContext* context,
                                                   v1::WatchJobsRequest* request) {
    if (request->after_cursor() != -1) return;
    request->set_after_cursor(events->newest_cursor());
    context->AddInitialMetadata("tandem-cursor", absl::StrCat(request->after_cursor()));
  };
  auto service = std::make_unique<MethodTable>("tandem.v1.JobService", calls);
  service->Unary("CreateJob", &rpc::CreateJob, parts.jobs, parts.lifecycle, requests, parts.uploads,
                 parts.user_pool);
  service->Unary("ParseJob", &rpc::ParseJob, parts.user_pool);
  service->Unary("GetJob", &rpc::GetJob, parts.jobs, parts.pool);
  service->Unary("GetJobHistory", &rpc::GetJobHistory, parts.jobs, parts.pool);
  service->Unary("ListJobs", &rpc::ListJobs, parts.jobs, parts.pool);
  service->Unary("UpdateJob", &rpc::UpdateJob, parts.jobs, parts.pool);
  service->Unary("CancelJob", &rpc::CancelJob, parts.jobs, parts.pool);
  service->Unary("PauseJob", &rpc::PauseJob, parts.jobs, parts.pool);
  service->Unary("ResumeJob", &rpc::ResumeJob, parts.jobs, parts.lifecycle, parts.datasets, local_data,
                 quotas, parts.user_pool);
  service->Unary("ForkJob", &rpc::ForkJob, parts.jobs, parts.lifecycle, parts.admission, requests,
                 parts.user_pool);
  service->Unary("ListCheckpoints", &rpc::ListCheckpoints, parts.jobs, parts.pool);
  service->Unary("DeleteJob", &rpc::DeleteJob, parts.jobs, parts.pool);
  service->Stream("WatchJob", {}, &rpc::WatchJob, parts.events);
  service->Stream("WatchJobs", {.prepare = tell_cursor}, &rpc::WatchJobs, parts.events);
  service->Stream("ReadLog", {}, &rpc::ReadLog, parts.jobs, parts.events, parts.files, parts.pool);
  service->Stream("ReadArtifact", {}, &rpc::ReadArtifact, parts.jobs, parts.lifecycle, checked_artifacts,
                  parts.pool, parts.user_pool);
  return service;
}

}  // namespace tandem
