#include "client/dashboard/job_stream.h"

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/dashboard/calls.h"
#include "client/lib/steady_now.h"

namespace tandem::dashboard {
namespace {

// A write notices that a browser has left.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);
// Between two looks at `goes_on`.
constexpr absl::Duration kLook = absl::Seconds(1);

// Writes Server-Sent Events.
class Stream {
 public:
  explicit Stream(WebAnswer& answer) : answer_(answer), last_write_(client::SteadyNow()) {}

  void Write(absl::string_view text) {
    if (is_open_) is_open_ = answer_.Write(text);
    last_write_ = client::SteadyNow();
  }

  void Say(absl::string_view event, absl::string_view data) {
    Write(absl::StrCat("event: ", event, "\ndata: ", data, "\n\n"));
  }

  // Returns false if the browser has left.
  bool IsOpen() {
    if (client::SteadyNow() - last_write_ >= kHeartbeat) Write(":\n\n");
    return is_open_;
  }

 private:
  WebAnswer& answer_;
  absl::Duration last_write_;
  bool is_open_ = true;
};

// Sends the events after `after` and not after `until`.
void Follow(JobFeeds& feeds, const std::string& name, int64_t after, int64_t until,
            const std::function<bool()>& goes_on, Stream& stream) {
  std::shared_ptr<JobFeed> feed = feeds.Join(name, after);
  int64_t version = -1;
  bool is_lost = false;
  while (stream.IsOpen() && goes_on()) {
    const JobFeed::News news = feed->Await(after, until, version, kLook);
    if (news.is_behind) {
      feed = feeds.Join(name, after);
      version = -1;
      continue;
    }
    if (!news.text.empty()) stream.Write(news.text);
    version = news.version;
    after = news.last;
    if (news.lost.has_value() != is_lost) {
      is_lost = news.lost.has_value();
      stream.Say(is_lost ? "disconnected" : "connected", is_lost ? ErrorInJson(*news.lost) : "{}");
    }
    if (after >= until || (news.end.has_value() && news.end->ok())) return stream.Say("end", "{}");
    if (news.end.has_value()) return stream.Say("problem", ErrorInJson(*news.end));
  }
}

}  // namespace

void StreamJob(client::Client& client, JobFeeds& feeds, const std::string& name, int64_t after, bool once,
               const std::function<bool()>& goes_on, WebAnswer& answer) {
  Stream stream(answer);
  int64_t until = std::numeric_limits<int64_t>::max();
  if (after == 0) {
    v1::GetJobHistoryRequest request;
    request.set_name(name);
    const absl::StatusOr<v1::GetJobHistoryResponse> history = client.GetJobHistory(request);
    if (!history.ok()) return stream.Say("problem", ErrorInJson(history.status()));
    after = history->last_sequence();
    stream.Write(absl::StrCat("id: ", after, "\nevent: snapshot\ndata: ", ToJson(*history), "\n\n"));
    if (once) return stream.Say("end", "{}");
  } else {
    const absl::StatusOr<v1::Job> job = client.GetJob(name);
    if (!job.ok()) return stream.Say("problem", ErrorInJson(job.status()));
    if (job->last_sequence() < after) {
      stream.Say("reset", "{}");
      return stream.Say("end", "{}");
    }
    if (once) until = job->last_sequence();
  }
  if (after >= until) return stream.Say("end", "{}");
  Follow(feeds, name, after, until, goes_on, stream);
}

}  // namespace tandem::dashboard
