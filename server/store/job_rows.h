#ifndef TANDEM_SERVER_STORE_JOB_ROWS_H_
#define TANDEM_SERVER_STORE_JOB_ROWS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/connection.h"
#include "server/store/records.h"

namespace tandem {

// The columns that ReadJobRow reads, in its order; the last may be left out.
#define TANDEM_JOB_COLUMNS_WITHOUT_SPEC "number, last_worker_sequence, keeps_best, record"
#define TANDEM_JOB_COLUMNS TANDEM_JOB_COLUMNS_WITHOUT_SPEC ", spec"

// Reads the present row of `query`, which is one of the connection's. The job's folder is the one of its id
// in "jobs" beside this database, wherever that was when the job was made: a daemon on a copy of a state
// folder, or on one that was moved, touches no other. Throws as Query does. DATA_LOSS: a message does not
// parse.
absl::StatusOr<StoredJob> ReadJobRow(const Connection& connection, Query* query, bool with_spec);

// Parses a stored message. DATA_LOSS: it does not parse; the message says that it is `what`.
absl::Status ParseStored(absl::string_view bytes, absl::string_view what,
                         google::protobuf::MessageLite* message);

// For a missing job.
absl::Status NoSuchJob(absl::string_view id);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_JOB_ROWS_H_
