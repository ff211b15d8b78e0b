#include "absl/strings/str_cat.h"
#include "server/rpc/call_frame.h"
#include "server/rpc/handlers.h"
#include "server/rpc/serve_handler.h"
#include "server/rpc/services.h"
#include "tandem/v1/job_service.grpc.pb.h"

namespace tandem {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::ServerWriteReactor;

class JobService final : public v1::JobService::CallbackService {
 public:
  JobService(const RpcContext* context, OpenCalls* calls) : context_(context), calls_(calls) {}

  ServerUnaryReactor* CreateJob(CallbackServerContext* context, const v1::CreateJobRequest* request,
                                v1::Job* response) override {
    return Unary("CreateJob", context, request, response, &rpc::CreateJob);
  }
  ServerUnaryReactor* GetJob(CallbackServerContext* context, const v1::GetJobRequest* request,
                             v1::Job* response) override {
    return Unary("GetJob", context, request, response, &rpc::GetJob);
  }
  ServerUnaryReactor* ListJobs(CallbackServerContext* context, const v1::ListJobsRequest* request,
                               v1::ListJobsResponse* response) override {
    return Unary("ListJobs", context, request, response, &rpc::ListJobs);
  }
  ServerUnaryReactor* UpdateJob(CallbackServerContext* context, const v1::UpdateJobRequest* request,
                                v1::Job* response) override {
    return Unary("UpdateJob", context, request, response, &rpc::UpdateJob);
  }
  ServerUnaryReactor* CancelJob(CallbackServerContext* context, const v1::CancelJobRequest* request,
                                v1::Job* response) override {
    return Unary("CancelJob", context, request, response, &rpc::CancelJob);
  }
  ServerUnaryReactor* PauseJob(CallbackServerContext* context, const v1::PauseJobRequest* request,
                               v1::Job* response) override {
    return Unary("PauseJob", context, request, response, &rpc::PauseJob);
  }
  ServerUnaryReactor* ResumeJob(CallbackServerContext* context, const v1::ResumeJobRequest* request,
                                v1::Job* response) override {
    return Unary("ResumeJob", context, request, response, &rpc::ResumeJob);
  }
  ServerUnaryReactor* ForkJob(CallbackServerContext* context, const v1::ForkJobRequest* request,
                              v1::Job* response) override {
    return Unary("ForkJob", context, request, response, &rpc::ForkJob);
  }
  ServerUnaryReactor* ListCheckpoints(CallbackServerContext* context,
                                      const v1::ListCheckpointsRequest* request,
                                      v1::ListCheckpointsResponse* response) override {
    return Unary("ListCheckpoints", context, request, response, &rpc::ListCheckpoints);
  }
  ServerUnaryReactor* DeleteJob(CallbackServerContext* context, const v1::DeleteJobRequest* request,
                                google::protobuf::Empty* response) override {
    return Unary("DeleteJob", context, request, response, &rpc::DeleteJob);
  }
  ServerWriteReactor<v1::JobEvent>* WatchJob(CallbackServerContext* context,
                                             const v1::WatchJobRequest* request) override {
    return Stream<v1::JobEvent>("WatchJob", context, request, &rpc::WatchJob);
  }
  ServerWriteReactor<v1::WatchJobsResponse>* WatchJobs(CallbackServerContext* context,
                                                       const v1::WatchJobsRequest* request) override {
    v1::WatchJobsRequest resolved = *request;
    if (request->after_cursor() == -1) {
      resolved.set_after_cursor(context_->events->newest_cursor());
      context->AddInitialMetadata("tandem-cursor", absl::StrCat(resolved.after_cursor()));
    }
    return Stream<v1::WatchJobsResponse>("WatchJobs", context, &resolved, &rpc::WatchJobs);
  }
  ServerWriteReactor<v1::ReadLogResponse>* ReadLog(CallbackServerContext* context,
                                                   const v1::ReadLogRequest* request) override {
    return Stream<v1::ReadLogResponse>("ReadLog", context, request, &rpc::ReadLog);
  }
  ServerWriteReactor<v1::ReadArtifactResponse>* ReadArtifact(
      CallbackServerContext* context, const v1::ReadArtifactRequest* request) override {
    return Stream<v1::ReadArtifactResponse>("ReadArtifact", context, request, &rpc::ReadArtifact);
  }

 private:
  template <typename... Arguments>
  ServerUnaryReactor* Unary(Arguments... arguments) {
    return ServeHandler(*context_, calls_, arguments...);
  }
  template <typename Response, typename Request>
  ServerWriteReactor<Response>* Stream(absl::string_view method, CallbackServerContext* context,
                                       const Request* request,
                                       rpc::Source<Response> (*handler)(const RpcContext&, const Caller&,
                                                                        const Request&)) {
    return ServeStream<Response>(
        *context_, &calls_->streams, method, context, request,
        [this, handler](const Caller& caller, const Request& r) { return handler(*context_, caller, r); });
  }
  template <typename Response, typename Request>
  ServerWriteReactor<Response>* Stream(absl::string_view method, CallbackServerContext* context,
                                       const Request* request,
                                       rpc::Source<Response> (*handler)(const RpcContext&, const Request&)) {
    return ServeStream<Response>(
        *context_, &calls_->streams, method, context, request,
        [this, handler](const Caller&, const Request& r) { return handler(*context_, r); });
  }

  const RpcContext* const context_;
  OpenCalls* const calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobService(const RpcContext* context, OpenCalls* calls) {
  return std::make_unique<JobService>(context, calls);
}

}  // namespace tandem
