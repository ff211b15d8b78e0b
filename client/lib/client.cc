#include "client/lib/client.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/listener_check.h"
#include "client/lib/status_details.h"
#include "client/lib/steady_now.h"

namespace tandem::client {
namespace {

constexpr absl::Duration kShutdownTimeout = absl::Minutes(10);
// Of calls that may make the daemon read a whole data set.
constexpr absl::Duration kReadingTimeout = absl::Minutes(10);
// Timeout of GetJobHistory, which reads a whole log.
constexpr absl::Duration kHistoryTimeout = absl::Minutes(1);
constexpr int kLargestPage = 1000;
// The longest time for which a refused call is repeated.
constexpr absl::Duration kMostWaiting = absl::Seconds(30);
// The least interval between two polls of a sweep, and the least ratio of the interval to the answer's time.
constexpr absl::Duration kSweepInterval = absl::Seconds(1);
constexpr int kSweepIdleness = 10;
// How long a check of the listeners at the daemon's address stays valid.
constexpr absl::Duration kListenersKnown = absl::Seconds(1);

// Returns the users that may listen at the address if the client is to send its token. Empty: any user.
std::vector<uid_t> TrustedListeners(const ConnectionOptions& options) {
  // With TLS, the certificate identifies the daemon.
  const bool is_needed = !options.token.empty() && !UsesTls(options) && IsLocalAddress(options.address);
  return is_needed ? options.trusted_listeners : std::vector<uid_t>();
}

// Returns a request for a resource by its name.
template <typename Request>
Request Named(absl::string_view name) {
  Request request;
  request.set_name(std::string(name));
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Create(const ConnectionOptions& options,
                                                       const ReconnectPolicy& reconnect) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel(options);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Client>(new Client(options, reconnect, *std::move(channel)));
}

Client::Client(const ConnectionOptions& options, const ReconnectPolicy& reconnect,
               std::shared_ptr<grpc::Channel> channel)
    : address_(options.address),
      authorization_(options.token.empty() ? "" : "Bearer " + options.token),
      trusted_listeners_(TrustedListeners(options)),
      timeout_(options.timeout),
      reconnect_(reconnect),
      channel_(std::move(channel)),
      jobs_(v1::JobService::NewStub(channel_)),
      models_(v1::ModelService::NewStub(channel_)),
      daemon_(v1::DaemonService::NewStub(channel_)),
      datasets_(v1::DatasetService::NewStub(channel_)),
      sweeps_(v1::SweepService::NewStub(channel_)) {}

absl::Status Client::CheckListeners(bool anew) const {
  if (trusted_listeners_.empty()) return absl::OkStatus();
  const int64_t now = absl::ToInt64Nanoseconds(SteadyNow());
  if (!anew && now < trusted_until_.load()) return absl::OkStatus();
  absl::Status status = CheckListener(address_, trusted_listeners_);
  trusted_until_.store(status.ok() ? now + absl::ToInt64Nanoseconds(kListenersKnown) : 0);
  return status;
}

absl::Status Client::Prepare(grpc::ClientContext* context) const {
  if (absl::Status status = CheckListeners(/*anew=*/false); !status.ok()) return status;
  if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
  return absl::OkStatus();
}

void Client::PrepareStream(grpc::ClientContext* context, absl::Status* refused) const {
  *refused = CheckListeners(/*anew=*/true);
  if (!refused->ok()) {
    context->TryCancel();
  } else if (!authorization_.empty()) {
    context->AddMetadata("authorization", authorization_);
  }
}

template <typename Stub, typename Request, typename Response, typename Wait>
absl::StatusOr<Response> Client::CallWith(Stub& stub,
                                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                       Response*),
                                          const Request& request, absl::Duration timeout, const Wait& wait) {
  const absl::Duration give_up = SteadyNow() + kMostWaiting;
  while (true) {
    grpc::ClientContext context;
    if (absl::Status refused = Prepare(&context); !refused.ok()) return refused;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    Response response;
    const grpc::Status status = wait(&context, [&] { return (stub.*method)(&context, request, &response); });
    if (status.ok()) return response;
    const absl::Status error = FromGrpcStatus(status);
    // Another user may listen before the next call.
    if (absl::IsUnavailable(error)) trusted_until_.store(0);
    // A refused call had no effect, so the client may repeat it.
    if (!AwaitRetry(error, give_up)) return error;
  }
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Client::LongCall(Stub& stub,
                                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                       Response*),
                                          const Request& request, absl::Duration timeout) {
  // The observer is not thread-safe, so this thread calls it.
  const auto wait = [this](grpc::ClientContext* context, const auto& call) {
    if (wait_observer_ == nullptr) return call();
    std::future<grpc::Status> end = std::async(std::launch::async, call);
    do {
      if (!wait_observer_->KeepWaiting()) context->TryCancel();
    } while (end.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready);
    return end.get();
  };
  return WhileFetching(fetch_observer_, [&] { return CallWith(stub, method, request, timeout, wait); });
}

template <typename Item, typename Stub, typename Request, typename Response, typename Items>
absl::StatusOr<std::vector<Item>> Client::ListAll(
    Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    Request request, absl::Duration timeout, const Items& items, absl::optional<int> limit) {
  std::vector<Item> all;
  while (true) {
    if (limit.has_value()) {
      const int wanted = *limit == 0 ? kLargestPage : *limit - static_cast<int>(all.size());
      request.set_page_size(std::min(wanted, kLargestPage));
    }
    absl::StatusOr<Response> page = Call(stub, method, request, timeout);
    if (!page.ok()) return page.status();
    for (Item& item : *items(*page)) all.push_back(std::move(item));
    const bool enough = limit.value_or(0) != 0 && all.size() >= static_cast<size_t>(*limit);
    if (page->next_page_token().empty() || enough) return all;
    request.set_page_token(page->next_page_token());
  }
}

bool Client::AwaitRetry(const absl::Status& status, absl::Duration give_up) const {
  const absl::optional<absl::Duration> delay = ShortRetryDelay(status);
  if (!delay.has_value() || SteadyNow() + *delay > give_up) return false;
  if (wait_observer_ != nullptr) wait_observer_->OnAskedToWait(status, *delay);
  const absl::Duration end = SteadyNow() + *delay;
  for (absl::Duration now = SteadyNow(); now < end; now = SteadyNow()) {
    if (wait_observer_ != nullptr && !wait_observer_->KeepWaiting()) return false;
    absl::SleepFor(std::min(end - now, absl::Milliseconds(100)));
  }
  return true;
}

absl::StatusOr<v1::Job> Client::CreateJob(const v1::JobSpec& spec, absl::string_view request_id,
                                          bool validate_only) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(std::string(request_id));
  request.set_validate_only(validate_only);
  return LongCall(*jobs_, &v1::JobService::Stub::CreateJob, request, std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<v1::Job> Client::GetJob(absl::string_view name, absl::Duration at_most) {
  return Call(*jobs_, &v1::JobService::Stub::GetJob, Named<v1::GetJobRequest>(name),
              std::min(timeout_, at_most));
}

absl::StatusOr<v1::GetJobHistoryResponse> Client::GetJobHistory(v1::GetJobHistoryRequest request) {
  absl::StatusOr<v1::GetJobHistoryResponse> whole;
  do {
    absl::StatusOr<v1::GetJobHistoryResponse> page =
        Call(*jobs_, &v1::JobService::Stub::GetJobHistory, request, std::max(timeout_, kHistoryTimeout));
    if (!page.ok()) return page;
    request.set_page_token(page->next_page_token());
    if (whole.ok()) {
      page->clear_next_page_token();
      whole->MergeFrom(*page);
    } else {
      whole = std::move(page);
    }
  } while (!request.page_token().empty());
  whole->clear_next_page_token();
  return whole;
}

absl::StatusOr<std::vector<v1::Job>> Client::ListJobs(const ListJobsOptions& options) {
  v1::ListJobsRequest request;
  for (const v1::JobState state : options.states) request.add_states(state);
  request.set_order_by(options.order_by);
  return ListAll<v1::Job>(
      *jobs_, &v1::JobService::Stub::ListJobs, std::move(request), timeout_,
      [](auto& page) { return page.mutable_jobs(); }, options.limit);
}

absl::StatusOr<v1::Job> Client::SetPriority(absl::string_view name, int priority) {
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(std::string(name));
  request.mutable_job()->set_priority(priority);
  request.mutable_update_mask()->add_paths("priority");
  return Call(*jobs_, &v1::JobService::Stub::UpdateJob, request, timeout_);
}

absl::StatusOr<v1::Job> Client::CancelJob(absl::string_view name) {
  return Call(*jobs_, &v1::JobService::Stub::CancelJob, Named<v1::CancelJobRequest>(name), timeout_);
}

absl::StatusOr<v1::Job> Client::PauseJob(absl::string_view name) {
  return Call(*jobs_, &v1::JobService::Stub::PauseJob, Named<v1::PauseJobRequest>(name), timeout_);
}

absl::StatusOr<v1::Job> Client::ResumeJob(absl::string_view name, bool accept_changed_data) {
  auto request = Named<v1::ResumeJobRequest>(name);
  request.set_accept_changed_data(accept_changed_data);
  return LongCall(*jobs_, &v1::JobService::Stub::ResumeJob, request, std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<v1::Job> Client::ForkJob(const v1::ForkJobRequest& request) {
  return LongCall(*jobs_, &v1::JobService::Stub::ForkJob, request, std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<std::vector<v1::Checkpoint>> Client::ListCheckpoints(absl::string_view name) {
  v1::ListCheckpointsRequest request;
  request.set_job(std::string(name));
  return ListAll<v1::Checkpoint>(*jobs_, &v1::JobService::Stub::ListCheckpoints, std::move(request), timeout_,
                                 [](auto& page) { return page.mutable_checkpoints(); });
}

absl::Status Client::DeleteJob(absl::string_view name) {
  return Call(*jobs_, &v1::JobService::Stub::DeleteJob, Named<v1::DeleteJobRequest>(name), timeout_).status();
}

absl::StatusOr<v1::Sweep> Client::CreateSweep(const v1::Sweep& sweep, absl::string_view request_id,
                                              bool validate_only) {
  v1::CreateSweepRequest request;
  *request.mutable_sweep() = sweep;
  request.set_request_id(std::string(request_id));
  request.set_validate_only(validate_only);
  return LongCall(*sweeps_, &v1::SweepService::Stub::CreateSweep, request,
                  std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<v1::Sweep> Client::GetSweep(absl::string_view name) {
  return Call(*sweeps_, &v1::SweepService::Stub::GetSweep, Named<v1::GetSweepRequest>(name), timeout_);
}

absl::StatusOr<v1::Sweep> Client::FollowSweep(absl::string_view name, StreamObserver& observer,
                                              const std::function<void(const v1::Sweep&)>& on_sweep) {
  Reconnector reconnector(reconnect_, channel_.get(), observer);
  while (true) {
    const absl::Duration asked = SteadyNow();
    absl::StatusOr<v1::Sweep> sweep = GetSweep(name);
    if (!sweep.ok()) {
      // A daemon that answers too late may answer the next call in time.
      const bool late = absl::IsDeadlineExceeded(sweep.status());
      if (!late && !IsWorthReconnecting(sweep.status())) return sweep;
      if (absl::Status end = reconnector.OnBreak(sweep.status()); !end.ok()) return end;
      continue;
    }
    reconnector.OnMessage();
    on_sweep(*sweep);
    if (sweep->state() != v1::SWEEP_STATE_ACTIVE && sweep->state() != v1::SWEEP_STATE_CANCELLING)
      return sweep;
    const absl::Duration answered = SteadyNow();
    const absl::Duration next = answered + std::max(kSweepInterval, kSweepIdleness * (answered - asked));
    for (absl::Duration now = answered; now < next; now = SteadyNow()) {
      if (!observer.KeepGoing()) return absl::CancelledError("stopped");
      absl::SleepFor(std::min(next - now, absl::Milliseconds(100)));
    }
  }
}

absl::StatusOr<std::vector<v1::Sweep>> Client::ListSweeps(int limit) {
  return ListAll<v1::Sweep>(
      *sweeps_, &v1::SweepService::Stub::ListSweeps, v1::ListSweepsRequest(), timeout_,
      [](auto& page) { return page.mutable_sweeps(); }, limit);
}

absl::StatusOr<v1::Sweep> Client::CancelSweep(absl::string_view name) {
  return Call(*sweeps_, &v1::SweepService::Stub::CancelSweep, Named<v1::CancelSweepRequest>(name), timeout_);
}

absl::Status Client::DeleteSweep(absl::string_view name) {
  return Call(*sweeps_, &v1::SweepService::Stub::DeleteSweep, Named<v1::DeleteSweepRequest>(name), timeout_)
      .status();
}

absl::StatusOr<v1::Daemon> Client::GetDaemon() {
  return Call(*daemon_, &v1::DaemonService::Stub::GetDaemon, v1::GetDaemonRequest(), timeout_);
}

absl::StatusOr<DaemonAnswer> Client::AskDaemon() {
  grpc::ClientContext context;
  if (absl::Status refused = Prepare(&context); !refused.ok()) return refused;
  const absl::Time sent = absl::Now();
  const absl::Duration begin = SteadyNow();
  context.set_deadline(absl::ToChronoTime(sent + timeout_));
  DaemonAnswer answer;
  if (grpc::Status status = daemon_->GetDaemon(&context, v1::GetDaemonRequest(), &answer.daemon);
      !status.ok())
    return FromGrpcStatus(status);
  answer.round_trip = SteadyNow() - begin;
  const auto& metadata = context.GetServerInitialMetadata();
  const auto time = metadata.find("tandem-time-ms");
  int64_t milliseconds = 0;
  if (time != metadata.end() &&
      absl::SimpleAtoi(absl::string_view(time->second.data(), time->second.size()), &milliseconds)) {
    answer.clock_lead = absl::FromUnixMillis(milliseconds) - (sent + answer.round_trip / 2);
  }
  return answer;
}

absl::StatusOr<std::vector<v1::Device>> Client::ListDevices(v1::ListDevicesResponse* cluster) {
  v1::ListDevicesRequest request;
  std::vector<v1::Device> all;
  do {
    absl::StatusOr<v1::ListDevicesResponse> page =
        Call(*daemon_, &v1::DaemonService::Stub::ListDevices, request, timeout_);
    if (!page.ok()) return page.status();
    for (v1::Device& one : *page->mutable_devices()) all.push_back(std::move(one));
    // The first page has the partitions.
    if (cluster != nullptr && request.page_token().empty()) {
      cluster->mutable_partitions()->Swap(page->mutable_partitions());
      cluster->set_partitions_message(page->partitions_message());
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Device> Client::DrainDevice(absl::string_view name, absl::string_view reason) {
  auto request = Named<v1::DrainDeviceRequest>(name);
  request.set_reason(std::string(reason));
  return Call(*daemon_, &v1::DaemonService::Stub::DrainDevice, request, timeout_);
}

absl::StatusOr<v1::Device> Client::ResumeDevice(absl::string_view name) {
  return Call(*daemon_, &v1::DaemonService::Stub::ResumeDevice, Named<v1::ResumeDeviceRequest>(name),
              timeout_);
}

absl::StatusOr<v1::Device> Client::ExcludeDevice(absl::string_view name, absl::string_view reason) {
  auto request = Named<v1::ExcludeDeviceRequest>(name);
  request.set_reason(std::string(reason));
  return Call(*daemon_, &v1::DaemonService::Stub::ExcludeDevice, request, timeout_);
}

absl::StatusOr<v1::ListQueueResponse> Client::ListQueue(int limit) {
  v1::ListQueueRequest request;
  request.set_page_size(limit);
  return Call(*daemon_, &v1::DaemonService::Stub::ListQueue, request, timeout_);
}

absl::StatusOr<v1::CreateTokenResponse> Client::CreateToken(const v1::Token& token) {
  v1::CreateTokenRequest request;
  *request.mutable_token() = token;
  return Call(*daemon_, &v1::DaemonService::Stub::CreateToken, request, timeout_);
}

absl::StatusOr<std::vector<v1::Token>> Client::ListTokens() {
  return ListAll<v1::Token>(*daemon_, &v1::DaemonService::Stub::ListTokens, v1::ListTokensRequest(), timeout_,
                            [](auto& page) { return page.mutable_tokens(); });
}

absl::StatusOr<v1::Token> Client::RevokeToken(absl::string_view name) {
  return Call(*daemon_, &v1::DaemonService::Stub::RevokeToken, Named<v1::RevokeTokenRequest>(name), timeout_);
}

absl::StatusOr<v1::Backup> Client::CreateBackup() {
  return Call(*daemon_, &v1::DaemonService::Stub::CreateBackup, v1::CreateBackupRequest(),
              std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<std::vector<v1::Backup>> Client::ListBackups() {
  return ListAll<v1::Backup>(*daemon_, &v1::DaemonService::Stub::ListBackups, v1::ListBackupsRequest(),
                             timeout_, [](auto& page) { return page.mutable_backups(); });
}

absl::StatusOr<std::vector<v1::Dataset>> Client::ListDatasets(absl::Duration at_most) {
  return ListAll<v1::Dataset>(*daemon_, &v1::DaemonService::Stub::ListDatasets, v1::ListDatasetsRequest(),
                              std::min(std::max(timeout_, kReadingTimeout), at_most),
                              [](auto& page) { return page.mutable_datasets(); });
}

absl::StatusOr<v1::Dataset> Client::GetDataset(absl::string_view name) {
  return Call(*daemon_, &v1::DaemonService::Stub::GetDataset, Named<v1::GetDatasetRequest>(name),
              std::max(timeout_, kReadingTimeout));
}

absl::StatusOr<v1::Dataset> Client::CreateDataset(const v1::CreateDatasetRequest& request) {
  return LongCall(*datasets_, &v1::DatasetService::Stub::CreateDataset, request,
                  std::max(timeout_, kReadingTimeout));
}

absl::Status Client::DeleteDataset(const v1::DeleteDatasetRequest& request) {
  return Call(*datasets_, &v1::DatasetService::Stub::DeleteDataset, request, timeout_).status();
}

absl::StatusOr<v1::Upload> Client::CreateUpload(const UploadPlan& plan) {
  v1::CreateUploadRequest request;
  request.mutable_upload()->set_manifest_sha256(plan.manifest_sha256);
  request.mutable_upload()->set_files(static_cast<int64_t>(plan.files.size()));
  request.mutable_upload()->set_bytes(plan.bytes);
  return Call(*datasets_, &v1::DatasetService::Stub::CreateUpload, request, timeout_);
}

absl::StatusOr<std::vector<v1::Upload>> Client::ListUploads() {
  return ListAll<v1::Upload>(*datasets_, &v1::DatasetService::Stub::ListUploads, v1::ListUploadsRequest(),
                             timeout_, [](auto& page) { return page.mutable_uploads(); });
}

absl::Status Client::DeleteUpload(absl::string_view name) {
  return Call(*datasets_, &v1::DatasetService::Stub::DeleteUpload, Named<v1::DeleteUploadRequest>(name),
              timeout_)
      .status();
}

absl::StatusOr<v1::Dataset> Client::FetchDataset(absl::string_view name) {
  auto request = Named<v1::FetchDatasetRequest>(name);
  bool observed = false;
  while (true) {
    absl::StatusOr<v1::Dataset> dataset =
        Call(*datasets_, &v1::DatasetService::Stub::FetchDataset, request, timeout_);
    if (!dataset.ok() || dataset->state() != v1::DATASET_STATE_FETCHING ||
        (fetch_observer_ != nullptr && !fetch_observer_->OnFetching(dataset->fetch()))) {
      if (observed) fetch_observer_->OnFetched();
      return dataset;
    }
    observed = fetch_observer_ != nullptr;
  }
}

absl::StatusOr<int> Client::Shutdown(bool cancel_jobs) {
  v1::ShutdownRequest request;
  request.set_cancel_jobs(cancel_jobs);
  absl::StatusOr<v1::ShutdownResponse> response =
      Call(*daemon_, &v1::DaemonService::Stub::Shutdown, request,
           cancel_jobs ? std::max(timeout_, kShutdownTimeout) : timeout_);
  if (!response.ok()) return response.status();
  return response->cancelled_jobs();
}

absl::StatusOr<v1::ModelDescription> Client::DescribeModel(const v1::DescribeModelRequest& request) {
  return LongCall(*models_, &v1::ModelService::Stub::DescribeModel, request,
                  std::max(timeout_, kReadingTimeout));
}

}  // namespace tandem::client
