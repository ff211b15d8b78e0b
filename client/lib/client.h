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

// Which jobs to list.
struct ListJobsOptions {
  // Only jobs in one of these states; empty: all.
  std::vector<v1::JobState> states;
  // As in ListJobsRequest; empty: the newest first.
  std::string order_by;
  // At most so many; 0: all.
  int limit = 0;
};

// What a daemon is, and how it answered.
struct DaemonAnswer {
  v1::Daemon daemon;
  // From the question to the answer, the connection's being made included.
  absl::Duration round_trip;
  // How far the daemon's clock is before this machine's, within half of round_trip. None if the answer does
  // not tell the daemon's time.
  absl::optional<absl::Duration> clock_lead;
};

// A connection to a daemon: each method is a call of the API. Errors are the daemon's, with its details as
// payloads (see status_details.h); UNAVAILABLE or DEADLINE_EXCEEDED where it cannot be reached. Streams block
// until they end, and are taken up again by themselves where they break. Job names are full: "jobs/<id>".
// Thread-safe.
class Client {
 public:
  // Takes everything before the first call; the connection itself is made by that. Errors as OpenChannel's.
  static absl::StatusOr<std::unique_ptr<Client>> Create(const ConnectionOptions& options,
                                                        const ReconnectPolicy& reconnect = {});

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const { return address_; }

  // Told while the daemon fetches data that CreateJob, ForkJob, ResumeJob, DescribeModel, Evaluate,
  // CreateDataset or FetchDataset needs: these are repeated until it is there. Null: they wait unseen. Before
  // the first call; it outlives the client.
  void SetFetchObserver(FetchObserver* observer) { fetch_observer_ = observer; }

  // Told when the daemon refuses a call for a moment, as where a user calls too often; the call is made
  // again, for half a minute at most. Null: it waits unseen. Before the first call; it outlives the client.
  void SetWaitObserver(WaitObserver* observer) { wait_observer_ = observer; }

  absl::StatusOr<v1::Job> CreateJob(const v1::JobSpec& spec, absl::string_view request_id,
                                    bool validate_only);
  // Waits for the answer for `at_most`, if that is less than ConnectionOptions::timeout.
  absl::StatusOr<v1::Job> GetJob(absl::string_view name, absl::Duration at_most = absl::InfiniteDuration());
  // A job's log, reduced; see GetJobHistoryRequest. Asks for as many pages as it takes: the answer has all
  // events.
  absl::StatusOr<v1::GetJobHistoryResponse> GetJobHistory(v1::GetJobHistoryRequest request);
  // Asks for as many pages as it takes.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(const ListJobsOptions& options);
  // From -100 to 100.
  absl::StatusOr<v1::Job> SetPriority(absl::string_view name, int priority);
  absl::StatusOr<v1::Job> CancelJob(absl::string_view name);
  absl::StatusOr<v1::Job> PauseJob(absl::string_view name);
  absl::StatusOr<v1::Job> ResumeJob(absl::string_view name, bool accept_changed_data = false);
  // A new job from a job's checkpoint; see ForkJobRequest. Waits for data as CreateJob does.
  absl::StatusOr<v1::Job> ForkJob(const v1::ForkJobRequest& request);
  // Those of a job that are kept, newest first.
  absl::StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(absl::string_view name);
  absl::Status DeleteJob(absl::string_view name);
  // The daemon checks every job of the sweep, which may take minutes.
  absl::StatusOr<v1::Sweep> CreateSweep(const v1::Sweep& sweep, absl::string_view request_id,
                                        bool validate_only);
  // Of a sweep, "sweeps/<id>".
  absl::StatusOr<v1::Sweep> GetSweep(absl::string_view name);
  // Gives the sweep to `on_sweep` at once and again and again, and returns it when all its jobs have ended.
  // Asks once a second, less often if the sweep is so large that the daemon takes long to answer, and goes on
  // if the connection breaks. CANCELLED: the observer stopped it. UNAVAILABLE: given up on a broken
  // connection. Other errors as GetSweep's.
  absl::StatusOr<v1::Sweep> FollowSweep(absl::string_view name, StreamObserver& observer,
                                        const std::function<void(const v1::Sweep&)>& on_sweep);
  // The newest, at most so many (0: all). Asks for as many pages as it takes.
  absl::StatusOr<std::vector<v1::Sweep>> ListSweeps(int limit);
  absl::StatusOr<v1::Sweep> CancelSweep(absl::string_view name);
  absl::Status DeleteSweep(absl::string_view name);
  absl::StatusOr<v1::Daemon> GetDaemon();
  // The same, with what the call itself tells.
  absl::StatusOr<DaemonAnswer> AskDaemon();
  absl::StatusOr<std::vector<v1::Device>> ListDevices();
  // Of a device, "devices/<kind>:<index>".
  absl::StatusOr<v1::Device> DrainDevice(absl::string_view name, absl::string_view reason);
  absl::StatusOr<v1::Device> ResumeDevice(absl::string_view name);
  absl::StatusOr<v1::Device> ExcludeDevice(absl::string_view name, absl::string_view reason);
  // The first `limit` jobs that wait (from 1 to 10000), and all users.
  absl::StatusOr<v1::ListQueueResponse> ListQueue(int limit);
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::Token& token);
  absl::StatusOr<std::vector<v1::Token>> ListTokens();
  // "tokens/<user>".
  absl::StatusOr<v1::Token> RevokeToken(absl::string_view name);
  // The daemon reads its database twice for it, which may take minutes.
  absl::StatusOr<v1::Backup> CreateBackup();
  absl::StatusOr<std::vector<v1::Backup>> ListBackups();
  absl::StatusOr<std::vector<v1::Dataset>> ListDatasets();
  // The daemon reads the whole data set for it, which may take minutes.
  absl::StatusOr<v1::Dataset> GetDataset(absl::string_view name);
  // Registers a data set, after a check of its files, which may take minutes.
  absl::StatusOr<v1::Dataset> CreateDataset(const v1::CreateDatasetRequest& request);
  absl::Status DeleteDataset(const v1::DeleteDatasetRequest& request);
  // Begins an upload of the plan's files, or finds one that was begun before.
  absl::StatusOr<v1::Upload> CreateUpload(const UploadPlan& plan);
  absl::StatusOr<std::vector<v1::Upload>> ListUploads();
  absl::Status DeleteUpload(absl::string_view name);
  // Brings the files of a plan, whose digests are computed, to the daemon: what it does not have yet of them,
  // all of which is there in the end. Goes on by itself where the connection breaks; `on_bytes` hears how
  // much is there. Errors as UploadFiles'; FAILED_PRECONDITION, too: a file cannot be read or has changed.
  absl::StatusOr<v1::Upload> Upload(const UploadPlan& plan, StreamObserver& observer,
                                    const std::function<void(int64_t bytes)>& on_bytes);
  // Waits until the daemon has the public set.
  absl::StatusOr<v1::Dataset> FetchDataset(absl::string_view name);
  // With cancel_jobs it waits for the jobs' ends, for up to ten minutes. The number of cancelled jobs.
  absl::StatusOr<int> Shutdown(bool cancel_jobs);

  // Gives every event after `after_sequence` once and in order. OK: the terminal event was given. DATA_LOSS:
  // an event is missing between two. CANCELLED: the observer stopped it. UNAVAILABLE: given up on a broken
  // connection.
  absl::Status WatchJob(absl::string_view name, int64_t after_sequence, StreamObserver& observer,
                        const std::function<void(const v1::JobEvent&)>& on_event);

  // Gives state changes of all jobs after a cursor (-1: new ones). Never OK.
  absl::Status WatchJobs(int64_t after_cursor, StreamObserver& observer,
                         const std::function<void(const v1::WatchJobsResponse&)>& on_change);

  // Gives a job's log from an offset on; with follow until the job ends.
  absl::Status ReadLog(absl::string_view name, int64_t offset, bool follow, StreamObserver& observer,
                       const std::function<absl::Status(absl::string_view)>& on_data);

  // Gives an artifact's content from an offset on. An error of `on_piece` ends it with that error.
  absl::Status ReadArtifact(absl::string_view name, absl::string_view artifact, int64_t offset,
                            StreamObserver& observer,
                            const std::function<absl::Status(const v1::ReadArtifactResponse&)>& on_piece);

  // `request.batch_size` and whatever else is left out is the daemon's default.
  absl::StatusOr<v1::ModelDescription> DescribeModel(const v1::DescribeModelRequest& request);
  // Gives what a job's model says of the request's samples, in order. These two are not taken up again where
  // they break: UNAVAILABLE then.
  absl::Status Predict(const v1::PredictRequest& request, StreamObserver& observer,
                       const std::function<void(const v1::Prediction&)>& on_prediction);
  // Gives how far an evaluation is, and returns its result.
  absl::StatusOr<v1::Evaluation> Evaluate(
      const v1::EvaluateRequest& request, StreamObserver& observer,
      const std::function<void(const v1::EvaluateResponse&)>& on_progress);

 private:
  Client(const ConnectionOptions& options, const ReconnectPolicy& reconnect,
         std::shared_ptr<grpc::Channel> channel);

  // Whether the token may be sent to whoever listens now: see ConnectionOptions::trusted_listeners. Kept in
  // mind for a second, as the kernel's tables may be long, unless `anew`.
  absl::Status CheckListeners(bool anew) const;
  // Gives the call the token. An error where it may not be sent.
  absl::Status Prepare(grpc::ClientContext* context) const;
  // The same for a stream, which begins a connection anew where one was lost. Where the token may not be
  // sent, the call does not leave this machine, and `refused` says why.
  void PrepareStream(grpc::ClientContext* context, absl::Status* refused) const;
  // Waits until a call that ended so may be made again. False: it may not, or not before `give_up`.
  bool AwaitRetry(const absl::Status& status, absl::Duration give_up) const;
  // A call with an answer: `method` of `stub`, with the token and within `timeout`.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration timeout) {
    return CallWith(stub, method, request, timeout, [](auto*, const auto& call) { return call(); });
  }
  // The same for one that may last, and which needs data that the daemon may have to fetch: it is repeated
  // until that is there, and CANCELLED once the wait observer keeps waiting no more.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> LongCall(Stub& stub,
                                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                 Response*),
                                    const Request& request, absl::Duration timeout);
  // What these have in common; `wait(context, call)` waits for the call.
  template <typename Stub, typename Request, typename Response, typename Wait>
  absl::StatusOr<Response> CallWith(Stub& stub,
                                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                 Response*),
                                    const Request& request, absl::Duration timeout, const Wait& wait);

  // One call, from where the upload stands. What it says of that in the end.
  absl::StatusOr<v1::Upload> SendFiles(const v1::Upload& upload, const UploadPlan& plan,
                                       StreamObserver& observer,
                                       const std::function<void(int64_t bytes)>& on_bytes);

  const std::string address_;
  const std::string authorization_;
  // Empty where there is no token, or nobody to keep it from.
  const std::vector<uid_t> trusted_listeners_;
  // On SteadyNow's clock, in nanoseconds.
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
