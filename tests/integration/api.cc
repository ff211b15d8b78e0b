#include "tests/integration/api.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "gtest/gtest.h"
#include "tests/integration/processes.h"

namespace tandem::testing {

namespace {

using Jobs = v1::JobService::Stub;
using Daemon = v1::DaemonService::Stub;

// Returns a request for a job by its name.
template <typename Request>
Request Named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

v1::CreateJobRequest CreateRequest(const v1::JobSpec& spec, const std::string& request_id) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  return request;
}

}  // namespace

Api::Api(const DaemonProcess& daemon, std::string token)
    : daemon_(daemon),
      token_(std::move(token)),
      stubs_(v1::JobService::NewStub(daemon.NewChannel()), v1::DaemonService::NewStub(daemon.NewChannel())) {}

template <typename Stub, typename Request, typename Response>
grpc::Status Api::Try(Method<Stub, Request, Response> method, const Request& request, Response* response,
                      bool wait_for_ready) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  context.set_wait_for_ready(wait_for_ready);
  Stub& stub = *std::get<std::unique_ptr<Stub>>(stubs_);
  return (stub.*method)(&context, request, response);
}

template <typename Stub, typename Request, typename Response>
Response Api::Expect(Method<Stub, Request, Response> method, const Request& request) {
  Response response;
  const grpc::Status status = Try(method, request, &response, /*wait_for_ready=*/true);
  EXPECT_TRUE(status.ok()) << Request::descriptor()->name() << ": " << status.error_code() << " "
                           << status.error_message();
  return response;
}

template <typename Request>
grpc::Status Api::TryJob(Method<Jobs, Request, v1::Job> method, const Request& request) {
  v1::Job job;
  return Try(method, request, &job);
}

v1::Job Api::Create(const v1::JobSpec& spec, const std::string& request_id) {
  return Expect(&Jobs::CreateJob, CreateRequest(spec, request_id));
}

grpc::Status Api::TryCreate(const v1::JobSpec& spec) {
  return TryJob(&Jobs::CreateJob, CreateRequest(spec, /*request_id=*/""));
}

v1::Job Api::Get(const std::string& name) { return Expect(&Jobs::GetJob, Named<v1::GetJobRequest>(name)); }

std::vector<v1::Job> Api::List() {
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  const v1::ListJobsResponse response = Expect(&Jobs::ListJobs, request);
  return {response.jobs().begin(), response.jobs().end()};
}

v1::Job Api::Cancel(const std::string& name) {
  return Expect(&Jobs::CancelJob, Named<v1::CancelJobRequest>(name));
}

v1::Job Api::Pause(const std::string& name) {
  return Expect(&Jobs::PauseJob, Named<v1::PauseJobRequest>(name));
}

v1::Job Api::Resume(const std::string& name) {
  return Expect(&Jobs::ResumeJob, Named<v1::ResumeJobRequest>(name));
}

v1::Job Api::Fork(const std::string& name, int64_t step, const v1::JobSpec* spec) {
  auto request = Named<v1::ForkJobRequest>(name);
  if (step >= 0) request.set_step(step);
  if (spec != nullptr) *request.mutable_spec() = *spec;
  return Expect(&Jobs::ForkJob, request);
}

std::vector<int64_t> Api::Checkpoints(const std::string& name) {
  v1::ListCheckpointsRequest request;
  request.set_job(name);
  const v1::ListCheckpointsResponse response = Expect(&Jobs::ListCheckpoints, request);
  std::vector<int64_t> steps;
  for (const v1::Checkpoint& checkpoint : response.checkpoints()) steps.push_back(checkpoint.step());
  return steps;
}

grpc::Status Api::TryResume(const std::string& name) {
  return TryJob(&Jobs::ResumeJob, Named<v1::ResumeJobRequest>(name));
}

grpc::Status Api::TryCancel(const std::string& name) {
  return TryJob(&Jobs::CancelJob, Named<v1::CancelJobRequest>(name));
}

grpc::Status Api::TryPause(const std::string& name) {
  return TryJob(&Jobs::PauseJob, Named<v1::PauseJobRequest>(name));
}

grpc::Status Api::TrySetPriority(const std::string& name, int priority) {
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(name);
  request.mutable_job()->set_priority(priority);
  request.mutable_update_mask()->add_paths("priority");
  return TryJob(&Jobs::UpdateJob, request);
}

void Api::Delete(const std::string& name) { Expect(&Jobs::DeleteJob, Named<v1::DeleteJobRequest>(name)); }

std::string Api::MakeToken(const std::string& user) {
  v1::CreateTokenRequest request;
  request.mutable_token()->set_user(user);
  return Expect(&Daemon::CreateToken, request).secret();
}

v1::ListQueueResponse Api::Queue() { return Expect(&Daemon::ListQueue, v1::ListQueueRequest()); }

std::vector<v1::Device> Api::Devices() {
  const v1::ListDevicesResponse response = Expect(&Daemon::ListDevices, v1::ListDevicesRequest());
  return {response.devices().begin(), response.devices().end()};
}

v1::Job Api::WaitFor(const std::string& name, v1::JobState state, absl::Duration timeout) {
  v1::Job job;
  const auto there = [&] {
    job = Get(name);
    return job.name().empty() || job.state() == state || IsTerminal(job.state());
  };
  EXPECT_TRUE(WaitUntil(there, timeout)) << "still " << v1::JobState_Name(job.state()) << "\n"
                                         << daemon_.Log();
  return job;
}

std::string Api::CreateAndAwait(const v1::JobSpec& spec, v1::JobState state, absl::Duration timeout) {
  const std::string job = Create(spec).name();
  EXPECT_EQ(WaitFor(job, state, timeout).state(), state);
  return job;
}

bool IsTerminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

int CheckHealth(const DaemonProcess& daemon) {
  // grpc.health.v1 has messages of a field or none; they are written out here, for the system has no library
  // of them.
  grpc::GenericStub stub(daemon.NewChannel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const grpc::ByteBuffer request(nullptr, 0);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (!status.ok() || !response.Dump(&slices).ok()) return -1;
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  // Field 1, a varint: the serving status.
  return bytes.size() == 2 && bytes[0] == 0x08 ? bytes[1] : -1;
}

}  // namespace tandem::testing
