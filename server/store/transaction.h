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

// What a body given to Store::Write may do: read and change, seeing all that was written before it. Used on
// the store's writer thread and for the length of the body alone. No method throws. Every method may fail as
// the database does: RESOURCE_EXHAUSTED (disk full), DATA_LOSS (corrupt), INTERNAL.
class Transaction {
 public:
  explicit Transaction(Connection* connection) : connection_(connection) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // NOT_FOUND: no such job.
  absl::StatusOr<StoredJob> GetJob(absl::string_view id);
  // As GetJob, but leaves Job.spec unset, which saves reading it.
  absl::StatusOr<StoredJob> GetJobWithoutSpec(absl::string_view id);
  // Reads the spec of a job from GetJobWithoutSpec into it.
  absl::Status LoadSpec(StoredJob* job);
  // The job made for this request id, where there is one.
  absl::StatusOr<std::optional<StoredRequest>> FindRequest(absl::string_view request_id);

  // Adds a job and sets its `number`; without a user it is the administrator's. `request_id` may be empty;
  // `submitted_spec` is kept only where it is not. ALREADY_EXISTS: the job's id or the request id is taken.
  absl::Status InsertJob(StoredJob* job, absl::string_view request_id, const v1::JobSpec& submitted_spec);
  // Writes everything of the job but its id, name and spec, which never change.
  absl::Status UpdateJob(StoredJob* job);
  // Removes the job and its changes, and notes its id (see Store::WasDeleted). Nothing shows the job from
  // then on; its events, of which there may be a million, are for Store::RemoveDeleted to remove.
  absl::Status DeleteJob(const StoredJob& job);

  // Makes an id one of a deleted job, until a job of it is inserted. ALREADY_EXISTS: there is, or was, a job
  // of the id.
  absl::Status ReserveJobId(absl::string_view id);
  // Takes that back, where no job has the id.
  absl::Status ReleaseJobId(absl::string_view id);

  // Removes at most `limit` (at least 1) events of deleted jobs. Whether there may be more.
  absl::StatusOr<bool> RemoveDeleted(int limit);

  // Changes a page and changes it back, which is written like any change.
  absl::Status Touch();

  // Adds an event, whose sequence must be new. Does not touch the job's row.
  absl::Status AppendEvent(const StoredJob& job, const v1::JobEvent& event);
  // Adds the event of that sequence to the log of changes; returns its cursor.
  absl::StatusOr<int64_t> AppendChange(const StoredJob& job, int64_t sequence);

  // How many jobs of the user are in the state, which must not be terminal: rows of deleted jobs are.
  absl::StatusOr<int> CountJobs(absl::string_view user, v1::JobState state);
  // Each replaces what was there of this user or device.
  absl::Status PutUsage(const StoredUsage& usage);
  absl::Status PutDevice(const StoredDevice& device);
  // ALREADY_EXISTS: the user has one.
  absl::Status InsertToken(const StoredToken& token);
  // NOT_FOUND: the user has none.
  absl::Status DeleteToken(absl::string_view user);

  // Adds a checkpoint to the job's, in place of those of its step and of its file, of newer ones, which
  // training has not gone on from, and of those that are not kept beside it: the `keep_last` newest are, and
  // with `keep_best` the newest that is of a best result.
  absl::Status PutCheckpoint(const StoredJob& job, const v1::Checkpoint& checkpoint, int keep_last,
                             bool keep_best);

  // Adds a sweep, without its jobs, and sets its `number`. `request_id` may be empty; `submitted` is kept
  // only where it is not. ALREADY_EXISTS: the sweep's id or the request id is taken.
  absl::Status InsertSweep(StoredSweep* sweep, absl::string_view request_id, const v1::Sweep& submitted);
  // Writes what of the sweep does not follow from its jobs.
  absl::Status UpdateSweep(const StoredSweep& sweep);
  // Removes the sweep alone. NOT_FOUND: there is none of this id.
  absl::Status DeleteSweep(absl::string_view id);
  // NOT_FOUND: no such sweep.
  absl::StatusOr<StoredSweep> GetSweep(absl::string_view id);
  // The sweep made for this request id, where there is one.
  absl::StatusOr<std::optional<StoredSweepRequest>> FindSweepRequest(absl::string_view request_id);

  // Registers a data set. ALREADY_EXISTS: its id, its request id or its upload is taken.
  absl::Status InsertDataset(const StoredDataset& dataset);
  // NOT_FOUND: there is none of this id.
  absl::Status DeleteDataset(absl::string_view id);
  // Keeps what a data set's files say, by a digest, in place of what this digest had. Removes the oldest
  // where more than kMostDataFactsKept, or kMostDataFactsBytesKept, would be kept.
  absl::Status PutDataFacts(absl::string_view digest, absl::string_view facts);

 private:
  Connection* const connection_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_TRANSACTION_H_
