#include "server/store/transaction.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/connection.h"
#include "server/store/downloadable.h"
#include "server/store/job_rows.h"

namespace tandem {
namespace {

// Returns the part of a job that its record stores.
std::string RecordOf(v1::Job* job) {
  // Remove the spec and put it back, because a copy may be large.
  std::unique_ptr<v1::JobSpec> spec(job->release_spec());
  std::unique_ptr<v1::Waiting> waiting(job->release_waiting());
  std::string record = job->SerializeAsString();
  if (spec != nullptr) job->set_allocated_spec(spec.release());
  if (waiting != nullptr) job->set_allocated_waiting(waiting.release());
  return record;
}

// Binds the next two parameters: end_time_us and best.
void BindResult(const StoredJob& row, Query* query) {
  const v1::Job& job = row.job;
  if (job.has_end_time()) {
    query->Int(google::protobuf::util::TimeUtil::TimestampToMicroseconds(job.end_time()));
  } else {
    query->Null();
  }
  const std::optional<Downloadable> weights = DownloadableOf(row);
  if (weights.has_value() && !std::isnan(weights->measured.value)) {
    query->Double(weights->measured.value);
  } else {
    query->Null();
  }
}

}  // namespace

absl::StatusOr<StoredJob> Transaction::GetJob(absl::string_view id) {
  return WithoutExceptions("read a job", [&]() -> absl::StatusOr<StoredJob> {
    Query query(connection_, "SELECT " TANDEM_JOB_COLUMNS " FROM jobs WHERE id = ?");
    if (!query.Text(id).Next()) return NoSuchJob(id);
    return ReadJobRow(*connection_, &query, /*with_spec=*/true);
  });
}

absl::StatusOr<StoredJob> Transaction::GetJobWithoutSpec(absl::string_view id) {
  return WithoutExceptions("read a job", [&]() -> absl::StatusOr<StoredJob> {
    Query query(connection_, "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC " FROM jobs WHERE id = ?");
    if (!query.Text(id).Next()) return NoSuchJob(id);
    return ReadJobRow(*connection_, &query, /*with_spec=*/false);
  });
}

absl::Status Transaction::LoadSpec(StoredJob* job) {
  return WithoutExceptions("read a spec", [&]() -> absl::Status {
    Query query(connection_, "SELECT spec FROM jobs WHERE number = ?");
    if (!query.Int(job->number).Next()) return NoSuchJob(job->job.name());
    return ParseStored(query.GetBlob(0), "spec", job->job.mutable_spec());
  });
}

absl::StatusOr<std::optional<StoredRequest>> Transaction::FindRequest(absl::string_view request_id) {
  return WithoutExceptions("find a request", [&]() -> absl::StatusOr<std::optional<StoredRequest>> {
    Query query(connection_, "SELECT " TANDEM_JOB_COLUMNS ", submitted_spec FROM jobs WHERE request_id = ?");
    if (!query.Text(request_id).Next()) return std::optional<StoredRequest>();
    StoredRequest request;
    TANDEM_ASSIGN_OR_RETURN(request.job, ReadJobRow(*connection_, &query, /*with_spec=*/true));
    TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(5), "spec", &request.submitted_spec));
    return std::optional<StoredRequest>(std::move(request));
  });
}

absl::Status Transaction::InsertJob(StoredJob* job, absl::string_view request_id,
                                    const v1::JobSpec& submitted_spec) {
  const std::string id = JobId(job->job.name());
  if (id.empty()) {
    return absl::InternalError(absl::StrCat("\"", job->job.name(), "\" is not a job's name"));
  }
  if (job->job.user().empty()) job->job.set_user(kAdminUser);
  const std::string sweep = SweepId(job->job.sweep());
  const std::string submitted = submitted_spec.SerializeAsString();
  const std::string spec = job->job.spec().SerializeAsString();
  job->keeps_best = KeepsBest(job->job.spec());
  const std::string record = RecordOf(&job->job);
  return WithoutExceptions("add a job", [&]() -> absl::Status {
    Query query(connection_,
                "INSERT INTO jobs (id, request_id, submitted_spec, spec, state, last_sequence, "
                "last_worker_sequence, create_time_us, record, user, sweep, keeps_best, end_time_us, best) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "RETURNING number");
    query.Text(id).Request(request_id, submitted);
    query.Blob(spec).Int(job->job.state()).Int(job->job.last_sequence()).Int(job->last_worker_sequence);
    query.Int(google::protobuf::util::TimeUtil::TimestampToMicroseconds(job->job.create_time())).Blob(record);
    query.Text(job->job.user()).TextOrNull(sweep).Int(job->keeps_best ? 1 : 0);
    BindResult(*job, &query);
    if (!query.Next()) return absl::InternalError("cannot add a job: the database returned no row");
    job->number = query.GetInt(0);
    return absl::OkStatus();
  });
}

absl::Status Transaction::UpdateJob(StoredJob* job) {
  const std::string record = RecordOf(&job->job);
  return WithoutExceptions("update a job", [&]() -> absl::Status {
    // Most updates are reports. If no indexed column changes, the indexes' pages are not written again.
    Query report(
        connection_,
        "UPDATE jobs SET last_sequence = ?, last_worker_sequence = ?, record = ? WHERE number = ? AND "
        "state = ? AND end_time_us IS ? AND best IS ?");
    report.Int(job->job.last_sequence()).Int(job->last_worker_sequence).Blob(record).Int(job->number);
    report.Int(job->job.state());
    BindResult(*job, &report);
    if (report.Run() == 1) return absl::OkStatus();
    Query query(connection_,
                "UPDATE jobs SET state = ?, last_sequence = ?, last_worker_sequence = ?, record = ?, "
                "end_time_us = ?, best = ? WHERE number = ?");
    query.Int(job->job.state()).Int(job->job.last_sequence()).Int(job->last_worker_sequence).Blob(record);
    BindResult(*job, &query);
    if (query.Int(job->number).Run() != 1) return NoSuchJob(JobId(job->job.name()));
    return absl::OkStatus();
  });
}

absl::Status Transaction::DeleteJob(const StoredJob& job) {
  connection_->NoteThatItFreesRoom();
  return WithoutExceptions("delete a job", [&]() -> absl::Status {
    const std::string id = JobId(job.job.name());
    // The row stays because of its events, under an id that no job can have (TANDEM_IS_DELETED).
    Query query(connection_,
                "UPDATE jobs SET id = '/' || number, request_id = NULL, submitted_spec = NULL, spec = x'', "
                "record = x'', sweep = NULL WHERE number = ?");
    if (query.Int(job.number).Run() != 1) return NoSuchJob(id);
    Query(connection_, "DELETE FROM changes WHERE job = ?").Int(job.number).Run();
    Query(connection_, "DELETE FROM checkpoints WHERE job = ?").Int(job.number).Run();
    Query(connection_, "INSERT OR IGNORE INTO deleted_jobs (id) VALUES (?)").Text(id).Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::Touch() {
  return WithoutExceptions("write to the database", [&]() -> absl::Status {
    // No job has this id.
    Query(connection_, "INSERT INTO deleted_jobs (id) VALUES ('/')").Run();
    Query(connection_, "DELETE FROM deleted_jobs WHERE id = '/'").Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::ReserveJobId(absl::string_view id) {
  return WithoutExceptions("reserve a job's id", [&]() -> absl::Status {
    Query query(connection_,
                "INSERT OR IGNORE INTO deleted_jobs (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE "
                "id = ?)");
    if (query.Text(id).Text(id).Run() == 1) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("cannot use the job id \"", id, "\": it was already used; use another one"));
  });
}

absl::Status Transaction::ReleaseJobId(absl::string_view id) {
  return WithoutExceptions("release a job's id", [&]() -> absl::Status {
    Query(connection_, "DELETE FROM deleted_jobs WHERE id = ?").Text(id).Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> Transaction::RemoveDeleted(int limit) {
  return WithoutExceptions("remove the events of deleted jobs", [&]() -> absl::StatusOr<bool> {
    int64_t number = 0;
    {
      Query deleted(connection_, "SELECT number FROM jobs WHERE " TANDEM_IS_DELETED " LIMIT 1");
      if (!deleted.Next()) return false;
      number = deleted.GetInt(0);
    }
    connection_->NoteThatItFreesRoom();
    Query events(
        connection_,
        "DELETE FROM events WHERE job = ? AND sequence <= (SELECT max(sequence) FROM (SELECT sequence "
        "FROM events WHERE job = ? ORDER BY sequence LIMIT ?))");
    if (events.Int(number).Int(number).Int(limit).Run() < limit) {
      Query(connection_, "DELETE FROM jobs WHERE number = ?").Int(number).Run();
    }
    return true;
  });
}

absl::Status Transaction::AppendEvent(const StoredJob& job, const v1::JobEvent& event) {
  const std::string bytes = event.SerializeAsString();
  // After this event the job can be deleted, which frees space.
  const v1::JobState to = event.state_change().to();
  if (to == v1::JOB_STATE_CANCELLING || to == v1::JOB_STATE_CANCELLED) connection_->NoteThatItFreesRoom();
  return WithoutExceptions("add an event", [&]() -> absl::Status {
    Query query(connection_, "INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)");
    query.Int(job.number).Int(event.sequence()).Blob(bytes).Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::InsertDataset(const StoredDataset& dataset) {
  const std::string id = DatasetId(dataset.dataset.name());
  const std::string record = dataset.dataset.SerializeAsString();
  return WithoutExceptions("add a data set", [&]() -> absl::Status {
    Query query(connection_,
                "INSERT INTO datasets (id, request_id, request, upload, record) VALUES (?, ?, ?, ?, ?)");
    query.Text(id).Request(dataset.request_id, dataset.request).TextOrNull(dataset.upload);
    query.Blob(record).Run();
    return absl::OkStatus();
  });
}

absl::Status Transaction::DeleteDataset(absl::string_view id) {
  connection_->NoteThatItFreesRoom();
  return WithoutExceptions("delete a data set", [&]() -> absl::Status {
    if (Query(connection_, "DELETE FROM datasets WHERE id = ?").Text(id).Run() != 1) {
      return absl::NotFoundError(absl::StrCat("there is no data set \"datasets/", id, "\""));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> Transaction::AppendChange(const StoredJob& job, int64_t sequence) {
  return WithoutExceptions("add a change", [&]() -> absl::StatusOr<int64_t> {
    Query query(connection_, "INSERT INTO changes (job, sequence) VALUES (?, ?) RETURNING cursor");
    if (!query.Int(job.number).Int(sequence).Next()) {
      return absl::InternalError("cannot add a change: the database returned no row");
    }
    return query.GetInt(0);
  });
}

}  // namespace tandem
