#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/job_rows.h"
#include "server/store/reader_pool.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

// The rows of sweeps. Their jobs are rows of jobs.

namespace tandem {
namespace {

absl::Status NoSuchSweep(absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no sweep \"sweeps/", id, "\""));
}

absl::Status ReadJobs(Connection* connection, StoredSweep* sweep) {
  const std::string id = SweepId(sweep->sweep.name());
  // Those of deleted jobs begin with '/' (see Transaction::DeleteJob).
  Query query(connection, "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC
                          " FROM jobs WHERE sweep = ? AND NOT (id >= '/' AND id < '0') ORDER BY number");
  query.Text(id);
  while (query.Next()) {
    TANDEM_ASSIGN_OR_RETURN(StoredJob job, ReadJobRow(*connection, &query, /*with_spec=*/false));
    sweep->jobs.push_back(std::move(job));
  }
  return absl::OkStatus();
}

absl::Status ReadRow(Query* query, StoredSweep* sweep) {
  sweep->number = query->GetInt(0);
  return ParseStored(query->GetBlob(1), "sweep", &sweep->sweep);
}

}  // namespace

absl::Status Transaction::InsertSweep(StoredSweep* sweep, absl::string_view request_id,
                                      const v1::Sweep& submitted) {
  const std::string id = SweepId(sweep->sweep.name());
  const std::string record = sweep->sweep.SerializeAsString();
  const std::string request = submitted.SerializeAsString();
  return WithoutExceptions("add a sweep", [&]() -> absl::Status {
    Query query(
        connection_,
        "INSERT INTO sweeps (id, request_id, submitted, record) VALUES (?, ?, ?, ?) RETURNING number");
    query.Text(id);
    if (request_id.empty()) {
      query.Null().Null();
    } else {
      query.Text(request_id).Blob(request);
    }
    query.Blob(record);
    if (!query.Next()) return absl::InternalError("database: add a sweep: no row came back");
    sweep->number = query.GetInt(0);
    return absl::OkStatus();
  });
}

absl::Status Transaction::UpdateSweep(const StoredSweep& sweep) {
  const std::string record = sweep.sweep.SerializeAsString();
  return WithoutExceptions("update a sweep", [&]() -> absl::Status {
    Query query(connection_, "UPDATE sweeps SET record = ? WHERE number = ?");
    if (query.Blob(record).Int(sweep.number).Run() != 1) return NoSuchSweep(SweepId(sweep.sweep.name()));
    return absl::OkStatus();
  });
}

absl::Status Transaction::DeleteSweep(absl::string_view id) {
  connection_->NoteThatItFreesRoom();
  return WithoutExceptions("delete a sweep", [&]() -> absl::Status {
    if (Query(connection_, "DELETE FROM sweeps WHERE id = ?").Text(id).Run() != 1) return NoSuchSweep(id);
    return absl::OkStatus();
  });
}

absl::StatusOr<StoredSweep> Transaction::GetSweep(absl::string_view id) {
  return WithoutExceptions("read a sweep", [&]() -> absl::StatusOr<StoredSweep> {
    StoredSweep sweep;
    Query query(connection_, "SELECT number, record FROM sweeps WHERE id = ?");
    if (!query.Text(id).Next()) return NoSuchSweep(id);
    TANDEM_RETURN_IF_ERROR(ReadRow(&query, &sweep));
    TANDEM_RETURN_IF_ERROR(ReadJobs(connection_, &sweep));
    return sweep;
  });
}

absl::StatusOr<std::optional<StoredSweepRequest>> Transaction::FindSweepRequest(
    absl::string_view request_id) {
  return WithoutExceptions("find a request", [&]() -> absl::StatusOr<std::optional<StoredSweepRequest>> {
    Query query(connection_, "SELECT number, record, submitted FROM sweeps WHERE request_id = ?");
    if (!query.Text(request_id).Next()) return std::optional<StoredSweepRequest>();
    StoredSweepRequest request;
    TANDEM_RETURN_IF_ERROR(ReadRow(&query, &request.sweep));
    TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(2), "sweep", &request.submitted));
    TANDEM_RETURN_IF_ERROR(ReadJobs(connection_, &request.sweep));
    return std::optional<StoredSweepRequest>(std::move(request));
  });
}

absl::StatusOr<StoredSweep> Store::GetSweep(absl::string_view id) {
  return readers_->Read("read a sweep",
                        [&](Connection* connection) { return Transaction(connection).GetSweep(id); });
}

absl::StatusOr<std::optional<StoredSweepRequest>> Store::FindSweepRequest(absl::string_view request_id) {
  return readers_->Read("find a request", [&](Connection* connection) {
    return Transaction(connection).FindSweepRequest(request_id);
  });
}

absl::StatusOr<SweepPage> Store::ListSweeps(int64_t before, int limit, int64_t most_jobs) {
  return readers_->Read("list sweeps", [&](Connection* connection) -> absl::StatusOr<SweepPage> {
    SweepPage page;
    {
      Query query(connection,
                  "SELECT number, record FROM sweeps WHERE number < ? OR ? = 0 ORDER BY number DESC LIMIT ?");
      // One more than asked for tells whether there is another page.
      query.Int(before).Int(before).Int(int64_t{limit} + 1);
      while (query.Next()) {
        if (page.sweeps.size() == static_cast<size_t>(limit)) {
          page.next_before = page.sweeps.back().number;
          break;
        }
        TANDEM_RETURN_IF_ERROR(ReadRow(&query, &page.sweeps.emplace_back()));
      }
    }
    int64_t jobs = 0;
    for (size_t i = 0; i < page.sweeps.size(); ++i) {
      StoredSweep& sweep = page.sweeps[i];
      TANDEM_RETURN_IF_ERROR(ReadJobs(connection, &sweep));
      jobs += static_cast<int64_t>(sweep.jobs.size());
      if (jobs <= most_jobs || i + 1 == page.sweeps.size()) continue;
      // The rest is the next page's.
      page.next_before = sweep.number;
      page.sweeps.resize(i + 1);
    }
    return page;
  });
}

}  // namespace tandem
