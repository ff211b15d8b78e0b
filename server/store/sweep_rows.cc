#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/job_rows.h"
#include "server/store/reader_pool.h"
#include "server/store/store.h"
#include "server/store/transaction.h"

// The part of Transaction and Store about sweeps. Their jobs are rows of jobs.

namespace tandem {
namespace {

absl::Status NoSuchSweep(absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no sweep \"sweeps/", id, "\""));
}

absl::Status ReadJobs(Connection* connection, StoredSweep* sweep) {
  const std::string id = SweepId(sweep->sweep.name());
  Query query(connection,
              "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC " FROM jobs WHERE sweep = ? ORDER BY number");
  query.Text(id);
  while (query.Next()) {
    TANDEM_ASSIGN_OR_RETURN(StoredJob job, ReadJobRow(*connection, &query, /*with_spec=*/false));
    sweep->jobs.push_back(std::move(job));
  }
  return absl::OkStatus();
}

template <typename Sweep>
absl::Status ReadRow(Query* query, Sweep* sweep) {
  sweep->number = query->GetInt(0);
  return ParseStored(query->GetBlob(1), "sweep", &sweep->sweep);
}

// Sets the summary of the sweep's jobs. Reads only the best job's own row.
absl::Status ReadSummary(Connection* connection, ListedSweep* sweep) {
  const std::string id = SweepId(sweep->sweep.name());
  const bool upwards = sweep->sweep.objective().mode() == v1::PLATEAU_MODE_MAX;
  std::optional<double> best;
  std::vector<v1::JobState> best_states;
  {
    Query query(connection,
                "SELECT state, count(*), count(end_time_us), max(end_time_us), min(best), max(best) "
                "FROM jobs WHERE sweep = ? GROUP BY state");
    query.Text(id);
    int64_t jobs = 0, ended = 0;
    while (query.Next()) {
      const auto state = static_cast<v1::JobState>(query.GetInt(0));
      sweep->counts[state] = static_cast<int>(query.GetInt(1));
      jobs += query.GetInt(1);
      ended += query.GetInt(2);
      sweep->end_time_us = std::max(sweep->end_time_us, query.GetInt(3));
      const int column = upwards ? 5 : 4;
      // A FAILED job is never the best.
      if (state == v1::JOB_STATE_FAILED || query.IsNull(column)) continue;
      const double value = query.GetDouble(column);
      if (best.has_value() && (upwards ? value < *best : value > *best)) continue;
      if (best != value) best_states.clear();
      best = value;
      best_states.push_back(state);
    }
    sweep->has_ended = jobs > 0 && ended == jobs;
  }
  // Find the first job with the best value.
  std::optional<int64_t> number;
  for (const v1::JobState state : best_states) {
    Query query(connection, "SELECT min(number) FROM jobs WHERE sweep = ? AND state = ? AND best = ?");
    if (query.Text(id).Int(state).Double(*best).Next() && !query.IsNull(0)) {
      number = std::min(number.value_or(query.GetInt(0)), query.GetInt(0));
    }
  }
  if (!number.has_value()) return absl::OkStatus();
  Query query(connection, "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC " FROM jobs WHERE number = ?");
  if (!query.Int(*number).Next()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(StoredJob job, ReadJobRow(*connection, &query, /*with_spec=*/false));
  sweep->best = std::move(job);
  return absl::OkStatus();
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
    query.Text(id).Request(request_id, request).Blob(record);
    if (!query.Next()) return absl::InternalError("cannot add a sweep: the database returned no row");
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
      // Ask for one more row, to know if another page exists.
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
      ListedSweep& sweep = page.sweeps[i];
      TANDEM_RETURN_IF_ERROR(ReadSummary(connection, &sweep));
      jobs += sweep.sweep.jobs();
      if (jobs <= most_jobs || i + 1 == page.sweeps.size()) continue;
      // The rest belongs to the next page.
      page.next_before = sweep.number;
      page.sweeps.resize(i + 1);
    }
    return page;
  });
}

}  // namespace tandem
