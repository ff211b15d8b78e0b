#include "client/dashboard/job_stream.h"

#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/dashboard/calls.h"
#include "client/lib/steady_now.h"

namespace tandem::dashboard {
namespace {

using google::protobuf::util::TimeUtil;

// A write notices that a browser has left.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);
// Events within this time are sent together.
constexpr absl::Duration kTogether = absl::Milliseconds(30);
constexpr size_t kMostPending = 1 << 18;

// Appends a number with fewer than the 9 digits that tell all floats apart.
void AppendNumber(double value, std::string* text) {
  if (!std::isfinite(value)) {
    text->append("null");
    return;
  }
  char digits[32];
  text->append(digits, std::snprintf(digits, sizeof(digits), "%.9g", value));
}

// The reports of training, as columns.
class Columns {
 public:
  void Add(const v1::JobEvent& event) {
    const v1::Progress& progress = event.progress();
    Set("sequence", absl::StrCat(event.sequence()));
    Set("step", absl::StrCat(progress.step()));
    Set("steps", absl::StrCat(progress.steps()));
    Set("epochs", absl::StrCat(progress.epochs()));
    Set("attempt", absl::StrCat(event.attempt()));
    Set("time",
        absl::StrCat(TimeUtil::TimestampToMilliseconds(event.time()) / 1000, ".",
                     absl::StrCat(1000 + TimeUtil::TimestampToMilliseconds(event.time()) % 1000).substr(1)));
    SetNumber("training/loss", progress.training().loss());
    for (const auto& [name, value] : progress.training().metrics())
      SetNumber(absl::StrCat("training/", name), value);
    SetNumber("learning_rate", progress.learning_rate());
    SetNumber("images_per_second", progress.images_per_second());
    ++rows_;
  }

  std::string ToJson() const {
    std::string json = "{";
    for (const auto& [name, column] : columns_) {
      // Names of metrics are the API's and need no escapes.
      absl::StrAppend(&json, json.size() > 1 ? "," : "", "\"", name, "\":[", column.text);
      for (int64_t row = column.rows; row < rows_; ++row) json.append(row == 0 ? "null" : ",null");
      json.push_back(']');
    }
    return json + "}";
  }

 private:
  struct Column {
    std::string text;
    int64_t rows = 0;
  };

  std::string* Next(const std::string& name) {
    Column& column = columns_[name];
    for (; column.rows < rows_; ++column.rows) column.text.append(column.rows == 0 ? "null" : ",null");
    if (column.rows++ > 0) column.text.push_back(',');
    return &column.text;
  }
  void Set(const std::string& name, const std::string& value) { Next(name)->append(value); }
  void SetNumber(const std::string& name, double value) { AppendNumber(value, Next(name)); }

  std::map<std::string, Column> columns_;
  int64_t rows_ = 0;
};

class Stream : public client::StreamObserver {
 public:
  Stream(int64_t history, const std::function<bool()>& goes_on, WebAnswer& answer)
      : history_(history), goes_on_(goes_on), answer_(answer), last_write_(client::SteadyNow()) {}

  void Take(const v1::JobEvent& event) {
    if (is_history() && event.sequence() <= history_) {
      if (event.has_progress()) {
        columns_.Add(event);
      } else {
        events_.push_back(ToJson(event));
      }
      if (event.sequence() == history_) SendHistory();
      return;
    }
    absl::StrAppend(&pending_, "id: ", event.sequence(), "\nevent: event\ndata: ", ToJson(event), "\n\n");
    if (pending_.size() >= kMostPending) Flush();
  }

  // Sends the history, which is complete. An event may be missing because the log ended before it.
  void SendHistory() {
    if (!is_history()) return;
    absl::StrAppend(&pending_, "id: ", history_, "\nevent: snapshot\ndata: {\"sequence\":", history_,
                    ",\"progress\":", columns_.ToJson(), ",\"events\":[", absl::StrJoin(events_, ","),
                    "]}\n\n");
    columns_ = {};
    events_ = {};
    history_ = -1;
    Flush();
  }

  void Say(absl::string_view event, absl::string_view data) {
    absl::StrAppend(&pending_, "event: ", event, "\ndata: ", data, "\n\n");
    Flush();
  }

  bool KeepGoing() override {
    const absl::Duration silent = client::SteadyNow() - last_write_;
    if (pending_.empty() && silent >= kHeartbeat) pending_ = ":\n\n";
    if (!pending_.empty() && silent >= kTogether) Flush();
    return is_open_ && goes_on_();
  }
  void Lost(const absl::Status& why, absl::Duration) override { Say("disconnected", ErrorInJson(why)); }
  void Restored() override { Say("connected", "{}"); }

 private:
  bool is_history() const { return history_ >= 0; }
  void Flush() {
    if (is_open_) is_open_ = answer_.Write(pending_);
    pending_.clear();
    last_write_ = client::SteadyNow();
  }

  // The last event of the history. -1 after the history was sent, or if none is wanted.
  int64_t history_;
  const std::function<bool()>& goes_on_;
  WebAnswer& answer_;
  Columns columns_;
  std::vector<std::string> events_;
  std::string pending_;
  absl::Duration last_write_;
  bool is_open_ = true;
};

}  // namespace

void StreamJob(client::Client& client, const std::string& name, int64_t after,
               const std::function<bool()>& goes_on, WebAnswer& answer) {
  int64_t history = -1;
  if (after == 0) {
    const absl::StatusOr<v1::Job> job = client.GetJob(name);
    if (!job.ok()) {
      answer.Write(absl::StrCat("event: problem\ndata: ", ErrorInJson(job.status()), "\n\n"));
      return;
    }
    history = job->last_sequence();
  }
  Stream stream(history, goes_on, answer);
  const absl::Status status =
      client.WatchJob(name, after, stream, [&stream](const v1::JobEvent& event) { stream.Take(event); });
  if (status.ok()) {
    stream.SendHistory();
    stream.Say("end", "{}");
  } else if (!absl::IsCancelled(status)) {
    stream.Say("problem", ErrorInJson(status));
  }
}

}  // namespace tandem::dashboard
