#include "server/store/job_list.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/job_rows.h"

namespace tandem {
namespace {

using google::protobuf::util::TimeUtil;

// A page ends after this many bytes. With one more spec of at most 1 MiB, the page stays below the 4 MiB that
// gRPC's clients accept by default.
constexpr size_t kPageBytes = 2 << 20;

// The position of a page's last job in the order.
struct Position {
  int64_t create_time_us = 0;
  int64_t number = 0;
  std::string id;
};

// Without repetition.
std::vector<int> StatesOf(const JobQuery& query) {
  std::vector<int> states(query.states.begin(), query.states.end());
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  return states;
}

// Returns the part of a query that must match its page token.
std::string Fingerprint(const JobQuery& query) {
  return absl::StrCat(query.order == JobQuery::Order::kName ? "name" : "time", query.descending ? "-" : "+",
                      absl::StrJoin(StatesOf(query), ","));
}

std::string TokenOf(const JobQuery& query, const v1::Job& job, int64_t number) {
  return absl::WebSafeBase64Escape(absl::StrCat(Fingerprint(query), "|",
                                                TimeUtil::TimestampToMicroseconds(job.create_time()), "|",
                                                number, "|", JobId(job.name())));
}

absl::StatusOr<std::optional<Position>> PositionOf(const JobQuery& query) {
  if (query.page_token.empty()) return std::optional<Position>();
  std::string token;
  Position position;
  if (absl::WebSafeBase64Unescape(query.page_token, &token)) {
    const std::vector<std::string> parts = absl::StrSplit(token, absl::MaxSplits('|', 3));
    if (parts.size() == 4 && parts[0] == Fingerprint(query) &&
        absl::SimpleAtoi(parts[1], &position.create_time_us) &&
        absl::SimpleAtoi(parts[2], &position.number)) {
      position.id = parts[3];
      return std::optional<Position>(std::move(position));
    }
  }
  return absl::InvalidArgumentError(
      "is not a page_token for this order and these states; give the next_page_token of an earlier page, or "
      "none");
}

}  // namespace

std::string JobListStatement(const JobQuery& query) {
  const bool by_name = query.order == JobQuery::Order::kName;
  const absl::string_view beyond = query.descending ? "<" : ">";
  const absl::string_view direction = query.descending ? " DESC" : "";

  std::string rows =
      "SELECT " TANDEM_JOB_COLUMNS ", create_time_us, id FROM jobs WHERE NOT " TANDEM_IS_DELETED;
  if (!query.page_token.empty()) {
    absl::StrAppend(&rows, by_name ? absl::StrCat(" AND id ", beyond, " ?2")
                                   : absl::StrCat(" AND (create_time_us, number) ", beyond, " (?2, ?3)"));
  }
  // An index has each state's jobs in the wanted order, and SQLite merges the states while reading. So the
  // cost depends on the page, not on all jobs in these states.
  std::string sql = rows;
  if (!query.states.empty()) {
    sql = absl::StrJoin(StatesOf(query), " UNION ALL ", [&rows](std::string* text, int state) {
      absl::StrAppend(text, rows, " AND state = ", state);
    });
  }
  if (by_name) {
    absl::StrAppend(&sql, " ORDER BY id", direction);
  } else {
    absl::StrAppend(&sql, " ORDER BY create_time_us", direction, ", number", direction);
  }
  return absl::StrCat(sql, " LIMIT ?1");
}

absl::StatusOr<JobPage> ReadJobList(Connection* connection, const JobQuery& query) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<Position> after, PositionOf(query));
  // Not cached, because many such statements exist.
  const std::unique_ptr<SQLite::Statement> statement = connection->Prepare(JobListStatement(query));
  Query rows(statement.get());
  // Ask for one more row, to know if another page exists.
  const size_t page_size = static_cast<size_t>(std::max(query.page_size, 1));
  rows.Int(static_cast<int64_t>(page_size) + 1);
  if (after.has_value()) {
    if (query.order == JobQuery::Order::kName) {
      rows.Text(after->id);
    } else {
      rows.Int(after->create_time_us).Int(after->number);
    }
  }

  JobPage page;
  size_t page_bytes = 0;
  int64_t last_number = 0;
  while (rows.Next()) {
    if (page.jobs.size() == page_size || page_bytes >= kPageBytes) {
      page.next_page_token = TokenOf(query, page.jobs.back(), last_number);
      break;
    }
    TANDEM_ASSIGN_OR_RETURN(StoredJob row, ReadJobRow(*connection, &rows, /*with_spec=*/true));
    last_number = row.number;
    page_bytes += row.job.ByteSizeLong();
    page.jobs.push_back(std::move(row.job));
  }
  return page;
}

}  // namespace tandem
