#include "client/dashboard/job_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"

namespace tandem::dashboard {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// A browser that takes events until it has enough.
class FakeBrowser : public WebAnswer {
 public:
  explicit FakeBrowser(size_t most_writes = 1000) : left_(most_writes) {}
  void Send(int, absl::string_view, absl::string_view, const Headers&) override { FAIL(); }
  bool Begin(absl::string_view, const Headers&) override { return true; }
  bool Write(absl::string_view bytes) override {
    if (left_ == 0) return false;
    --left_;
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

std::unique_ptr<client::Client> Connect(const std::string& address) {
  client::ConnectionOptions options;
  options.address = address;
  return *client::Client::Create(options);
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
        *client_, name, after, once, [] { return true; }, browser);
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
  std::unique_ptr<client::Client> client_ = Connect(daemon_.address());
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
      *client_, "jobs/x", 0, /*once=*/false, [] { return true; }, browser);
  FakeBrowser patient;
  int asked = 0;
  StreamJob(
      *client_, "jobs/x", 0, /*once=*/false, [&asked] { return ++asked < 3; }, patient);
  EXPECT_GE(asked, 3) << "the dashboard stops";
}

}  // namespace
}  // namespace tandem::dashboard
