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

// The changes to a job in one transaction.
struct JobChanges {
  explicit JobChanges(LeaseTimes* lease_times) : leases(lease_times) {}

  // Serializes the job's spec and removes it from the job, and the reverse. If many jobs change, all unpacked
  // specs would need too much memory.
  void PackSpec();
  void UnpackSpec();

  StoredJob job;
  // In the log's order.
  std::vector<std::shared_ptr<const v1::JobEvent>> events;
  std::vector<std::shared_ptr<const JobChange>> changes;
  // True if the job's state changed or the job is new. The spec is then loaded.
  bool moved = false;
  bool deleted = false;
  // The change of the number of QUEUED jobs: 1, 0 or -1.
  int queued = 0;
  // The serialized spec while packed.
  std::string packed_spec;
  LeaseTimes* leases;
};

// A job in a transaction. Only this class sets a job's state and numbers its events. Not thread-safe. Must
// not outlive the transaction.
class JobEdit {
 public:
  // `changes->job` must be the job.
  JobEdit(Transaction* transaction, JobChanges* changes) : transaction_(transaction), changes_(changes) {}

  // Makes the inserted job QUEUED, with its first event.
  absl::Status Begin(const google::protobuf::Timestamp& time);

  // Performs the transition of `trigger`: moves to the new state with an event and its reason, or stays
  // without an event. `summary`, if given, describes the training so far. FAILED_PRECONDITION: the table
  // refuses the trigger, and nothing changed.
  absl::Status Take(Trigger trigger, v1::StateReason reason, const std::string& message,
                    const google::protobuf::Timestamp& time, const v1::TrainingSummary* summary = nullptr);

  // Adds an event to the log, and sets all its fields except its kind. The event must have its kind, and the
  // job must not have ended.
  absl::Status Append(v1::JobEvent event, const google::protobuf::Timestamp& time);

  // Writes the job's row. Call last.
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
