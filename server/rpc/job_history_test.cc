// GetJobHistory over a real store: curves, events and pages. The reduction itself: job_curves_test.cc.

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class JobHistoryTest : public ServiceFixture {
 protected:
  std::string Start() {
    const std::string job = Create("a");
    workers_.AwaitStarted(Id(job));
    Report(job, {Started(1)});
    return job;
  }

  static internal::v1::WorkerEvent ReportAt(int64_t sequence, int64_t step, double loss) {
    internal::v1::WorkerEvent event = ProgressAt(sequence, step);
    event.mutable_report()->mutable_progress()->mutable_training()->set_loss(loss);
    return event;
  }
  static internal::v1::WorkerEvent Says(int64_t sequence, const std::string& message) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_notice()->set_message(message);
    return event;
  }

  grpc::Status Get(const v1::GetJobHistoryRequest& request, v1::GetJobHistoryResponse* response) {
    response->Clear();
    return stub_->GetJobHistory(Context().get(), request, response);
  }
  v1::GetJobHistoryResponse Get(const v1::GetJobHistoryRequest& request) {
    v1::GetJobHistoryResponse response;
    const grpc::Status status = Get(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static const v1::Curve& Loss(const v1::GetJobHistoryResponse& response) {
    static const v1::Curve kNone;
    for (const v1::Curve& curve : response.curves()) {
      if (curve.name() == "training/loss") return curve;
    }
    return kNone;
  }
};

TEST_F(JobHistoryTest, HasCurvesAndAllOtherEvents) {
  const std::string job = Start();
  Report(job,
         {ReportAt(2, 10, 0.5), Says(3, "of step 10"), ReportAt(4, 20, std::nan("")), Says(5, "of step 20")});
  const v1::GetJobHistoryResponse history = Get(Named<v1::GetJobHistoryRequest>(job));
  EXPECT_THAT(Loss(history).steps(), ElementsAre(10, 20));
  EXPECT_EQ(Loss(history).values(0), 0.5);
  EXPECT_TRUE(std::isnan(Loss(history).values(1)));
  EXPECT_EQ(Loss(history).total_points(), 2);
  EXPECT_FALSE(Loss(history).reduced());
  EXPECT_EQ(history.newest_report().step(), 20);
  // QUEUED, STARTING, RUNNING and the notices.
  ASSERT_THAT(history.events(), SizeIs(5));
  EXPECT_THAT(history.event_steps(), ElementsAre(0, 0, 0, 10, 20));
  EXPECT_EQ(history.events(3).notice().message(), "of step 10");
  EXPECT_EQ(history.events(4).sequence(), history.last_sequence());
  EXPECT_EQ(history.next_page_token(), "");
  // A watcher goes on from there.
  Report(job, {ReportAt(6, 30, 0.25)});
  v1::WatchJobRequest watch;
  watch.set_name(job);
  watch.set_after_sequence(history.last_sequence());
  auto context = Context();
  auto reader = stub_->WatchJob(context.get(), watch);
  v1::JobEvent next;
  ASSERT_TRUE(reader->Read(&next));
  EXPECT_EQ(next.progress().step(), 30);
  context->TryCancel();
}

TEST_F(JobHistoryTest, ReducesLongCurvesAndReadsThemOverSeveralTurns) {
  const std::string job = Start();
  std::vector<internal::v1::WorkerEvent> reports;
  for (int64_t step = 1; step <= 10'000; ++step)
    reports.push_back(ReportAt(step + 1, step, step == 777 ? -1 : 1));
  Report(job, reports);
  v1::GetJobHistoryRequest request;
  request.set_name(job);
  request.set_max_points(100);
  const v1::GetJobHistoryResponse history = Get(request);
  const v1::Curve& loss = Loss(history);
  EXPECT_TRUE(loss.reduced());
  EXPECT_EQ(loss.total_points(), 10'000);
  EXPECT_LE(loss.steps_size(), 100);
  EXPECT_THAT(loss.steps(), ::testing::Contains(777));
  EXPECT_EQ(loss.steps(loss.steps_size() - 1), 10'000);
  EXPECT_EQ(loss.times_size(), loss.steps_size());
  EXPECT_EQ(loss.values_size(), loss.steps_size());
  EXPECT_THAT(history.events(), SizeIs(3));
  EXPECT_EQ(history.newest_report().step(), 10'000);

  request.set_first_step(770);
  request.set_last_step(780);
  request.set_view(v1::JOB_HISTORY_VIEW_CURVES);
  const v1::GetJobHistoryResponse closer = Get(request);
  EXPECT_THAT(Loss(closer).steps(), ElementsAre(770, 771, 772, 773, 774, 775, 776, 777, 778, 779, 780));
  EXPECT_FALSE(Loss(closer).reduced());
  EXPECT_THAT(closer.events(), SizeIs(0));
  EXPECT_EQ(closer.newest_report().step(), 10'000) << "whatever the steps";
}

// The second attempt starts at a checkpoint: the log is read twice.
TEST_F(JobHistoryTest, LeavesLostStepsOut) {
  const std::string job = Start();
  std::vector<internal::v1::WorkerEvent> reports;
  int64_t sequence = 1;
  for (int64_t step = 1; step <= 6000; ++step)
    reports.push_back(ReportAt(++sequence, step, step < 3000 ? 1 : 9));
  for (int64_t step = 3000; step <= 5000; ++step) reports.push_back(ReportAt(++sequence, step, 2));
  Report(job, reports);
  v1::GetJobHistoryRequest request;
  request.set_name(job);
  request.set_max_points(50);
  const v1::GetJobHistoryResponse history = Get(request);
  EXPECT_TRUE(Loss(history).reduced());
  EXPECT_EQ(Loss(history).total_points(), 5000);
  for (int i = 0; i < Loss(history).steps_size(); ++i)
    EXPECT_EQ(Loss(history).values(i), Loss(history).steps(i) < 3000 ? 1 : 2);
  EXPECT_THAT(history.events(), SizeIs(3)) << "once, not in each reading";
}

TEST_F(JobHistoryTest, GivesManyEventsInPages) {
  const std::string job = Start();
  Report(job, {ReportAt(2, 5, 1)});
  for (int64_t i = 0; i < 20; ++i) {
    internal::v1::WorkerEvent epoch = MakeWorkerEvent(3 + i);
    epoch.mutable_report()->mutable_epoch()->set_epoch(i + 1);
    v1::Evaluation& validation = *epoch.mutable_report()->mutable_epoch()->mutable_validation();
    for (int k = 0; k < 100'000; ++k)
      validation.mutable_classification()->mutable_confusion_matrix()->add_counts(300);
    Report(job, {epoch});
  }
  v1::GetJobHistoryRequest request;
  request.set_name(job);
  std::vector<int64_t> sequences;
  int pages = 0;
  int64_t last = 0;
  do {
    const v1::GetJobHistoryResponse page = Get(request);
    ASSERT_EQ(page.event_steps_size(), page.events_size());
    for (int i = 0; i < page.events_size(); ++i) {
      sequences.push_back(page.events(i).sequence());
      EXPECT_EQ(page.event_steps(i), page.events(i).has_state_change() ? 0 : 5);
    }
    EXPECT_EQ(page.curves_size() > 0, pages == 0);
    EXPECT_LT(page.ByteSizeLong(), 2 << 20);
    if (pages == 0) last = page.last_sequence();
    EXPECT_EQ(page.last_sequence(), last);
    request.set_page_token(page.next_page_token());
    // What comes meanwhile is for WatchJob.
    if (++pages == 1) Report(job, {Says(23, "late")});
  } while (!request.page_token().empty() && pages < 20);
  EXPECT_GE(pages, 4);
  // Event 4 is the report.
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24));

  request.clear_page_token();
  request.set_view(v1::JOB_HISTORY_VIEW_EVENTS);
  const v1::GetJobHistoryResponse events = Get(request);
  EXPECT_EQ(events.curves_size(), 0);
  EXPECT_GT(events.events_size(), 3);
  EXPECT_NE(events.next_page_token(), "");
}

TEST_F(JobHistoryTest, RefusesWrongRequests) {
  const std::string job = Start();
  const auto expect = [&](const char* field, auto change) {
    v1::GetJobHistoryRequest request;
    request.set_name(job);
    change(&request);
    v1::GetJobHistoryResponse response;
    const grpc::Status status = Get(request, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << field;
    EXPECT_THAT(status.error_message() + status.error_details(), HasSubstr(field));
  };
  using Request = v1::GetJobHistoryRequest*;
  expect("name", [](Request request) { request->set_name("a"); });
  expect("first_step", [](Request request) { request->set_first_step(-1); });
  expect("last_step", [](Request request) { request->set_last_step(-1); });
  expect("last_step", [](Request request) {
    request->set_first_step(9);
    request->set_last_step(8);
  });
  for (const int points : {-1, 1, 4, 10'001})
    expect("max_points", [points](Request request) { request->set_max_points(points); });
  for (const char* token : {"x", "1-2", "1-2-3-4", "0-2-3", "2-2-3", "1-2--3", "99999999999999999999-2-3"})
    expect("page_token", [token](Request request) { request->set_page_token(token); });
  expect("view", [](Request request) { request->set_view(static_cast<v1::JobHistoryView>(9)); });

  v1::GetJobHistoryResponse response;
  const grpc::Status missing = Get(Named<v1::GetJobHistoryRequest>("jobs/none-at-all"), &response);
  EXPECT_EQ(missing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("jobs/none-at-all"));
}

// The names come from a worker, which may be anybody's.
TEST_F(JobHistoryTest, RefusesReportsWithTooManyMeasures) {
  const std::string job = Start();
  internal::v1::WorkerEvent report = ReportAt(2, 1, 1);
  for (int i = 0; i < 100; ++i)
    report.mutable_report()->mutable_progress()->mutable_training()->mutable_metrics()->insert(
        {absl::StrCat("made-up-", i), 1});
  Report(job, {report});
  v1::GetJobHistoryRequest request;
  request.set_name(job);
  v1::GetJobHistoryResponse response;
  EXPECT_EQ(Get(request, &response).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  request.set_view(v1::JOB_HISTORY_VIEW_EVENTS);
  EXPECT_TRUE(Get(request, &response).ok());
}

}  // namespace
}  // namespace tandem
