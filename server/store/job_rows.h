#ifndef TANDEM_SERVER_STORE_JOB_ROWS_H_
#define TANDEM_SERVER_STORE_JOB_ROWS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/connection.h"
#include "server/store/records.h"

namespace tandem {

// The columns for ReadJobRow, in order. The last may be left out.
#define TANDEM_JOB_COLUMNS_WITHOUT_SPEC "number, last_worker_sequence, keeps_best, record"
#define TANDEM_JOB_COLUMNS TANDEM_JOB_COLUMNS_WITHOUT_SPEC ", spec"

// The condition for the row that a deleted job leaves: its id begins with '/' (see Transaction::DeleteJob),
// and '0' follows '/'. A range, so that an index finds these rows.
#define TANDEM_IS_DELETED "(id >= '/' AND id < '0')"

// Reads the current row of `query`, a query of `connection`. The job's folder is always in "jobs" beside this
// database, wherever the job was created. So a daemon on a copied or moved state folder touches no other
// folder. Throws like Query. DATA_LOSS: a message does not parse.
absl::StatusOr<StoredJob> ReadJobRow(const Connection& connection, Query* query, bool with_spec);

// Parses a stored message. DATA_LOSS: it does not parse; the error names the message `what`.
absl::Status ParseStored(absl::string_view bytes, absl::string_view what,
                         google::protobuf::MessageLite* message);

// The error for a missing job.
absl::Status NoSuchJob(absl::string_view id);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_JOB_ROWS_H_
