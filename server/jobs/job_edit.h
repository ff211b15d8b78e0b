#ifndef TANDEM_SERVER_JOBS_JOB_EDIT_H_
#define TANDEM_SERVER_JOBS_JOB_EDIT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/jobs/lease_times.h"
#include "server/jobs/transitions.h"
#include "server/store/records.h"
#include "server/store/transaction.h"

namespace tandem {

// What was done to a job in one transaction.
struct JobChanges {
  explicit JobChanges(LeaseTimes* lease_times) : leases(lease_times) {}

  // Serialises the job's spec and takes it out of the job, and puts it back: of many changed jobs, all specs
  // together would take too much memory.
  void PackSpec();
  void UnpackSpec();

  StoredJob job;
  // In the log's order.
  std::vector<std::shared_ptr<const v1::JobEvent>> events;
  std::vector<std::shared_ptr<const JobChange>> changes;
  // The job went to another state, or is new; then its spec is loaded.
  bool moved = false;
  bool deleted = false;
  // By how many it changed the number of QUEUED jobs: 1, 0 or -1.
  int queued = 0;
  // The job's spec, where it is packed.
  std::string packed_spec;
  LeaseTimes* leases;
};

// A job being changed in a transaction: the one place where a job's state is assigned and its events are
// numbered. Not thread-safe; lives no longer than the transaction.
class JobEdit {
 public:
  // `changes->job` is the job.
  JobEdit(Transaction* transaction, JobChanges* changes) : transaction_(transaction), changes_(changes) {}

  // Makes the job, already inserted, QUEUED with its first event.
  absl::Status Begin(const google::protobuf::Timestamp& time);

  // Takes the transition of `trigger`: goes to its state with an event that says why, or stays and says
  // nothing. `summary`, where given, is the training's so far. FAILED_PRECONDITION: the table refuses it;
  // nothing is changed.
  absl::Status Take(Trigger trigger, v1::StateReason reason, const std::string& message,
                    const google::protobuf::Timestamp& time, const v1::TrainingSummary* summary = nullptr);

  // Numbers an event, whose kind is set, and adds it to the log. Not in a terminal state.
  absl::Status Append(v1::JobEvent event, const google::protobuf::Timestamp& time);

  // Writes the job's row. Last.
  absl::Status Finish();

 private:
  absl::Status Move(v1::JobState to, v1::StateReason reason, const std::string& message,
                    const google::protobuf::Timestamp& time, const v1::TrainingSummary* summary = nullptr);
  absl::Status AppendToLog(v1::JobEvent event, const google::protobuf::Timestamp& time);

  Transaction* const transaction_;
  JobChanges* const changes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_EDIT_H_
