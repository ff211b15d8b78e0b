#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {
namespace {

// Tells a watcher of future changes the cursor from which it starts.
void TellCursor(const RpcContext& rpc, grpc::CallbackServerContext* context, v1::WatchJobsRequest* request) {
  if (request->after_cursor() != -1) return;
  request->set_after_cursor(rpc.events->newest_cursor());
  context->AddInitialMetadata("tandem-cursor", absl::StrCat(request->after_cursor()));
}

}  // namespace

std::unique_ptr<grpc::Service> MakeJobService(const RpcContext* context, OpenCalls* calls) {
  auto service = std::make_unique<MethodTable>("tandem.v1.JobService", context, calls);
  service->Unary("CreateJob", &rpc::CreateJob);
  service->Unary("ParseJob", &rpc::ParseJob);
  service->Unary("GetJob", &rpc::GetJob);
  service->Unary("GetJobHistory", &rpc::GetJobHistory);
  service->Unary("ListJobs", &rpc::ListJobs);
  service->Unary("UpdateJob", &rpc::UpdateJob);
  service->Unary("CancelJob", &rpc::CancelJob);
  service->Unary("PauseJob", &rpc::PauseJob);
  service->Unary("ResumeJob", &rpc::ResumeJob);
  service->Unary("ForkJob", &rpc::ForkJob);
  service->Unary("ListCheckpoints", &rpc::ListCheckpoints);
  service->Unary("DeleteJob", &rpc::DeleteJob);
  service->Stream("WatchJob", &rpc::WatchJob);
  service->Stream("WatchJobs", &rpc::WatchJobs, &TellCursor);
  service->Stream("ReadLog", &rpc::ReadLog);
  service->Stream("ReadArtifact", &rpc::ReadArtifact);
  return service;
}

}  // namespace tandem
