#include "client/dashboard/job_stream.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "client/dashboard/calls.h"
#include "client/lib/steady_now.h"

namespace tandem::dashboard {
namespace {

// A write notices that a browser has left.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);
// Events within this time are sent together.
constexpr absl::Duration kTogether = absl::Milliseconds(30);
constexpr size_t kMostPending = 1 << 18;

class Stream : public client::StreamObserver {
 public:
  Stream(const std::function<bool()>& goes_on, WebAnswer& answer)
      : goes_on_(goes_on), answer_(answer), last_write_(client::SteadyNow()) {}

  void Take(const v1::JobEvent& event) {
    if (has_ended()) return;
    last_ = event.sequence();
    absl::StrAppend(&pending_, "id: ", last_, "\nevent: event\ndata: ", ToJson(event), "\n\n");
    if (pending_.size() >= kMostPending) Flush();
  }

  // Ends the stream after the event with this number.
  void EndAt(int64_t sequence) { end_ = sequence; }
  bool has_ended() const { return last_ >= end_; }

  void SendHistory(const v1::GetJobHistoryResponse& history) {
    absl::StrAppend(&pending_, "id: ", history.last_sequence(), "\n");
    Say("snapshot", ToJson(history));
  }

  void Say(absl::string_view event, absl::string_view data) {
    absl::StrAppend(&pending_, "event: ", event, "\ndata: ", data, "\n\n");
    Flush();
  }

  bool KeepGoing() override {
    const absl::Duration silent = client::SteadyNow() - last_write_;
    if (pending_.empty() && silent >= kHeartbeat) pending_ = ":\n\n";
    if (!pending_.empty() && silent >= kTogether) Flush();
    return is_open_ && !has_ended() && goes_on_();
  }
  void Lost(const absl::Status& why, absl::Duration) override { Say("disconnected", ErrorInJson(why)); }
  void Restored() override { Say("connected", "{}"); }

 private:
  void Flush() {
    if (is_open_) is_open_ = answer_.Write(pending_);
    pending_.clear();
    last_write_ = client::SteadyNow();
  }

  const std::function<bool()>& goes_on_;
  WebAnswer& answer_;
  int64_t last_ = 0;
  int64_t end_ = std::numeric_limits<int64_t>::max();
  std::string pending_;
  absl::Duration last_write_;
  bool is_open_ = true;
};

}  // namespace

void StreamJob(client::Client& client, const std::string& name, int64_t after, bool once,
               const std::function<bool()>& goes_on, WebAnswer& answer) {
  Stream stream(goes_on, answer);
  if (after == 0) {
    v1::GetJobHistoryRequest request;
    request.set_name(name);
    const absl::StatusOr<v1::GetJobHistoryResponse> history = client.GetJobHistory(request);
    if (!history.ok()) return stream.Say("problem", ErrorInJson(history.status()));
    after = history->last_sequence();
    stream.SendHistory(*history);
    if (once) return stream.Say("end", "{}");
  } else {
    const absl::StatusOr<v1::Job> job = client.GetJob(name);
    if (!job.ok()) return stream.Say("problem", ErrorInJson(job.status()));
    if (job->last_sequence() < after) {
      stream.Say("reset", "{}");
      return stream.Say("end", "{}");
    }
    if (once) {
      if (job->last_sequence() == after) return stream.Say("end", "{}");
      stream.EndAt(job->last_sequence());
    }
  }
  const absl::Status status =
      client.WatchJob(name, after, stream, [&stream](const v1::JobEvent& event) { stream.Take(event); });
  if (status.ok() || stream.has_ended()) {
    stream.Say("end", "{}");
  } else if (!absl::IsCancelled(status)) {
    stream.Say("problem", ErrorInJson(status));
  }
}

}  // namespace tandem::dashboard
