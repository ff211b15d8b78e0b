#include "client/dashboard/job_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"

namespace tandem::dashboard {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// A browser that takes events until it has enough.
class FakeBrowser : public WebAnswer {
 public:
  explicit FakeBrowser(size_t most_writes = 1000, absl::Duration pause = absl::ZeroDuration())
      : left_(most_writes), pause_(pause) {}
  void Send(int, absl::string_view, absl::string_view, const Headers&) override { FAIL(); }
  bool Begin(absl::string_view, const Headers&) override { return true; }
  bool Write(absl::string_view bytes) override {
    if (left_ == 0) return false;
    --left_;
    absl::SleepFor(pause_);
    text_ += std::string(bytes);
    return true;
  }

  struct Event {
    std::string id, name;
    json data;
  };
  std::vector<Event> Events() const {
    std::vector<Event> events;
    for (const std::string& block : std::vector<std::string>(absl::StrSplit(text_, "\n\n"))) {
      Event event;
      for (absl::string_view line : absl::StrSplit(block, '\n')) {
        if (absl::ConsumePrefix(&line, "id: ")) event.id = std::string(line);
        if (absl::ConsumePrefix(&line, "event: ")) event.name = std::string(line);
        if (absl::ConsumePrefix(&line, "data: ")) event.data = json::parse(std::string(line));
      }
      if (!event.name.empty()) events.push_back(std::move(event));
    }
    return events;
  }

 private:
  size_t left_;
  absl::Duration pause_;
  std::string text_;
};

v1::JobEvent Report(int64_t sequence, int64_t step, double loss) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  event.set_attempt(1);
  event.mutable_time()->set_seconds(100 + sequence);
  event.mutable_time()->set_nanos(5'000'000);
  event.mutable_progress()->set_step(step);
  event.mutable_progress()->set_steps(10);
  event.mutable_progress()->set_epochs(2);
  event.mutable_progress()->mutable_training()->set_loss(loss);
  return event;
}

v1::JobEvent Change(int64_t sequence, v1::JobState to) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  event.set_terminal(to == v1::JOB_STATE_SUCCEEDED);
  event.mutable_state_change()->set_to(to);
  return event;
}

class JobStreamTest : public testing::Test {
 protected:
  JobStreamTest() {
    daemon_.get_job_history = [this](const v1::GetJobHistoryRequest& request,
                                     v1::GetJobHistoryResponse* response) {
      if (request.name() != "jobs/x")
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no such job");
      response->set_last_sequence(history_);
      v1::Curve& loss = *response->add_curves();
      loss.set_name("training/loss");
      for (const v1::JobEvent& event : log_) {
        if (event.sequence() > history_) break;
        if (event.has_progress()) {
          loss.add_steps(event.progress().step());
          loss.add_times(100.5);
          loss.add_values(event.progress().training().loss());
        } else {
          *response->add_events() = event;
        }
      }
      return grpc::Status::OK;
    };
    daemon_.get_job = [this](const v1::GetJobRequest& request, v1::Job* job) {
      job->set_name(request.name());
      job->set_last_sequence(newest_);
      return grpc::Status::OK;
    };
    daemon_.watch_job = [this](const v1::WatchJobRequest& request, grpc::ServerContext*,
                               grpc::ServerWriter<v1::JobEvent>* writer) {
      for (const v1::JobEvent& event : log_) {
        if (event.sequence() > request.after_sequence()) writer->Write(event);
      }
      return grpc::Status::OK;
    };
  }

  std::vector<FakeBrowser::Event> Stream(int64_t after, const std::string& name = "jobs/x",
                                         bool once = false) {
    FakeBrowser browser;
    StreamJob(
        *client_, feeds_, name, after, once, [] { return true; }, browser);
    return browser.Events();
  }

  std::vector<v1::JobEvent> log_ = {Change(1, v1::JOB_STATE_RUNNING), Report(2, 1, 0.5),
                                    Report(3, 2, std::nan("")), Report(4, 3, 0.1),
                                    Change(5, v1::JOB_STATE_SUCCEEDED)};
  // The newest event of the job's record.
  int64_t newest_ = 5;
  // The newest event when the page is opened.
  int64_t history_ = 3;
  client::FakeDaemon daemon_;
  std::unique_ptr<client::Client> client_ = daemon_.Connect();
  JobFeeds feeds_{client_.get()};
};

TEST_F(JobStreamTest, TheHistoryComesFirstAndThenEachEvent) {
  const std::vector<FakeBrowser::Event> events = Stream(0);
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].name, "snapshot");
  EXPECT_EQ(events[0].id, "3");
  EXPECT_EQ(events[0].data["last_sequence"], "3");
  const json& loss = events[0].data["curves"][0];
  EXPECT_EQ(loss["name"], "training/loss");
  EXPECT_EQ(loss["steps"], json({"1", "2"}));
  EXPECT_EQ(loss["times"], json({100.5, 100.5}));
  EXPECT_EQ(loss["values"], json({0.5, "NaN"}));
  ASSERT_EQ(events[0].data["events"].size(), 1);
  EXPECT_EQ(events[0].data["events"][0]["state_change"]["to"], "JOB_STATE_RUNNING");
  EXPECT_EQ(events[1].name, "event");
  EXPECT_EQ(events[1].id, "4");
  EXPECT_EQ(events[1].data["progress"]["step"], "3");
  EXPECT_EQ(events[2].id, "5");
  EXPECT_EQ(events[3].name, "end");
}

TEST_F(JobStreamTest, GoesOnAfterASequenceNumber) {
  const std::vector<FakeBrowser::Event> events = Stream(3);
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[0].id, "4");
  EXPECT_EQ(events[1].id, "5");
  EXPECT_EQ(events[2].name, "end");
}

TEST_F(JobStreamTest, AnEndedJobIsOneSnapshot) {
  history_ = 5;
  const std::vector<FakeBrowser::Event> events = Stream(0);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].data["last_sequence"], "5");
  EXPECT_EQ(events[0].data["curves"][0]["steps"], json({"1", "2", "3"}));
  EXPECT_EQ(events[0].data["events"].size(), 2);
  EXPECT_EQ(events[1].name, "end");
}

TEST_F(JobStreamTest, OnceEndsAfterTheNewestEvent) {
  std::vector<FakeBrowser::Event> events = Stream(0, "jobs/x", /*once=*/true);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].name, "snapshot");
  EXPECT_EQ(events[1].name, "end");
  newest_ = 4;
  events = Stream(3, "jobs/x", /*once=*/true);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].id, "4");
  EXPECT_EQ(events[1].name, "end");
  events = Stream(4, "jobs/x", /*once=*/true);
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].name, "end");
}

TEST_F(JobStreamTest, ALogThatBecameShorterIsReadAnew) {
  newest_ = 2;
  const std::vector<FakeBrowser::Event> events = Stream(3);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].name, "reset");
  EXPECT_EQ(events[1].name, "end");
}

TEST_F(JobStreamTest, SaysWhatIsWrong) {
  const std::vector<FakeBrowser::Event> events = Stream(0, "jobs/nobody");
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].name, "problem");
  EXPECT_EQ(events[0].data["code"], "NOT_FOUND");
  EXPECT_EQ(events[0].data["message"], "there is no such job");
}

TEST_F(JobStreamTest, EndsIfTheBrowserIsGone) {
  log_.pop_back();
  // A log without an end.
  daemon_.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext* context,
                         grpc::ServerWriter<v1::JobEvent>* writer) {
    for (int64_t i = 1; !context->IsCancelled(); ++i) writer->Write(Report(i, i, 1));
    return grpc::Status::OK;
  };
  FakeBrowser browser(/*most_writes=*/2);
  StreamJob(
      *client_, feeds_, "jobs/x", 0, /*once=*/false, [] { return true; }, browser);
  FakeBrowser patient;
  int asked = 0;
  StreamJob(
      *client_, feeds_, "jobs/x", 0, /*once=*/false, [&asked] { return ++asked < 3; }, patient);
  EXPECT_GE(asked, 3) << "the dashboard stops";
}

TEST_F(JobStreamTest, PagesShareOneCall) {
  absl::Notification is_over;
  std::atomic<int> calls = 0;
  daemon_.watch_job = [&](const v1::WatchJobRequest& request, grpc::ServerContext*,
                          grpc::ServerWriter<v1::JobEvent>* writer) {
    ++calls;
    for (const v1::JobEvent& event : log_) {
      if (event.sequence() == 5) is_over.WaitForNotification();
      if (event.sequence() > request.after_sequence()) writer->Write(event);
    }
    return grpc::Status::OK;
  };
  std::array<FakeBrowser, 4> browsers;
  std::vector<std::thread> pages;
  std::atomic<int> looks = 0;
  for (FakeBrowser& browser : browsers) {
    pages.emplace_back([this, &browser, &looks] {
      bool has_looked = false;
      StreamJob(
          *client_, feeds_, "jobs/x", 3, /*once=*/false,
          [&] {
            if (!std::exchange(has_looked, true)) ++looks;
            return true;
          },
          browser);
    });
  }
  while (looks < 4) absl::SleepFor(absl::Milliseconds(1));
  is_over.Notify();
  for (std::thread& page : pages) page.join();
  EXPECT_EQ(calls, 1);
  for (const FakeBrowser& browser : browsers) {
    const std::vector<FakeBrowser::Event> events = browser.Events();
    ASSERT_EQ(events.size(), 3);
    EXPECT_EQ(events[0].id, "4");
    EXPECT_EQ(events[1].id, "5");
    EXPECT_EQ(events[2].name, "end");
  }
}

TEST_F(JobStreamTest, APageWakesOnceForTheEventsOfAMoment) {
  constexpr int kEvents = 200;
  log_.clear();
  for (int i = 1; i <= kEvents; ++i) log_.push_back(Report(i, i, 0.5));
  log_.push_back(Change(kEvents + 1, v1::JOB_STATE_SUCCEEDED));
  newest_ = kEvents + 1;
  daemon_.watch_job = [this](const v1::WatchJobRequest& request, grpc::ServerContext*,
                             grpc::ServerWriter<v1::JobEvent>* writer) {
    for (const v1::JobEvent& event : log_) {
      if (event.sequence() <= request.after_sequence()) continue;
      writer->Write(event);
      absl::SleepFor(absl::Milliseconds(2));
    }
    return grpc::Status::OK;
  };
  FakeBrowser browser;
  int wakes = 0;
  const absl::Time begin = absl::Now();
  StreamJob(
      *client_, feeds_, "jobs/x", 1, /*once=*/false,
      [&wakes] {
        ++wakes;
        return true;
      },
      browser);
  // A wake each 30 ms, a look each second, the first and the last wake, and a rest.
  const absl::Duration took = absl::Now() - begin;
  EXPECT_LE(wakes, absl::ToInt64Milliseconds(took) / 30 + absl::ToInt64Seconds(took) + 4);
  const std::vector<FakeBrowser::Event> events = browser.Events();
  ASSERT_EQ(events.size(), kEvents + 1);
  for (int i = 0; i < kEvents; ++i) ASSERT_EQ(events[i].id, absl::StrCat(i + 2));
  EXPECT_EQ(events.back().name, "end");
}

TEST_F(JobStreamTest, ALongLogReachesEachPageOnceAndInOrder) {
  constexpr int64_t kEvents = 3000;
  log_.clear();
  for (int64_t i = 1; i <= kEvents; ++i) log_.push_back(Report(i, i, 0.5));
  log_.push_back(Change(kEvents + 1, v1::JOB_STATE_SUCCEEDED));
  newest_ = kEvents + 1;
  FakeBrowser early, late;
  // A slow page falls behind the feed, which the fast page paces.
  FakeBrowser slow(/*most_writes=*/1000, /*pause=*/absl::Milliseconds(100));
  std::vector<std::thread> pages;
  const auto open = [&](int64_t after, FakeBrowser& browser) {
    pages.emplace_back([this, after, &browser] {
      StreamJob(
          *client_, feeds_, "jobs/x", after, /*once=*/false, [] { return true; }, browser);
    });
  };
  open(1, early);
  open(1, slow);
  open(2000, late);
  for (std::thread& page : pages) page.join();
  const auto expect_all = [&](int64_t after, const FakeBrowser& browser) {
    const std::vector<FakeBrowser::Event> events = browser.Events();
    ASSERT_EQ(events.size(), kEvents + 2 - after);
    for (size_t i = 0; i + 1 < events.size(); ++i)
      ASSERT_EQ(events[i].id, absl::StrCat(after + 1 + static_cast<int64_t>(i)));
    EXPECT_EQ(events.back().name, "end");
  };
  expect_all(1, early);
  expect_all(1, slow);
  expect_all(2000, late);
}

}  // namespace
}  // namespace tandem::dashboard
