#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class SweepServiceTest : public ServiceFixture {
 protected:
  // Varies the epochs from 1 to `jobs`.
  static v1::CreateSweepRequest Grid(int jobs, int max_running = 0) {
    v1::CreateSweepRequest request;
    v1::Sweep& sweep = *request.mutable_sweep();
    sweep.mutable_base()->set_name("small");
    sweep.set_max_running(max_running);
    sweep.add_grid()->set_field("training.epochs");
    for (int i = 1; i <= jobs; ++i) sweep.mutable_grid(0)->add_values()->set_number_value(i);
    return request;
  }
  grpc::Status Create(const v1::CreateSweepRequest& request, v1::Sweep* sweep,
                      const std::string& token = kToken) {
    return sweep_stub_->CreateSweep(Context(token).get(), request, sweep);
  }
  v1::Sweep Get(const std::string& name) {
    v1::Sweep sweep;
    const grpc::Status status =
        sweep_stub_->GetSweep(Context().get(), Named<v1::GetSweepRequest>(name), &sweep);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return sweep;
  }
  grpc::Status Cancel(const std::string& name, v1::Sweep* sweep, const std::string& token = kToken) {
    return sweep_stub_->CancelSweep(Context(token).get(), Named<v1::CancelSweepRequest>(name), sweep);
  }
  grpc::Status Delete(const std::string& name) {
    google::protobuf::Empty empty;
    return sweep_stub_->DeleteSweep(Context().get(), Named<v1::DeleteSweepRequest>(name), &empty);
  }
};

TEST_F(SweepServiceTest, ParsesASweepFile) {
  v1::ParseSweepRequest request;
  request.set_text(
      "base: {name: a, model: {layers: [dense: {units: 3}]}}\n"
      "grid:\n"
      "- {field: \"model.layers[0].dense.activation\", values: [relu, tanh]}\n"
      "- {field: \"training.loss\", values: [mse]}\n"
      "max_running: 2\n");
  request.add_overrides("training.epochs=7");
  v1::ParseSweepResponse parsed;
  const grpc::Status status = sweep_stub_->ParseSweep(Context().get(), request, &parsed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(parsed.problems_size(), 0) << parsed.ShortDebugString();
  EXPECT_EQ(parsed.sweep().base().training().epochs(), 7);
  EXPECT_EQ(parsed.sweep().max_running(), 2);
  EXPECT_EQ(parsed.sweep().grid(0).values(0).string_value(), "ACTIVATION_RELU");
  EXPECT_TRUE(parsed.sweep().grid(1).values(0).struct_value().fields().contains("mse"));
  v1::ListSweepsResponse sweeps;
  ASSERT_TRUE(sweep_stub_->ListSweeps(Context().get(), {}, &sweeps).ok());
  EXPECT_EQ(sweeps.sweeps_size(), 0);
}

TEST_F(SweepServiceTest, PlacesTheProblemsOfASweepFile) {
  v1::ParseSweepRequest request;
  v1::ParseSweepResponse parsed;
  const auto problem = [&](const std::string& text) -> v1::JobTextProblem {
    request.set_text(text);
    EXPECT_TRUE(sweep_stub_->ParseSweep(Context().get(), request, &parsed).ok());
    EXPECT_FALSE(parsed.has_sweep());
    EXPECT_EQ(parsed.problems_size(), 1) << parsed.ShortDebugString();
    return parsed.problems_size() == 1 ? parsed.problems(0) : v1::JobTextProblem();
  };
  v1::JobTextProblem found = problem("base: {name: a}\ngird: []\n");
  EXPECT_EQ(found.field(), "gird");
  EXPECT_EQ(found.line(), 2);
  EXPECT_THAT(found.description(), HasSubstr("did you mean `grid`?"));
  found = problem("base: {name: a}\ngrid:\n- {field: training.epochs, values: [1, many]}\n");
  EXPECT_EQ(found.field(), "grid[0].values[1]");
  EXPECT_EQ(found.line(), 3);
  EXPECT_THAT(found.description(), HasSubstr("training.epochs: want a whole number"));
  EXPECT_THAT(problem("[1]").description(), HasSubstr("a sweep is a mapping"));
  request.add_overrides("training.epoch=7");
  EXPECT_EQ(problem("base: {name: a}").field(), "overrides[0]");
}

TEST_F(SweepServiceTest, BoundsSweepFiles) {
  v1::ParseSweepRequest request;
  v1::ParseSweepResponse parsed;
  const auto code = [&] { return sweep_stub_->ParseSweep(Context().get(), request, &parsed).error_code(); };
  request.set_text("base: {name: \"" + std::string(1 << 20, 'x') + "\"}");
  EXPECT_EQ(code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  std::string values;
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&values, i, ",");
  request.set_text("base: {name: a}\ngrid: [{field: training.epochs, values: [" + values + "]}]");
  EXPECT_EQ(code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request.set_text("base: {name: a}");
  for (int i = 0; i < 101; ++i) request.add_overrides("training.epochs=7");
  EXPECT_EQ(code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SweepServiceTest, ItsJobsAreJobsAndTheLimitHolds) {
  v1::Sweep sweep;
  const grpc::Status status = Create(Grid(3, /*max_running=*/1), &sweep);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(sweep.state(), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(sweep.display_name(), "small");
  EXPECT_EQ(sweep.user(), "admin");
  ASSERT_EQ(sweep.results_size(), 3);
  workers_.AwaitStarted(Id(sweep.results(0).job()));
  const absl::StatusOr<v1::Job> second = jobs_->Get(Id(sweep.results(1).job()));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->spec().training().epochs(), 2);
  EXPECT_EQ(second->waiting().reason(), v1::Waiting::REASON_SWEEP_LIMIT) << second->waiting().message();
  Report(sweep.results(0).job(), {Started(1)});
  Finish(sweep.results(0).job(), 2, v1::JOB_STATE_FAILED);
  workers_.AwaitStarted(Id(sweep.results(1).job()));
  EXPECT_EQ(Get(sweep.name()).results(0).state(), v1::JOB_STATE_FAILED);

  ASSERT_TRUE(Cancel(sweep.name(), &sweep).ok());
  EXPECT_EQ(sweep.state(), v1::SWEEP_STATE_CANCELLING);
  EXPECT_EQ(sweep.results(2).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Delete(sweep.name()).error_code(), StatusCode::FAILED_PRECONDITION);
  workers_.AwaitCancelling(Id(sweep.results(1).job()));
  Finish(sweep.results(1).job(), 1, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Get(sweep.name()).state(), v1::SWEEP_STATE_CANCELLED);
  EXPECT_TRUE(Delete(sweep.name()).ok());
  EXPECT_EQ(Cancel(sweep.name(), &sweep).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(SweepServiceTest, OneWrongJobAndNoneIsMade) {
  v1::CreateSweepRequest request = Grid(2);
  v1::SweepGridField* names = request.mutable_sweep()->add_grid();
  names->set_field("name");
  names->add_values()->set_string_value("small");
  names->add_values()->set_string_value("");
  v1::Sweep sweep;
  const grpc::Status status = Create(request, &sweep);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("with training.epochs=1, name=\"\""));
  EXPECT_THAT(status.error_message(), HasSubstr("sweep.base"));
  EXPECT_TRUE(jobs_->NonTerminalJobs()->empty());
  EXPECT_TRUE(jobs_->ListSweeps(0, 10)->sweeps.empty());
}

TEST_F(SweepServiceTest, ValidatingAcceptsNothing) {
  v1::CreateSweepRequest request = Grid(2);
  request.set_validate_only(true);
  v1::Sweep sweep;
  ASSERT_TRUE(Create(request, &sweep).ok());
  EXPECT_TRUE(sweep.name().empty());
  ASSERT_EQ(sweep.results_size(), 2);
  EXPECT_EQ(sweep.results(1).values(0).value().number_value(), 2);
  EXPECT_TRUE(jobs_->NonTerminalJobs()->empty());
}

TEST_F(SweepServiceTest, ARepetitionChangesNothing) {
  v1::CreateSweepRequest request = Grid(2);
  request.set_request_id("once");
  v1::Sweep first, second;
  ASSERT_TRUE(Create(request, &first).ok());
  ASSERT_TRUE(Create(request, &second).ok());
  EXPECT_EQ(first.name(), second.name());
  EXPECT_EQ(jobs_->NonTerminalJobs()->size(), 2);
  request.mutable_sweep()->set_max_running(1);
  EXPECT_EQ(Create(request, &second).error_code(), StatusCode::ALREADY_EXISTS);
}

TEST_F(SweepServiceTest, ItIsItsUsersAndCountsInTheQuota) {
  SetQuota({.max_queued_jobs = 2});
  const std::string ann = MakeToken("ann");
  v1::Sweep sweep;
  EXPECT_EQ(Create(Grid(3), &sweep, ann).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  const grpc::Status made = Create(Grid(2), &sweep, ann);
  ASSERT_TRUE(made.ok()) << made.error_message();
  EXPECT_EQ(sweep.user(), "ann");
  v1::Sweep changed;
  EXPECT_EQ(Cancel(sweep.name(), &changed, MakeToken("bob")).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Cancel(sweep.name(), &changed, ann).ok());
}

TEST_F(SweepServiceTest, ListsPageByPage) {
  v1::Sweep sweep;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Create(Grid(1), &sweep).ok());
  v1::ListSweepsRequest request;
  request.set_page_size(2);
  v1::ListSweepsResponse page;
  ASSERT_TRUE(sweep_stub_->ListSweeps(Context().get(), request, &page).ok());
  ASSERT_EQ(page.sweeps_size(), 2);
  EXPECT_EQ(page.sweeps(0).name(), sweep.name());
  EXPECT_FALSE(page.sweeps(0).has_base());
  EXPECT_EQ(page.sweeps(0).results_size(), 0);
  request.set_page_token(page.next_page_token());
  ASSERT_TRUE(sweep_stub_->ListSweeps(Context().get(), request, &page).ok());
  EXPECT_EQ(page.sweeps_size(), 1);
  EXPECT_TRUE(page.next_page_token().empty());
  request.set_page_token("nonsense");
  EXPECT_EQ(sweep_stub_->ListSweeps(Context().get(), request, &page).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

class LargeSweepTest : public SweepServiceTest {
 protected:
  LargeSweepTest() { room_.bytes = 1'000'000; }
};

// 200,000 bytes of specs, as many of values, and the data sets as looked up and as pinned.
TEST_F(LargeSweepTest, CountsWithAllThatItsJobsKeepUntilTheyAreMade) {
  v1::CreateSweepRequest request = Grid(1);
  request.mutable_sweep()->mutable_base()->set_name("slow");
  v1::SweepGridField& tables = *request.mutable_sweep()->mutable_grid(0);
  tables.set_field("dataset.csv.train");
  tables.clear_values();
  for (int i = 0; i < 10; ++i) {
    tables.add_values()->set_string_value(absl::StrCat("/", i, std::string(20'000, 'x')));
  }
  absl::Notification end;
  admission_.slow = &end;
  std::thread call([&] {
    v1::Sweep sweep;
    const grpc::Status status = Create(request, &sweep);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  while (admission_.slow_ones < 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(user_pool_->HoldMore("admin", 200'000).ok());
  EXPECT_TRUE(user_pool_->HoldMore("admin", 100'000).ok());
  end.Notify();
  call.join();
  EXPECT_TRUE(user_pool_->HoldMore("admin", 1'000'000).ok());
}

}  // namespace
}  // namespace tandem
