#ifndef TANDEM_SERVER_STORE_TRANSACTION_H_
#define TANDEM_SERVER_STORE_TRANSACTION_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/records.h"
#include "server/store/scheduling_records.h"

namespace tandem {

class Connection;

// The reads and changes of a body of Store::Write. Sees all earlier writes. Use it only on the store's writer
// thread and during the body. No method throws. Every method may fail like the database: RESOURCE_EXHAUSTED
// (disk full), DATA_LOSS (damaged), INTERNAL.
class Transaction {
 public:
  explicit Transaction(Connection* connection) : connection_(connection) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // NOT_FOUND: no such job.
  absl::StatusOr<StoredJob> GetJob(absl::string_view id);
  // Like GetJob, but leaves Job.spec unset, which is faster.
  absl::StatusOr<StoredJob> GetJobWithoutSpec(absl::string_view id);
  // Reads the spec into a job from GetJobWithoutSpec.
  absl::Status LoadSpec(StoredJob* job);
  // Returns the job that was created for this request id; nullopt if none.
  absl::StatusOr<std::optional<StoredRequest>> FindRequest(absl::string_view request_id);

  // Adds a job and sets its `number`. A job without a user belongs to the administrator. `request_id` may be
  // empty; `submitted_spec` is then not stored. ALREADY_EXISTS: the job's id or the request id is taken.
  absl::Status InsertJob(StoredJob* job, absl::string_view request_id, const v1::JobSpec& submitted_spec);
  // Writes all fields of the job except its id, name and spec, which never change.
  absl::Status UpdateJob(StoredJob* job);
  // Deletes the job and its changes, and notes its id (see Store::WasDeleted). From then on nothing shows the
  // job. Store::RemoveDeleted removes its events, because a job may have a million.
  absl::Status DeleteJob(const StoredJob& job);

  // Notes an id as a deleted job's until a job with the id is inserted. ALREADY_EXISTS: a job has or had the
  // id.
  absl::Status ReserveJobId(absl::string_view id);
  // Undoes ReserveJobId if no job has the id.
  absl::Status ReleaseJobId(absl::string_view id);

  // Removes at most `limit` (at least 1) events of deleted jobs. Returns true if more may exist.
  absl::StatusOr<bool> RemoveDeleted(int limit);

  // Changes a page and changes it back, which writes the page.
  absl::Status Touch();

  // Adds an event with a new sequence number. Does not change the job's row.
  absl::Status AppendEvent(const StoredJob& job, const v1::JobEvent& event);
  // Adds the event with this sequence number to the log of changes. Returns its cursor.
  absl::StatusOr<int64_t> AppendChange(const StoredJob& job, int64_t sequence);

  // Returns the number of the user's jobs in this state. The state must not be terminal, because deleted
  // jobs' rows have terminal states.
  absl::StatusOr<int> CountJobs(absl::string_view user, v1::JobState state);
  // Replace the record of this user or device.
  absl::Status PutUsage(const StoredUsage& usage);
  absl::Status PutDevice(const StoredDevice& device);
  // ALREADY_EXISTS: the user has a token.
  absl::Status InsertToken(const StoredToken& token);
  // NOT_FOUND: the user has no token.
  absl::Status DeleteToken(absl::string_view user);

  // Adds a checkpoint of the job. Removes checkpoints with the same step or file, newer checkpoints, from
  // which training did not continue, and old checkpoints. Keeps the `keep_last` newest and, with `keep_best`,
  // the newest with a best result.
  absl::Status PutCheckpoint(const StoredJob& job, const v1::Checkpoint& checkpoint, int keep_last,
                             bool keep_best);
  // Returns true if the events of the job's current attempt have a checkpoint. Reads them from the newest
  // back to the checkpoint.
  absl::StatusOr<bool> HasCheckpointOfAttempt(const StoredJob& job);

  // Adds a sweep without its jobs, and sets its `number`. `request_id` may be empty; `submitted` is then not
  // stored. ALREADY_EXISTS: the sweep's id or the request id is taken.
  absl::Status InsertSweep(StoredSweep* sweep, absl::string_view request_id, const v1::Sweep& submitted);
  // Writes the fields of the sweep that its jobs do not determine.
  absl::Status UpdateSweep(const StoredSweep& sweep);
  // Deletes the sweep without its jobs. NOT_FOUND: no such sweep.
  absl::Status DeleteSweep(absl::string_view id);
  // NOT_FOUND: no such sweep.
  absl::StatusOr<StoredSweep> GetSweep(absl::string_view id);
  // Returns the sweep that was created for this request id; nullopt if none.
  absl::StatusOr<std::optional<StoredSweepRequest>> FindSweepRequest(absl::string_view request_id);

  // Registers a data set. ALREADY_EXISTS: its id, request id or upload is taken.
  absl::Status InsertDataset(const StoredDataset& dataset);
  // NOT_FOUND: no such data set.
  absl::Status DeleteDataset(absl::string_view id);
  // Keeps the facts of a data set's files under a digest; replaces the digest's earlier facts. Removes the
  // oldest facts beyond kMostDataFactsKept or kMostDataFactsBytesKept.
  absl::Status PutDataFacts(absl::string_view digest, absl::string_view facts);

 private:
  Connection* const connection_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_TRANSACTION_H_
