#include "tests/integration/api.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "gtest/gtest.h"
#include "tests/integration/processes.h"

namespace tandem::testing {

Api::Api(const DaemonProcess& daemon, std::string token)
    : daemon_(daemon),
      token_(std::move(token)),
      jobs_(v1::JobService::NewStub(daemon.NewChannel())),
      daemon_stub_(v1::DaemonService::NewStub(daemon.NewChannel())) {}

template <typename Call>
void Api::Expect(const char* what, Call call) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  context.set_wait_for_ready(true);
  const grpc::Status status = call(&context);
  EXPECT_TRUE(status.ok()) << what << ": " << status.error_code() << " " << status.error_message();
}

v1::Job Api::Create(const v1::JobSpec& spec, const std::string& request_id) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  v1::Job job;
  Expect("CreateJob", [&](grpc::ClientContext* context) { return jobs_->CreateJob(context, request, &job); });
  return job;
}

grpc::Status Api::TryCreate(const v1::JobSpec& spec) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  v1::Job job;
  return jobs_->CreateJob(&context, request, &job);
}

v1::Job Api::Get(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  Expect("GetJob", [&](grpc::ClientContext* context) { return jobs_->GetJob(context, request, &job); });
  return job;
}

std::vector<v1::Job> Api::List() {
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  v1::ListJobsResponse response;
  Expect("ListJobs",
         [&](grpc::ClientContext* context) { return jobs_->ListJobs(context, request, &response); });
  return {response.jobs().begin(), response.jobs().end()};
}

v1::Job Api::Cancel(const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  v1::Job job;
  Expect("CancelJob", [&](grpc::ClientContext* context) { return jobs_->CancelJob(context, request, &job); });
  return job;
}

v1::Job Api::Pause(const std::string& name) {
  v1::PauseJobRequest request;
  request.set_name(name);
  v1::Job job;
  Expect("PauseJob", [&](grpc::ClientContext* context) { return jobs_->PauseJob(context, request, &job); });
  return job;
}

v1::Job Api::Resume(const std::string& name) {
  v1::ResumeJobRequest request;
  request.set_name(name);
  v1::Job job;
  Expect("ResumeJob", [&](grpc::ClientContext* context) { return jobs_->ResumeJob(context, request, &job); });
  return job;
}

v1::Job Api::Fork(const std::string& name, int64_t step, const v1::JobSpec* spec) {
  v1::ForkJobRequest request;
  request.set_name(name);
  if (step >= 0) request.set_step(step);
  if (spec != nullptr) *request.mutable_spec() = *spec;
  v1::Job job;
  Expect("ForkJob", [&](grpc::ClientContext* context) { return jobs_->ForkJob(context, request, &job); });
  return job;
}

std::vector<int64_t> Api::Checkpoints(const std::string& name) {
  v1::ListCheckpointsRequest request;
  request.set_job(name);
  v1::ListCheckpointsResponse response;
  Expect("ListCheckpoints",
         [&](grpc::ClientContext* context) { return jobs_->ListCheckpoints(context, request, &response); });
  std::vector<int64_t> steps;
  for (const v1::Checkpoint& checkpoint : response.checkpoints()) steps.push_back(checkpoint.step());
  return steps;
}

grpc::Status Api::TryResume(const std::string& name) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  v1::ResumeJobRequest request;
  request.set_name(name);
  v1::Job job;
  return jobs_->ResumeJob(&context, request, &job);
}

grpc::Status Api::TryCancel(const std::string& name) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  v1::CancelJobRequest request;
  request.set_name(name);
  v1::Job job;
  return jobs_->CancelJob(&context, request, &job);
}

grpc::Status Api::TryPause(const std::string& name) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  v1::PauseJobRequest request;
  request.set_name(name);
  v1::Job job;
  return jobs_->PauseJob(&context, request, &job);
}

grpc::Status Api::TrySetPriority(const std::string& name, int priority) {
  grpc::ClientContext context;
  daemon_.Prepare(context, absl::Seconds(60), token_);
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(name);
  request.mutable_job()->set_priority(priority);
  request.mutable_update_mask()->add_paths("priority");
  v1::Job job;
  return jobs_->UpdateJob(&context, request, &job);
}

void Api::Delete(const std::string& name) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  google::protobuf::Empty nothing;
  Expect("DeleteJob",
         [&](grpc::ClientContext* context) { return jobs_->DeleteJob(context, request, &nothing); });
}

std::string Api::MakeToken(const std::string& user) {
  v1::CreateTokenRequest request;
  request.mutable_token()->set_user(user);
  v1::CreateTokenResponse response;
  Expect("CreateToken", [&](grpc::ClientContext* context) {
    return daemon_stub_->CreateToken(context, request, &response);
  });
  return response.secret();
}

v1::ListQueueResponse Api::Queue() {
  v1::ListQueueResponse response;
  Expect("ListQueue", [&](grpc::ClientContext* context) {
    return daemon_stub_->ListQueue(context, v1::ListQueueRequest(), &response);
  });
  return response;
}

std::vector<v1::Device> Api::Devices() {
  v1::ListDevicesResponse response;
  Expect("ListDevices", [&](grpc::ClientContext* context) {
    return daemon_stub_->ListDevices(context, v1::ListDevicesRequest(), &response);
  });
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
