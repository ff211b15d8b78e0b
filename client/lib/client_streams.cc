#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/status_details.h"

// The streams of Client.

namespace tandem::client {
namespace {

// Returns the function that makes a stream's final status: `refused` if the call was not made, otherwise the
// daemon's status. `refused` must outlive the function.
std::function<absl::Status(const grpc::Status&)> EndOf(const absl::Status& refused) {
  return [&refused](const grpc::Status& status) { return refused.ok() ? FromGrpcStatus(status) : refused; };
}

}  // namespace

absl::Status Client::WatchJob(absl::string_view name, int64_t after_sequence, StreamObserver& observer,
                              const std::function<void(const v1::JobEvent&)>& on_event) {
  v1::WatchJobRequest request;
  request.set_name(std::string(name));
  request.set_after_sequence(after_sequence);
  bool terminal = false;
  absl::Status refused;
  return RunResumableStream<v1::JobEvent>(
      reconnect_, channel_.get(), observer,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        PrepareStream(context, &refused);
        return jobs_->PrepareAsyncWatchJob(context, request, queue);
      },
      [&](const v1::JobEvent& event) -> absl::Status {
        const int64_t last = request.after_sequence();
        if (event.sequence() <= last) return absl::OkStatus();
        if (event.sequence() != last + 1) {
          return absl::DataLossError(absl::StrCat("cannot follow ", event.job(), ": the daemon sent event ",
                                                  event.sequence(), " after event ", last,
                                                  "; watch the job again, and report this fault"));
        }
        request.set_after_sequence(event.sequence());
        terminal = event.terminal();
        on_event(event);
        return absl::OkStatus();
      },
      EndOf(refused),
      // A FAILED job may be resumed, so a terminal event may have later events: only the daemon knows the
      // end. A stream that starts after the last event has no events.
      [&](const absl::Status& status) {
        return status.ok() &&
               (terminal || (after_sequence > 0 && request.after_sequence() == after_sequence));
      });
}

absl::Status Client::WatchJobs(int64_t after_cursor, StreamObserver& observer,
                               const std::function<void(const v1::WatchJobsResponse&)>& on_change) {
  v1::WatchJobsRequest request;
  request.set_after_cursor(after_cursor);
  absl::Status refused;
  return RunResumableStream<v1::WatchJobsResponse>(
      reconnect_, channel_.get(), observer,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        PrepareStream(context, &refused);
        return jobs_->PrepareAsyncWatchJobs(context, request, queue);
      },
      [&](const v1::WatchJobsResponse& change) -> absl::Status {
        request.set_after_cursor(change.cursor());
        on_change(change);
        return absl::OkStatus();
      },
      EndOf(refused), [](const absl::Status&) { return false; },
      [&](const grpc::ClientContext& context) {
        // Without this cursor, a break before the first change would lose the changes during the break.
        const auto& metadata = context.GetServerInitialMetadata();
        const auto cursor = metadata.find("tandem-cursor");
        int64_t value = 0;
        if (request.after_cursor() == -1 && cursor != metadata.end() &&
            absl::SimpleAtoi(absl::string_view(cursor->second.data(), cursor->second.size()), &value)) {
          request.set_after_cursor(value);
        }
      });
}

absl::Status Client::ReadLog(absl::string_view name, int rank, int64_t offset, bool follow,
                             StreamObserver& observer,
                             const std::function<absl::Status(absl::string_view)>& on_data) {
  v1::ReadLogRequest request;
  request.set_name(std::string(name));
  request.set_rank(rank);
  request.set_offset(offset);
  request.set_follow(follow);
  absl::Status refused;
  return RunResumableStream<v1::ReadLogResponse>(
      reconnect_, channel_.get(), observer,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        PrepareStream(context, &refused);
        return jobs_->PrepareAsyncReadLog(context, request, queue);
      },
      [&](const v1::ReadLogResponse& piece) -> absl::Status {
        if (piece.offset() != request.offset()) {
          return absl::DataLossError(absl::StrCat("cannot read the log of ", name, ": the daemon sent byte ",
                                                  piece.offset(), " instead of byte ", request.offset(),
                                                  "; read the log again, and report this fault"));
        }
        request.set_offset(request.offset() + static_cast<int64_t>(piece.data().size()));
        return on_data(piece.data());
      },
      EndOf(refused), [](const absl::Status& status) { return status.ok(); });
}

absl::Status Client::ReadArtifact(
    absl::string_view name, absl::string_view artifact, int64_t offset, StreamObserver& observer,
    const std::function<absl::Status(const v1::ReadArtifactResponse&)>& on_piece) {
  v1::ReadArtifactRequest request;
  request.set_name(std::string(name));
  request.set_artifact(std::string(artifact));
  request.set_offset(offset);
  absl::Status refused;
  return RunResumableStream<v1::ReadArtifactResponse>(
      reconnect_, channel_.get(), observer,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        PrepareStream(context, &refused);
        return jobs_->PrepareAsyncReadArtifact(context, request, queue);
      },
      [&](const v1::ReadArtifactResponse& piece) -> absl::Status {
        if (piece.offset() != request.offset()) {
          return absl::DataLossError(absl::StrCat(
              "cannot read ", artifact, " of ", name, ": the daemon sent byte ", piece.offset(),
              " instead of byte ", request.offset(), "; read the file again, and report this fault"));
        }
        request.set_offset(request.offset() + static_cast<int64_t>(piece.data().size()));
        return on_piece(piece);
      },
      EndOf(refused), [](const absl::Status& status) { return status.ok(); });
}

template <typename Response>
absl::Status Client::RunModelStream(const std::function<std::unique_ptr<grpc::ClientAsyncReader<Response>>(
                                        grpc::ClientContext*, grpc::CompletionQueue*)>& prepare,
                                    StreamObserver& observer,
                                    const std::function<absl::Status(const Response&)>& on_response) {
  absl::Status refused;
  const auto run = [&]() -> absl::StatusOr<bool> {
    const absl::Status ended = RunStreamOnce<Response>(
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          PrepareStream(context, &refused);
          return prepare(context, queue);
        },
        [](const grpc::ClientContext&) {}, on_response, EndOf(refused), observer);
    if (!ended.ok()) return ended;
    return true;
  };
  return WhileFetching(fetch_observer_, run).status();
}

absl::Status Client::Predict(const v1::PredictRequest& request, StreamObserver& observer,
                             const std::function<void(const v1::PredictResponse&)>& on_response) {
  return RunModelStream<v1::PredictResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return models_->PrepareAsyncPredict(context, request, queue);
      },
      observer,
      [&](const v1::PredictResponse& response) {
        on_response(response);
        return absl::OkStatus();
      });
}

absl::Status Client::ExportModel(const v1::ExportModelRequest& request, StreamObserver& observer,
                                 const std::function<absl::Status(absl::string_view piece)>& on_piece) {
  return RunModelStream<v1::ExportModelResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return models_->PrepareAsyncExportModel(context, request, queue);
      },
      observer, [&](const v1::ExportModelResponse& response) { return on_piece(response.data()); });
}

absl::StatusOr<v1::Evaluation> Client::Evaluate(
    const v1::EvaluateRequest& request, StreamObserver& observer,
    const std::function<void(const v1::EvaluateResponse&)>& on_progress) {
  v1::EvaluateResponse last;
  const absl::Status status = RunModelStream<v1::EvaluateResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return models_->PrepareAsyncEvaluate(context, request, queue);
      },
      observer,
      [&](const v1::EvaluateResponse& response) {
        on_progress(response);
        last = response;
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  if (!last.has_evaluation())
    return absl::DataLossError(
        "cannot evaluate the model: the daemon's stream ended without a result; try again");
  return last.evaluation();
}

}  // namespace tandem::client
