#include "client/dashboard/job_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <memory>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"

namespace tandem::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kWholeLog = std::numeric_limits<int64_t>::max();

v1::JobEvent Event(int64_t sequence) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  event.mutable_progress()->set_step(sequence);
  return event;
}

// Returns the news of a page that has the events up to `after`. Waits until the news fit, at most a minute.
JobFeed::News AwaitNews(JobFeed& feed, int64_t after,
                        const std::function<bool(const JobFeed::News& news)>& fit) {
  JobFeed::News news = feed.Await(after, kWholeLog, /*version=*/-1, absl::ZeroDuration());
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!fit(news) && absl::Now() < deadline) {
    news = feed.Await(after, kWholeLog, news.version, absl::Seconds(1));
  }
  return news;
}

TEST(JobFeedTest, KeepsItsEventsUntilTheConnectionIsBack) {
  absl::Notification may_return;
  std::atomic<int> calls = 0;
  client::FakeDaemon daemon;
  daemon.watch_job = [&](const v1::WatchJobRequest& request, grpc::ServerContext* context,
                         grpc::ServerWriter<v1::JobEvent>* writer) {
    if (++calls == 1) {
      for (int64_t i = 1; i <= 3; ++i) writer->Write(Event(i));
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon stops");
    }
    while (!may_return.WaitForNotificationWithTimeout(absl::Milliseconds(10)) && !context->IsCancelled()) {
    }
    v1::JobEvent last = Event(request.after_sequence() + 1);
    last.set_terminal(true);
    writer->Write(last);
    return grpc::Status::OK;
  };
  client::ConnectionOptions options;
  options.address = daemon.address();
  const std::unique_ptr<client::Client> client = *client::Client::Create(options);
  JobFeed feed(client.get(), "jobs/x", /*after=*/0);

  // A slow page still gets the events.
  const auto is_lost = [](const JobFeed::News& news) { return news.lost.has_value(); };
  JobFeed::News news = AwaitNews(feed, /*after=*/0, is_lost);
  ASSERT_TRUE(news.lost.has_value());
  EXPECT_THAT(std::string(news.lost->message()), HasSubstr("the daemon stops"));
  EXPECT_FALSE(news.is_behind);
  EXPECT_THAT(news.text, HasSubstr("id: 1\n"));
  EXPECT_THAT(news.text, HasSubstr("id: 3\n"));
  EXPECT_EQ(news.last, 3);
  // The daemon may return with an older log. So a new page must not get these events.
  EXPECT_FALSE(feed.Has(0));
  EXPECT_FALSE(feed.Has(2));
  EXPECT_TRUE(feed.Has(3));

  may_return.Notify();
  const auto has_ended = [](const JobFeed::News& news) { return news.end.has_value(); };
  news = AwaitNews(feed, /*after=*/3, has_ended);
  ASSERT_TRUE(news.end.has_value());
  EXPECT_TRUE(news.end->ok()) << *news.end;
  EXPECT_FALSE(news.lost.has_value());
  EXPECT_THAT(news.text, HasSubstr("id: 4\n"));
  EXPECT_THAT(news.text, Not(HasSubstr("id: 3\n")));
  // The feed no longer has the earlier events. A slow page gets them from another feed.
  news = AwaitNews(feed, /*after=*/2, [](const JobFeed::News& behind) { return behind.is_behind; });
  EXPECT_TRUE(news.is_behind);
  EXPECT_EQ(news.text, "");
  EXPECT_EQ(news.last, 2);
  EXPECT_FALSE(feed.Has(2));
  EXPECT_TRUE(feed.Has(3));
}

}  // namespace
}  // namespace tandem::dashboard
