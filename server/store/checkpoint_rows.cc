#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/job_rows.h"
#include "server/store/reader_pool.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

// The part of Transaction and Store about checkpoints.

namespace tandem {

absl::Status Transaction::PutCheckpoint(const StoredJob& job, const v1::Checkpoint& checkpoint, int keep_last,
                                        bool keep_best) {
  const std::string record = checkpoint.SerializeAsString();
  return WithoutExceptions("add a checkpoint", [&]() -> absl::Status {
    // Training did not continue from newer checkpoints, so remove them.
    Query(connection_, "DELETE FROM checkpoints WHERE job = ? AND (step >= ? OR file = ?)")
        .Int(job.number)
        .Int(checkpoint.step())
        .Text(checkpoint.file())
        .Run();
    Query(connection_, "INSERT INTO checkpoints (job, step, file, best, record) VALUES (?, ?, ?, ?, ?)")
        .Int(job.number)
        .Int(checkpoint.step())
        .Text(checkpoint.file())
        .Int(checkpoint.best() ? 1 : 0)
        .Blob(record)
        .Run();
    Query(
        connection_,
        "DELETE FROM checkpoints WHERE job = ? AND step NOT IN (SELECT step FROM checkpoints WHERE job = ? "
        "ORDER BY step DESC LIMIT ?) AND NOT (? AND step = (SELECT max(step) FROM checkpoints WHERE job = ? "
        "AND best))")
        .Int(job.number)
        .Int(job.number)
        .Int(keep_last)
        .Int(keep_best ? 1 : 0)
        .Int(job.number)
        .Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> Transaction::HasCheckpointOfAttempt(const StoredJob& job) {
  if (!job.job.has_last_checkpoint()) return false;
  return WithoutExceptions("find a checkpoint of an attempt", [&]() -> absl::StatusOr<bool> {
    Query query(connection_, "SELECT event FROM events WHERE job = ? ORDER BY sequence DESC");
    query.Int(job.number);
    while (query.Next()) {
      v1::JobEvent event;
      TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(0), "event", &event));
      if (event.attempt() != job.job.attempt()) return false;
      if (event.has_checkpoint()) return true;
    }
    return false;
  });
}

absl::StatusOr<std::vector<v1::Checkpoint>> Store::Checkpoints(absl::string_view id) {
  return readers_->Read(
      "list checkpoints", [&](Connection* connection) -> absl::StatusOr<std::vector<v1::Checkpoint>> {
        std::vector<v1::Checkpoint> checkpoints;
        Query job(connection, "SELECT number FROM jobs WHERE id = ?");
        if (!job.Text(id).Next()) return NoSuchJob(id);
        Query query(connection, "SELECT record FROM checkpoints WHERE job = ? ORDER BY step DESC");
        query.Int(job.GetInt(0));
        while (query.Next()) {
          TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(0), "checkpoint", &checkpoints.emplace_back()));
        }
        return checkpoints;
      });
}

}  // namespace tandem
