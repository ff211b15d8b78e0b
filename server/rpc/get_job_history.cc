#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_curves.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

constexpr int kLeastPoints = 5;
constexpr int kDefaultPoints = 4000;
constexpr int kMostPoints = 10'000;
// A page of events ends after so many bytes. With as many curves as a job has, an answer stays below the
// 4 MiB that gRPC's clients take.
constexpr int64_t kEventBytes = 1 << 20;
// The most that one turn on the pool reads: events, and bytes of events that are no reports.
constexpr int kTurnEvents = 4096;
constexpr int64_t kTurnBytes = 4 << 20;
// A job has fewer curves. A worker that makes up names of metrics takes no more memory.
constexpr size_t kMostCurves = 32;
// A point while it is kept, and once more in the answer.
constexpr int64_t kPointBytes = 48;

// The content of a page token.
struct Position {
  // The last event that was read, and the newest event that all pages cover. 0: the first page.
  int64_t sequence = 0;
  int64_t last_sequence = 0;
  // The step of the newest report up to `sequence`.
  int64_t step = 0;
};

std::string ToToken(const Position& position) {
  return absl::StrCat(position.sequence, "-", position.last_sequence, "-", position.step);
}

std::optional<Position> ParseToken(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '-');
  Position position;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &position.sequence) ||
      !absl::SimpleAtoi(parts[1], &position.last_sequence) || !absl::SimpleAtoi(parts[2], &position.step) ||
      position.sequence < 1 || position.last_sequence <= position.sequence || position.step < 0) {
    return std::nullopt;
  }
  return position;
}

struct Query {
  CurveRange range;
  bool has_curves = true;
  bool has_events = true;
  Position begin;
};

absl::StatusOr<Query> ParseQuery(const v1::GetJobHistoryRequest& request) {
  FieldViolations violations;
  Query query;
  if (request.first_step() < 0)
    violations.Add("first_step", absl::StrCat("is ", request.first_step(), "; it must be at least 0"));
  query.range.first_step = request.first_step();
  if (request.last_step() < 0 || (request.last_step() > 0 && request.last_step() < request.first_step())) {
    violations.Add("last_step", absl::StrCat("is ", request.last_step(), "; it must be 0, or at least ",
                                             "first_step, which is ", request.first_step()));
  }
  if (request.last_step() > 0) query.range.last_step = request.last_step();
  query.range.max_points = request.max_points() == 0 ? kDefaultPoints : request.max_points();
  if (query.range.max_points < kLeastPoints || query.range.max_points > kMostPoints) {
    violations.Add("max_points", absl::StrCat("is ", request.max_points(), "; it must be from ", kLeastPoints,
                                              " to ", kMostPoints));
  }
  if (!v1::JobHistoryView_IsValid(request.view()))
    violations.Add("view", absl::StrCat("is ", request.view(), ", which is not a view of a job's history"));
  query.has_curves = request.view() != v1::JOB_HISTORY_VIEW_EVENTS;
  query.has_events = request.view() != v1::JOB_HISTORY_VIEW_CURVES;
  if (!request.page_token().empty()) {
    const std::optional<Position> begin = ParseToken(request.page_token());
    if (!begin.has_value()) {
      violations.Add(
          "page_token",
          "is not a page_token of this method; give the next_page_token of an earlier page, or none");
    } else {
      query.begin = *begin;
      query.has_curves = false;
    }
  }
  if (absl::Status status = violations.ToStatus(); !status.ok()) return status;
  return query;
}

// Reads a log, a turn on the pool after the other, and answers. One thread uses it at a time.
class HistoryReading {
 public:
  HistoryReading(std::string user, std::string name, std::string id, Query query,
                 Reply<v1::GetJobHistoryResponse> reply, JobMachine* jobs, FairPool* pool)
      : jobs_(jobs),
        pool_(pool),
        user_(std::move(user)),
        name_(std::move(name)),
        id_(std::move(id)),
        query_(std::move(query)),
        position_(query_.begin),
        curves_(query_.range),
        reply_(std::move(reply)) {}

  // On the pool.
  static void Begin(std::unique_ptr<HistoryReading> self) {
    const int64_t bytes =
        (self->query_.has_events ? kEventBytes : 0) +
        (self->query_.has_curves ? int64_t{kMostCurves} / 2 * self->query_.range.max_points * kPointBytes
                                 : 0);
    absl::StatusOr<FairPool::Hold> hold = self->pool_->HoldMore(self->user_, bytes);
    if (!hold.ok()) return self->reply_(hold.status());
    self->reply_.Keep(*std::move(hold));
    Continue(std::move(self));
  }

 private:
  // Takes a turn, and either asks for the next or answers.
  static void Continue(std::unique_ptr<HistoryReading> self) {
    if (!self->reply_.is_wanted()) return self->reply_(absl::CancelledError("the client cancelled the call"));
    const absl::StatusOr<bool> is_done = self->ReadTurn();
    if (!is_done.ok()) return self->reply_(ExplainJobError(is_done.status(), self->name_));
    if (*is_done) return self->reply_(self->Answer());
    FairPool* const pool = self->pool_;
    const std::string user = self->user_;
    pool->Post(user, [self = std::move(self)]() mutable { Continue(std::move(self)); });
  }

  // True: everything was read.
  absl::StatusOr<bool> ReadTurn() {
    int64_t bytes = 0;
    int events = 0;
    bool is_done = false;
    const absl::StatusOr<int64_t> newest =
        jobs_->VisitEvents(id_, position_.sequence, kTurnEvents, [&](const v1::JobEvent& event) {
          ++events;
          if (position_.last_sequence > 0 && event.sequence() > position_.last_sequence) {
            is_done = true;
            return false;
          }
          const int64_t size = event.has_progress() ? 0 : static_cast<int64_t>(event.ByteSizeLong());
          if (!Take(event, size)) {
            is_done = true;
            return false;
          }
          position_.sequence = event.sequence();
          bytes += size;
          return bytes < kTurnBytes;
        });
    if (!newest.ok()) return newest.status();
    // All later turns end where the log ended in the first.
    if (position_.last_sequence == 0) position_.last_sequence = *newest;
    if (curves_.size() > kMostCurves) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot return the history of ", name_,
                                                       ": its reports have more than ", kMostCurves,
                                                       " measures; use WatchJob"));
    }
    if (!is_done && events > 0 && position_.sequence < position_.last_sequence) return false;
    if (!is_rereading_ && query_.has_curves && curves_.needs_second_reading()) {
      is_rereading_ = true;
      curves_.BeginSecondReading();
      position_.sequence = 0;
      return false;
    }
    return true;
  }

  // False: there is nothing more to read.
  bool Take(const v1::JobEvent& event, int64_t size) {
    if (is_rereading_) {
      curves_.AddAgain(event);
      return true;
    }
    if (event.has_progress()) {
      position_.step = event.progress().step();
      if (query_.has_curves) {
        curves_.Add(event);
        newest_report_ = event.sequence();
      }
      return true;
    }
    if (!query_.has_events || next_page_.has_value()) return true;
    // A page has one event at least.
    if (response_.events_size() > 0 && event_bytes_ + size > kEventBytes) {
      next_page_ = position_;
      return query_.has_curves;
    }
    event_bytes_ += size;
    *response_.add_events() = event;
    response_.add_event_steps(position_.step);
    return true;
  }

  absl::StatusOr<v1::GetJobHistoryResponse> Answer() {
    response_.set_last_sequence(position_.last_sequence);
    curves_.Write(response_.mutable_curves());
    if (newest_report_ > 0) {
      // Copied once, not for each report.
      const absl::StatusOr<int64_t> read =
          jobs_->VisitEvents(id_, newest_report_ - 1, 1, [this](const v1::JobEvent& event) {
            *response_.mutable_newest_report() = event.progress();
            return false;
          });
      if (!read.ok()) return ExplainJobError(read.status(), name_);
    }
    if (next_page_.has_value()) {
      next_page_->last_sequence = position_.last_sequence;
      response_.set_next_page_token(ToToken(*next_page_));
    }
    return std::move(response_);
  }

  JobMachine* const jobs_;
  FairPool* const pool_;
  const std::string user_;
  const std::string name_;
  const std::string id_;
  const Query query_;
  Position position_;
  bool is_rereading_ = false;
  JobCurves curves_;
  // Its sequence number; 0: none.
  int64_t newest_report_ = 0;
  int64_t event_bytes_ = 0;
  // Set: the page of events is full, and the next begins here.
  std::optional<Position> next_page_;
  v1::GetJobHistoryResponse response_;
  Reply<v1::GetJobHistoryResponse> reply_;
};

}  // namespace

void GetJobHistory(const Caller& caller, const v1::GetJobHistoryRequest& request,
                   Reply<v1::GetJobHistoryResponse> reply, JobMachine* jobs, FairPool* pool) {
  absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  const absl::StatusOr<Query> query = ParseQuery(request);
  if (!query.ok()) return reply(query.status());
  PostFor(pool, caller, request, std::move(reply),
          [jobs, pool, user = caller.user, name = request.name(), id = *std::move(id),
           query = *query](Reply<v1::GetJobHistoryResponse> reply) {
            HistoryReading::Begin(
                std::make_unique<HistoryReading>(user, name, id, query, std::move(reply), jobs, pool));
          });
}

}  // namespace tandem::rpc
