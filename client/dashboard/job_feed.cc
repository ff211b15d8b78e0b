#include "client/dashboard/job_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/dashboard/calls.h"
#include "client/lib/steady_now.h"

namespace tandem::dashboard {
namespace {

// The events that a feed keeps.
constexpr size_t kMostBytes = 1 << 18;
// The wait for events that the daemon sent together with an event. Longer than the time between their
// arrivals.
constexpr absl::Duration kGather = absl::Milliseconds(10);
// The least time between two wakes of the pages.
constexpr absl::Duration kTogether = absl::Milliseconds(30);

}  // namespace

class JobFeed::Observer : public client::StreamObserver {
 public:
  explicit Observer(JobFeed* feed) : feed_(*feed) {}

  bool KeepGoing() override {
    const absl::MutexLock lock(&feed_.mutex_);
    if (client::SteadyNow() >= feed_.publish_at_) feed_.Publish();
    return !feed_.stopped_;
  }
  absl::Duration Patience() override {
    const absl::MutexLock lock(&feed_.mutex_);
    return std::max(feed_.publish_at_ - client::SteadyNow(), absl::ZeroDuration());
  }
  void Lost(const absl::Status& why, absl::Duration) override {
    const absl::MutexLock lock(&feed_.mutex_);
    feed_.lost_ = why;
    feed_.Publish();
  }
  void Restored() override {
    const absl::MutexLock lock(&feed_.mutex_);
    // The daemon may have returned with a restored, older log. Later pages must not get events of the log
    // before.
    if (!feed_.events_.empty()) feed_.dropped_ = feed_.events_.back().sequence;
    feed_.events_.clear();
    feed_.bytes_ = 0;
    feed_.lost_.reset();
    feed_.Publish();
  }

 private:
  JobFeed& feed_;
};

JobFeed::JobFeed(client::Client* client, std::string name, int64_t after)
    : client_(client), name_(std::move(name)), dropped_(after), taken_(after), reader_([this, after] {
        Read(after);
      }) {}

JobFeed::~JobFeed() {
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  reader_.join();
}

void JobFeed::Read(int64_t after) {
  Observer observer(this);
  const absl::Status end =
      client_->WatchJob(name_, after, observer, [this](const v1::JobEvent& event) { Take(event); });
  const absl::MutexLock lock(&mutex_);
  end_ = end;
  Publish();
}

void JobFeed::Publish() {
  ++version_;
  published_ = client::SteadyNow();
  publish_at_ = absl::InfiniteDuration();
}

void JobFeed::Take(const v1::JobEvent& event) {
  std::string text = absl::StrCat("id: ", event.sequence(), "\nevent: event\ndata: ", ToJson(event), "\n\n");
  const absl::MutexLock lock(&mutex_);
  while (!events_.empty() && bytes_ + text.size() > kMostBytes) {
    const auto may_drop = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopped_ || events_.front().sequence <= taken_;
    };
    if (!may_drop()) Publish();
    mutex_.Await(absl::Condition(&may_drop));
    dropped_ = events_.front().sequence;
    bytes_ -= events_.front().text.size();
    events_.pop_front();
  }
  bytes_ += text.size();
  events_.push_back({event.sequence(), std::move(text)});
  publish_at_ = std::min(publish_at_, std::max(client::SteadyNow() + kGather, published_ + kTogether));
}

JobFeed::News JobFeed::Await(int64_t after, int64_t until, int64_t version, absl::Duration at_most) {
  const absl::MutexLock lock(&mutex_);
  const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return version_ != version; };
  mutex_.AwaitWithTimeout(absl::Condition(&has_news), at_most);
  News news;
  news.version = version_;
  news.last = after;
  if (after < dropped_) {
    news.is_behind = true;
    return news;
  }
  for (const Event& event : events_) {
    if (event.sequence <= after) continue;
    if (event.sequence > until) break;
    news.text += event.text;
    news.last = event.sequence;
  }
  taken_ = std::max(taken_, news.last);
  news.lost = lost_;
  news.end = end_;
  return news;
}

bool JobFeed::Has(int64_t after) {
  const absl::MutexLock lock(&mutex_);
  // After a loss, new pages get no events of the log before.
  const int64_t oldest = lost_.has_value() && !events_.empty() ? events_.back().sequence : dropped_;
  return after >= oldest && (!end_.has_value() || end_->ok());
}

std::shared_ptr<JobFeed> JobFeeds::Join(const std::string& name, int64_t after) {
  const absl::MutexLock lock(&mutex_);
  std::erase_if(feeds_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto known = feeds_.find(name); known != feeds_.end()) {
    std::shared_ptr<JobFeed> feed = known->second.lock();
    if (feed != nullptr && feed->Has(after)) return feed;
  }
  auto feed = std::make_shared<JobFeed>(client_, name, after);
  feeds_[name] = feed;
  return feed;
}

}  // namespace tandem::dashboard
