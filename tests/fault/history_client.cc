#include "tests/fault/history_client.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::testing {

HistoryClient::HistoryClient(const DaemonProcess& daemon, HistoryRecorder* recorder, int number)
    : recorder_(recorder),
      number_(number),
      authorization_(absl::StrCat("Bearer ", daemon.Token())),
      stub_(v1::JobService::NewStub(daemon.NewChannel())) {}

Call HistoryClient::Begin(CallKind kind, const std::string& job) const {
  Call call;
  call.client = number_;
  call.kind = kind;
  call.job = job;
  call.begin = recorder_->Now();
  return call;
}

std::unique_ptr<grpc::ClientContext> HistoryClient::NewContext(absl::Duration deadline) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata("authorization", authorization_);
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(deadline));
  return context;
}

SeenJob HistoryClient::Seen(const v1::Job& job, absl::Duration begin, absl::Duration end) {
  return {job.name(), job.spec().name(), job.state(), job.last_sequence(), begin, end};
}

Call HistoryClient::End(Call call, const grpc::Status& status, const v1::Job* job) {
  call.end = recorder_->Now();
  call.code = status.error_code();
  call.message = status.error_message();
  if (status.ok() && job != nullptr) call.jobs.push_back(Seen(*job, call.begin, call.end));
  recorder_->Add(call);
  return call;
}

Call HistoryClient::Create(const v1::JobSpec& spec, const std::string& request_id, bool is_valid,
                           absl::Duration deadline) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  const auto context = NewContext(deadline);
  v1::Job job;
  Call call = Begin(CallKind::kCreate, "");
  call.request_id = request_id;
  call.spec_name = spec.name();
  call.is_valid = is_valid;
  const grpc::Status status = stub_->CreateJob(context.get(), request, &job);
  return End(std::move(call), status, &job);
}

template <typename Request>
Call HistoryClient::OfJob(CallKind kind, const std::string& name, absl::Duration deadline,
                          Method<Request> method) {
  Request request;
  request.set_name(name);
  const auto context = NewContext(deadline);
  v1::Job job;
  Call call = Begin(kind, name);
  const grpc::Status status = ((*stub_).*method)(context.get(), request, &job);
  return End(std::move(call), status, &job);
}

Call HistoryClient::Get(const std::string& name, absl::Duration deadline) {
  return OfJob(CallKind::kGet, name, deadline, &v1::JobService::Stub::GetJob);
}

Call HistoryClient::Cancel(const std::string& name, absl::Duration deadline) {
  return OfJob(CallKind::kCancel, name, deadline, &v1::JobService::Stub::CancelJob);
}

Call HistoryClient::Pause(const std::string& name, absl::Duration deadline) {
  return OfJob(CallKind::kPause, name, deadline, &v1::JobService::Stub::PauseJob);
}

Call HistoryClient::Resume(const std::string& name, absl::Duration deadline) {
  return OfJob(CallKind::kResume, name, deadline, &v1::JobService::Stub::ResumeJob);
}

Call HistoryClient::Delete(const std::string& name, absl::Duration deadline) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  const auto context = NewContext(deadline);
  google::protobuf::Empty nothing;
  Call call = Begin(CallKind::kDelete, name);
  const grpc::Status status = stub_->DeleteJob(context.get(), request, &nothing);
  return End(std::move(call), status);
}

Call HistoryClient::List(int page_size, const std::vector<v1::JobState>& states, absl::Duration deadline) {
  v1::ListJobsRequest request;
  request.set_page_size(page_size);
  for (const v1::JobState state : states) request.add_states(state);
  Call call = Begin(CallKind::kList, "");
  call.states = states;
  grpc::Status status;
  do {
    const absl::Duration begin = recorder_->Now();
    const auto context = NewContext(deadline - (begin - call.begin));
    v1::ListJobsResponse response;
    status = stub_->ListJobs(context.get(), request, &response);
    if (!status.ok()) break;
    const absl::Duration end = recorder_->Now();
    for (const v1::Job& job : response.jobs()) call.jobs.push_back(Seen(job, begin, end));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return End(std::move(call), status);
}

Call HistoryClient::Watch(const std::string& name, int64_t after_sequence, absl::Duration deadline) {
  v1::WatchJobRequest request;
  request.set_name(name);
  request.set_after_sequence(after_sequence);
  const auto context = NewContext(deadline);
  Call call = Begin(CallKind::kWatch, name);
  call.after_sequence = after_sequence;
  const auto reader = stub_->WatchJob(context.get(), request);
  for (v1::JobEvent event; reader->Read(&event);) call.events.push_back({event, recorder_->Now()});
  return End(std::move(call), reader->Finish());
}

}  // namespace tandem::testing
