#ifndef TANDEM_CLIENT_LIB_CLIENT_H_
#define TANDEM_CLIENT_LIB_CLIENT_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "client/lib/connection.h"
#include "client/lib/resumable_stream.h"
#include "client/lib/upload_plan.h"
#include "client/lib/wait_observer.h"
#include "client/lib/while_fetching.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tandem/v1/model_service.grpc.pb.h"
#include "tandem/v1/sweep_service.grpc.pb.h"

namespace tandem::client {

// The jobs to list.
struct ListJobsOptions {
  // Lists only jobs in these states. Empty: all states.
  std::vector<v1::JobState> states;
  // The order, as in ListJobsRequest. Empty: newest first.
  std::string order_by;
  // The largest number of jobs. 0: all jobs.
  int limit = 0;
};

// A daemon's answer to GetDaemon, with measurements of the call.
struct DaemonAnswer {
  v1::Daemon daemon;
  // The time from the call to the answer. It includes connecting.
  absl::Duration round_trip;
  // The lead of the daemon's clock over this machine's clock, exact to half of round_trip. Unset if the
  // answer has no time.
  absl::optional<absl::Duration> clock_lead;
};

// A connection to a daemon. Each method is a call of the API. Errors are the daemon's, with its details as
// payloads (see status_details.h). UNAVAILABLE or DEADLINE_EXCEEDED if the daemon cannot be reached. Streams
// block until their end, and reconnect after a break unless noted. Job names are full: "jobs/<id>".
// Thread-safe.
class Client {
 public:
  // Creates a client. The first call connects. Errors are those of OpenChannel.
  static absl::StatusOr<std::unique_ptr<Client>> Create(const ConnectionOptions& options,
                                                        const ReconnectPolicy& reconnect = {});

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const { return address_; }

  // Sets the observer of fetches. CreateJob, ForkJob, ResumeJob, DescribeModel, Evaluate, CreateDataset and
  // FetchDataset repeat their call while the daemon fetches data, and notify the observer. With null they
  // wait silently. Call this before the first call. The observer must outlive the client.
  void SetFetchObserver(FetchObserver* observer) { fetch_observer_ = observer; }

  // Sets the observer of waits. If the daemon refuses a call for a moment, for example because the user calls
  // too often, the client repeats the call for at most half a minute and notifies the observer. With null it
  // waits silently. Call this before the first call. The observer must outlive the client.
  void SetWaitObserver(WaitObserver* observer) { wait_observer_ = observer; }

  absl::StatusOr<v1::Job> CreateJob(const v1::JobSpec& spec, absl::string_view request_id,
                                    bool validate_only);
  // Waits at most `at_most`, or ConnectionOptions::timeout if that is less.
  absl::StatusOr<v1::Job> GetJob(absl::string_view name, absl::Duration at_most = absl::InfiniteDuration());
  // Returns a job's log, reduced; see GetJobHistoryRequest. Requests all pages: the answer has all events.
  absl::StatusOr<v1::GetJobHistoryResponse> GetJobHistory(v1::GetJobHistoryRequest request);
  // Requests all pages.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(const ListJobsOptions& options);
  // `priority` is from -100 to 100.
  absl::StatusOr<v1::Job> SetPriority(absl::string_view name, int priority);
  absl::StatusOr<v1::Job> CancelJob(absl::string_view name);
  absl::StatusOr<v1::Job> PauseJob(absl::string_view name);
  absl::StatusOr<v1::Job> ResumeJob(absl::string_view name, bool accept_changed_data = false);
  // Creates a job from a job's checkpoint; see ForkJobRequest. Waits for data as CreateJob does.
  absl::StatusOr<v1::Job> ForkJob(const v1::ForkJobRequest& request);
  // Returns the job's checkpoints, newest first.
  absl::StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(absl::string_view name);
  absl::Status DeleteJob(absl::string_view name);
  // The daemon checks every job of the sweep, so the call may take minutes.
  absl::StatusOr<v1::Sweep> CreateSweep(const v1::Sweep& sweep, absl::string_view request_id,
                                        bool validate_only);
  // `name` is "sweeps/<id>".
  absl::StatusOr<v1::Sweep> GetSweep(absl::string_view name);
  // Follows a sweep until all its jobs have ended, and returns it. Calls `on_sweep` at once and at each poll.
  // Polls once a second, or less often if the daemon takes long to answer for a large sweep. Continues after
  // a broken connection. CANCELLED if the observer stopped it. UNAVAILABLE if the connection did not come
  // back. Other errors are those of GetSweep.
  absl::StatusOr<v1::Sweep> FollowSweep(absl::string_view name, StreamObserver& observer,
                                        const std::function<void(const v1::Sweep&)>& on_sweep);
  // Returns the newest sweeps, at most `limit` (0: all). Requests all pages.
  absl::StatusOr<std::vector<v1::Sweep>> ListSweeps(int limit);
  absl::StatusOr<v1::Sweep> CancelSweep(absl::string_view name);
  absl::Status DeleteSweep(absl::string_view name);
  absl::StatusOr<v1::Daemon> GetDaemon();
  // Returns GetDaemon's answer with measurements of the call.
  absl::StatusOr<DaemonAnswer> AskDaemon();
  // Returns all devices. If `cluster` is not null, sets its `partitions` and `partitions_message`.
  absl::StatusOr<std::vector<v1::Device>> ListDevices(v1::ListDevicesResponse* cluster = nullptr);
  // `name` is "devices/<kind>:<index>".
  absl::StatusOr<v1::Device> DrainDevice(absl::string_view name, absl::string_view reason);
  absl::StatusOr<v1::Device> ResumeDevice(absl::string_view name);
  absl::StatusOr<v1::Device> ExcludeDevice(absl::string_view name, absl::string_view reason);
  // Returns the first `limit` waiting jobs (from 1 to 10000) and all users.
  absl::StatusOr<v1::ListQueueResponse> ListQueue(int limit);
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::Token& token);
  absl::StatusOr<std::vector<v1::Token>> ListTokens();
  // `name` is "tokens/<user>".
  absl::StatusOr<v1::Token> RevokeToken(absl::string_view name);
  // The daemon reads its database twice, so the call may take minutes.
  absl::StatusOr<v1::Backup> CreateBackup();
  absl::StatusOr<std::vector<v1::Backup>> ListBackups();
  // The daemon may check files, so the call may take minutes. Waits at most `at_most`.
  absl::StatusOr<std::vector<v1::Dataset>> ListDatasets(absl::Duration at_most = absl::InfiniteDuration());
  // The daemon reads the whole data set, so the call may take minutes.
  absl::StatusOr<v1::Dataset> GetDataset(absl::string_view name);
  // Registers a data set. The daemon checks its files, so the call may take minutes.
  absl::StatusOr<v1::Dataset> CreateDataset(const v1::CreateDatasetRequest& request);
  absl::Status DeleteDataset(const v1::DeleteDatasetRequest& request);
  // Starts an upload of the plan's files, or returns an earlier upload of the same files.
  absl::StatusOr<v1::Upload> CreateUpload(const UploadPlan& plan);
  absl::StatusOr<std::vector<v1::Upload>> ListUploads();
  absl::Status DeleteUpload(absl::string_view name);
  // Uploads the files of a plan with digests, and returns the complete upload. Sends only bytes that the
  // daemon does not have. Continues after a broken connection. Calls `on_bytes` with the number of bytes that
  // the daemon has. Errors are those of UploadFiles; also FAILED_PRECONDITION if a file cannot be read or has
  // changed.
  absl::StatusOr<v1::Upload> Upload(const UploadPlan& plan, StreamObserver& observer,
                                    const std::function<void(int64_t bytes)>& on_bytes);
  // Waits until the daemon has the public data set.
  absl::StatusOr<v1::Dataset> FetchDataset(absl::string_view name);
  // Returns the number of cancelled jobs. With cancel_jobs it waits for the jobs' ends, for at most ten
  // minutes.
  absl::StatusOr<int> Shutdown(bool cancel_jobs);

  // Calls `on_event` with every event after `after_sequence`, once and in order. OK if the daemon ended the
  // stream after a terminal event. DATA_LOSS if an event is missing. CANCELLED if the observer stopped it.
  // UNAVAILABLE if the connection did not come back.
  absl::Status WatchJob(absl::string_view name, int64_t after_sequence, StreamObserver& observer,
                        const std::function<void(const v1::JobEvent&)>& on_event);

  // Calls `on_change` with the state changes of all jobs after a cursor (-1: new changes). Never returns OK.
  absl::Status WatchJobs(int64_t after_cursor, StreamObserver& observer,
                         const std::function<void(const v1::WatchJobsResponse&)>& on_change);

  // Calls `on_data` with the log of a job's rank from `offset`. With `follow` it continues until the job
  // ends.
  absl::Status ReadLog(absl::string_view name, int rank, int64_t offset, bool follow,
                       StreamObserver& observer,
                       const std::function<absl::Status(absl::string_view)>& on_data);

  // Calls `on_piece` with an artifact's content from `offset`. An error of `on_piece` ends the call with this
  // error.
  absl::Status ReadArtifact(absl::string_view name, absl::string_view artifact, int64_t offset,
                            StreamObserver& observer,
                            const std::function<absl::Status(const v1::ReadArtifactResponse&)>& on_piece);

  // Unset fields of `request` get the daemon's defaults.
  absl::StatusOr<v1::ModelDescription> DescribeModel(const v1::DescribeModelRequest& request);
  // Calls `on_response` with the predictions for the request's samples, in order. Predict and Evaluate do not
  // reconnect: UNAVAILABLE after a break.
  absl::Status Predict(const v1::PredictRequest& request, StreamObserver& observer,
                       const std::function<void(const v1::PredictResponse&)>& on_response);
  // Calls `on_piece` with the bytes of an exported model, in order. Ends with the first error of `on_piece`.
  absl::Status ExportModel(const v1::ExportModelRequest& request, StreamObserver& observer,
                           const std::function<absl::Status(absl::string_view piece)>& on_piece);
  // Calls `on_progress` with the progress of an evaluation, and returns the result.
  absl::StatusOr<v1::Evaluation> Evaluate(
      const v1::EvaluateRequest& request, StreamObserver& observer,
      const std::function<void(const v1::EvaluateResponse&)>& on_progress);

 private:
  Client(const ConnectionOptions& options, const ReconnectPolicy& reconnect,
         std::shared_ptr<grpc::Channel> channel);

  // Runs a stream of the ModelService, again while the daemon fetches the stream's data.
  template <typename Response>
  absl::Status RunModelStream(const std::function<std::unique_ptr<grpc::ClientAsyncReader<Response>>(
                                  grpc::ClientContext*, grpc::CompletionQueue*)>& prepare,
                              StreamObserver& observer,
                              const std::function<absl::Status(const Response&)>& on_response);

  // Checks that all listeners at the address may get the token; see ConnectionOptions::trusted_listeners.
  // Caches the result for a second, because the kernel's tables may be long. `anew` skips the cache.
  absl::Status CheckListeners(bool anew) const;
  // Adds the token to the call. Returns an error if a listener must not get the token.
  absl::Status Prepare(grpc::ClientContext* context) const;
  // Like Prepare, but for a stream. Always checks the listeners again, because a stream reconnects. If a
  // listener must not get the token, sets `refused`, and the call does not leave this machine.
  void PrepareStream(grpc::ClientContext* context, absl::Status* refused) const;
  // Waits until a call with this status may be repeated. Returns false if it may not be repeated before
  // `give_up`.
  bool AwaitRetry(const absl::Status& status, absl::Duration give_up) const;
  // Makes a unary call: `method` of `stub`, with the token, within `timeout`.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration timeout) {
    return CallWith(stub, method, request, timeout, [](auto*, const auto& call) { return call(); });
  }
  // Like Call, but for long calls that may need data from a fetch. Repeats the call until the daemon has the
  // data. CANCELLED if the wait observer stops the call.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> LongCall(Stub& stub,
                                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                 Response*),
                                    const Request& request, absl::Duration timeout);
  // Calls `method` for each page, and returns the `items(page)` of all pages, at most `limit` (0: all).
  // Without a limit the daemon chooses the size of the pages.
  template <typename Item, typename Stub, typename Request, typename Response, typename Items>
  absl::StatusOr<std::vector<Item>> ListAll(
      Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      Request request, absl::Duration timeout, const Items& items, absl::optional<int> limit = absl::nullopt);
  // The common part of Call and LongCall. `wait(context, call)` runs the call.
  template <typename Stub, typename Request, typename Response, typename Wait>
  absl::StatusOr<Response> CallWith(Stub& stub,
                                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                 Response*),
                                    const Request& request, absl::Duration timeout, const Wait& wait);

  // Makes a single UploadFiles call from the upload's next offset. Returns the upload's new state.
  absl::StatusOr<v1::Upload> SendFiles(const v1::Upload& upload, const UploadPlan& plan,
                                       StreamObserver& observer,
                                       const std::function<void(int64_t bytes)>& on_bytes);

  const std::string address_;
  const std::string authorization_;
  // Empty if there is no token, or if every listener may get it.
  const std::vector<uid_t> trusted_listeners_;
  // SteadyNow's clock, in nanoseconds.
  mutable std::atomic<int64_t> trusted_until_{0};
  const absl::Duration timeout_;
  const ReconnectPolicy reconnect_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const std::unique_ptr<v1::DaemonService::Stub> daemon_;
  const std::unique_ptr<v1::DatasetService::Stub> datasets_;
  const std::unique_ptr<v1::SweepService::Stub> sweeps_;
  FetchObserver* fetch_observer_ = nullptr;
  WaitObserver* wait_observer_ = nullptr;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_CLIENT_H_
