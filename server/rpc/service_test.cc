#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/service_fixture.h"
#include "server/rpc/status_details.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ServiceTest = ServiceFixture;

TEST_F(ServiceTest, WantsTheTokenOnEveryService) {
  v1::Job job;
  EXPECT_EQ(stub_->GetJob(Context("").get(), {}, &job).error_code(), StatusCode::UNAUTHENTICATED);
  const grpc::Status wrong = stub_->CreateJob(Context("wrong").get(), Request("a"), &job);
  EXPECT_EQ(wrong.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(wrong.error_message(), HasSubstr("the file 'token' in the daemon's state folder"));
  v1::Daemon daemon;
  EXPECT_EQ(daemon_stub_->GetDaemon(Context("").get(), {}, &daemon).error_code(),
            StatusCode::UNAUTHENTICATED);
  auto context = Context("wrong");
  EXPECT_EQ(stub_->WatchJobs(context.get(), {})->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(Context().get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
  ASSERT_TRUE(daemon_stub_->GetDaemon(Context().get(), {}, &daemon).ok());
  EXPECT_EQ(daemon.version(), "1.2.3");
}

TEST_F(ServiceTest, ParsesAJobFile) {
  v1::ParseJobRequest request;
  request.set_text("name: a\nmodel:\n  layers:\n  - dense: {units: 3, activation: relu}\n");
  request.add_overrides("training.epochs=7");
  v1::ParseJobResponse parsed;
  grpc::Status status = stub_->ParseJob(Context().get(), request, &parsed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(parsed.problems_size(), 0) << parsed.ShortDebugString();
  EXPECT_EQ(parsed.spec().model().layers(0).dense().activation(), v1::ACTIVATION_RELU);
  EXPECT_EQ(parsed.spec().training().epochs(), 7);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(Context().get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
}

TEST_F(ServiceTest, PlacesTheProblemsOfAJobFile) {
  v1::ParseJobRequest request;
  request.set_text("name: a\nmodel:\n  layers:\n  - max_pol2d: {}\n  - dense: {units: many}\n");
  v1::ParseJobResponse parsed;
  ASSERT_TRUE(stub_->ParseJob(Context().get(), request, &parsed).ok());
  EXPECT_FALSE(parsed.has_spec());
  ASSERT_EQ(parsed.problems_size(), 2);
  EXPECT_EQ(parsed.problems(0).field(), "model.layers[0].max_pol2d");
  EXPECT_THAT(parsed.problems(0).description(), HasSubstr("did you mean `max_pool2d`?"));
  EXPECT_EQ(parsed.problems(0).line(), 4);
  EXPECT_EQ(parsed.problems(0).column(), 5);
  EXPECT_EQ(parsed.problems(1).line(), 5);

  request.set_text("name: a");
  request.add_overrides("training.epochs=7");
  request.add_overrides("training.epoch=7");
  ASSERT_TRUE(stub_->ParseJob(Context().get(), request, &parsed).ok());
  ASSERT_EQ(parsed.problems_size(), 1);
  EXPECT_EQ(parsed.problems(0).field(), "overrides[1]");
  EXPECT_THAT(parsed.problems(0).description(), HasSubstr("did you mean `epochs`?"));
}

TEST_F(ServiceTest, BoundsJobFiles) {
  v1::ParseJobRequest request;
  v1::ParseJobResponse parsed;
  request.set_text("name: \"" + std::string(1 << 20, 'x') + "\"");
  EXPECT_EQ(stub_->ParseJob(Context().get(), request, &parsed).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  request.set_text("name: a");
  for (int i = 0; i < 101; ++i) request.add_overrides("training.epochs=7");
  EXPECT_EQ(stub_->ParseJob(Context().get(), request, &parsed).error_code(), StatusCode::INVALID_ARGUMENT);

  // 200 times 10 kB.
  std::string names = "[&name " + std::string(10'000, 'x');
  for (int i = 1; i < 200; ++i) names += ", *name";
  request.set_text("dataset: {class_names: " + names + "]}");
  request.clear_overrides();
  ASSERT_TRUE(stub_->ParseJob(Context().get(), request, &parsed).ok());
  EXPECT_FALSE(parsed.has_spec());
  ASSERT_EQ(parsed.problems_size(), 1);
  EXPECT_THAT(parsed.problems(0).description(), HasSubstr("at most 1048576 are allowed"));
}

TEST_F(ServiceTest, CreatesAndGetsAndRepeatsARequest) {
  v1::Job job;
  const grpc::Status status = stub_->CreateJob(Context().get(), Request("lenet", "r1"), &job);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(job.name(), HasSubstr("jobs/lenet"));
  EXPECT_EQ(job.planned_memory_bytes(), 1000);
  EXPECT_EQ(job.spec().replicas().count(), 1);

  v1::Job again;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), Request("lenet", "r1"), &again).ok());
  EXPECT_EQ(again.name(), job.name());
  EXPECT_EQ(stub_->CreateJob(Context().get(), Request("other", "r1"), &again).error_code(),
            StatusCode::ALREADY_EXISTS);

  ASSERT_TRUE(stub_->GetJob(Context().get(), Named<v1::GetJobRequest>(job.name()), &again).ok());
  EXPECT_EQ(again.spec().name(), "lenet");
}

TEST_F(ServiceTest, CallsAreHeardOf) {
  Create("lenet");
  v1::Job job;
  auto context = Context();
  EXPECT_EQ(stub_->GetJob(context.get(), Named<v1::GetJobRequest>("jobs/none"), &job).error_code(),
            StatusCode::NOT_FOUND);
  EXPECT_THAT(Calls(),
              ElementsAre("CreateJob started", "CreateJob OK", "GetJob started", "GetJob NOT_FOUND"));
  // The daemon's clock.
  const auto& metadata = context->GetServerInitialMetadata();
  const auto time = metadata.find("tandem-time-ms");
  ASSERT_NE(time, metadata.end());
  int64_t milliseconds = 0;
  ASSERT_TRUE(absl::SimpleAtoi(absl::string_view(time->second.data(), time->second.size()), &milliseconds));
  EXPECT_LT(absl::AbsDuration(absl::Now() - absl::FromUnixMillis(milliseconds)), absl::Minutes(5));
}

TEST_F(ServiceTest, ARepeatedRequestIsNotAdmittedAgain) {
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), Request("lenet", "r1"), &job).ok());
  admission_.data_is_gone = true;
  v1::Job again;
  EXPECT_EQ(stub_->CreateJob(Context().get(), Request("lenet"), &again).error_code(),
            StatusCode::INVALID_ARGUMENT);
  const grpc::Status repeated = stub_->CreateJob(Context().get(), Request("lenet", "r1"), &again);
  ASSERT_TRUE(repeated.ok()) << repeated.error_message();
  EXPECT_EQ(again.name(), job.name());
  EXPECT_EQ(stub_->CreateJob(Context().get(), Request("other", "r1"), &again).error_code(),
            StatusCode::ALREADY_EXISTS);
  // A repeated request is no new work.
  lifecycle_.RefuseJobs();
  EXPECT_TRUE(stub_->CreateJob(Context().get(), Request("lenet", "r1"), &again).ok());
  EXPECT_EQ(stub_->CreateJob(Context().get(), Request("lenet", "r2"), &again).error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(ServiceTest, ValidatesOnly) {
  v1::CreateJobRequest request = Request("lenet");
  request.set_validate_only(true);
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  EXPECT_EQ(job.name(), "");
  EXPECT_EQ(job.spec().replicas().count(), 1);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(Context().get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
}

TEST_F(ServiceTest, NamesEveryFieldAtFault) {
  v1::Job job;
  const grpc::Status status = stub_->CreateJob(Context().get(), Request(""), &job);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("spec.model.layers[0].dense.units: is -1"));
  const auto bad_request = DetailOf<google::rpc::BadRequest>(status);
  ASSERT_EQ(bad_request.field_violations_size(), 2);
  EXPECT_EQ(bad_request.field_violations(0).field(), "spec.name");
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.domain(), "tandem");
  EXPECT_EQ(info.reason(), "INVALID_SPEC");
  EXPECT_EQ(DetailsOf(status).code(), static_cast<int>(StatusCode::INVALID_ARGUMENT));

  v1::GetJobRequest get;
  get.set_name("nonsense");
  EXPECT_EQ(stub_->GetJob(Context().get(), get, &job).error_code(), StatusCode::INVALID_ARGUMENT);
  get.set_name("jobs/none-at-all");
  const grpc::Status missing = stub_->GetJob(Context().get(), get, &job);
  EXPECT_EQ(missing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(missing).reason(), "JOB_NOT_FOUND");
}

TEST_F(ServiceTest, RefusesWhatIsTooLarge) {
  v1::Job job;
  for (const size_t bytes : {size_t{3} << 19, size_t{5} << 20, size_t{17} << 20}) {
    v1::CreateJobRequest request = Request("large");
    request.mutable_spec()->mutable_model()->add_layers()->set_name(std::string(bytes, 'x'));
    const grpc::Status status = stub_->CreateJob(Context().get(), request, &job);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    if (bytes < RpcServer::kMaxReceiveBytes) {
      EXPECT_THAT(status.error_message(), HasSubstr(bytes < 2 << 20 ? "spec: has 1572" : "it has 5242"));
    }
  }
  v1::CreateJobRequest request = Request("a", std::string(129, 'r'));
  EXPECT_EQ(stub_->CreateJob(Context().get(), request, &job).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(stub_->CreateJob(Context().get(), Request("a", "line\nend"), &job).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(stub_->CreateJob(Context().get(), {}, &job).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, WatchesFromTheBeginningAndFromASequence) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  Report(job, {Started(1), ProgressAt(2, 10)});
  v1::WatchJobRequest request;
  request.set_name(job);
  auto context = Context();
  auto reader = stub_->WatchJob(context.get(), request);
  v1::JobEvent event;
  std::vector<int64_t> sequences;
  while (sequences.size() < 4 && reader->Read(&event)) sequences.push_back(event.sequence());
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(event.progress().step(), 10);
  // Events that arrive while it watches.
  Finish(job, 3, v1::JOB_STATE_SUCCEEDED);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.sequence(), 5);
  EXPECT_TRUE(event.terminal());
  EXPECT_EQ(event.state_change().to(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());

  for (const int64_t after : {3, 5, 6}) {
    request.set_after_sequence(after);
    auto resumed_context = Context();
    auto resumed = stub_->WatchJob(resumed_context.get(), request);
    sequences.clear();
    while (resumed->Read(&event)) sequences.push_back(event.sequence());
    const grpc::Status status = resumed->Finish();
    EXPECT_EQ(sequences.size(), std::max<int64_t>(0, 5 - after));
    EXPECT_EQ(status.error_code(), after == 6 ? StatusCode::OUT_OF_RANGE : StatusCode::OK) << after;
  }
  request.set_after_sequence(-1);
  auto negative_context = Context();
  EXPECT_EQ(stub_->WatchJob(negative_context.get(), request)->Finish().error_code(),
            StatusCode::INVALID_ARGUMENT);
  request.set_name("jobs/none-at-all");
  request.set_after_sequence(0);
  auto missing_context = Context();
  EXPECT_EQ(stub_->WatchJob(missing_context.get(), request)->Finish().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, WatchesTheChangesOfAllJobs) {
  const std::string a = Create("a");
  workers_.AwaitStarted(Id(a));
  auto context = Context();
  auto reader = stub_->WatchJobs(context.get(), {});
  v1::WatchJobsResponse change;
  ASSERT_TRUE(reader->Read(&change));
  EXPECT_EQ(change.job(), a);
  EXPECT_EQ(change.state_change().to(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(reader->Read(&change));
  EXPECT_EQ(change.state_change().to(), v1::JOB_STATE_STARTING);
  const int64_t cursor = change.cursor();
  const std::string b = Create("b");
  ASSERT_TRUE(reader->Read(&change));
  EXPECT_EQ(change.job(), b);
  EXPECT_GT(change.cursor(), cursor);
  ASSERT_TRUE(reader->Read(&change));
  EXPECT_EQ(change.state_change().to(), v1::JOB_STATE_STARTING);
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);

  // From now on, and after a break before the first event.
  v1::WatchJobsRequest from_now;
  from_now.set_after_cursor(-1);
  auto now_context = Context();
  auto from_now_on = stub_->WatchJobs(now_context.get(), from_now);
  from_now_on->WaitForInitialMetadata();
  const auto& metadata = now_context->GetServerInitialMetadata();
  ASSERT_EQ(metadata.count("tandem-cursor"), 1);
  const grpc::string_ref begins_after = metadata.find("tandem-cursor")->second;
  EXPECT_EQ(std::string(begins_after.data(), begins_after.size()), std::to_string(change.cursor()));
  now_context->TryCancel();

  v1::WatchJobsRequest ahead;
  ahead.set_after_cursor(cursor + 1000);
  auto ahead_context = Context();
  EXPECT_EQ(stub_->WatchJobs(ahead_context.get(), ahead)->Finish().error_code(), StatusCode::OUT_OF_RANGE);
}

TEST_F(ServiceTest, ListsInPages) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Create(name);
  v1::ListJobsRequest request;
  request.set_page_size(2);
  request.set_order_by("name");
  std::vector<std::string> names;
  for (int page = 0; page < 3; ++page) {
    v1::ListJobsResponse response;
    const grpc::Status status = stub_->ListJobs(Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::Job& job : response.jobs()) names.push_back(job.spec().name());
    EXPECT_EQ(response.next_page_token().empty(), page == 2);
    request.set_page_token(response.next_page_token());
  }
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d", "e"));

  v1::ListJobsResponse response;
  v1::ListJobsRequest filter;
  filter.add_states(v1::JOB_STATE_SUCCEEDED);
  ASSERT_TRUE(stub_->ListJobs(Context().get(), filter, &response).ok());
  EXPECT_EQ(response.jobs_size(), 0);
  v1::ListJobsRequest wrong;
  wrong.set_page_size(-1);
  wrong.set_order_by("colour");
  wrong.add_states(static_cast<v1::JobState>(77));
  const grpc::Status status = stub_->ListJobs(Context().get(), wrong, &response);
  EXPECT_EQ(DetailOf<google::rpc::BadRequest>(status).field_violations_size(), 3);
  v1::ListJobsRequest token;
  token.set_page_token("not one of ours");
  EXPECT_EQ(stub_->ListJobs(Context().get(), token, &response).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, CancelsAndDeletes) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  v1::DeleteJobRequest remove;
  remove.set_name(job);
  google::protobuf::Empty empty;
  EXPECT_EQ(stub_->DeleteJob(Context().get(), remove, &empty).error_code(), StatusCode::FAILED_PRECONDITION);

  v1::CancelJobRequest cancel;
  cancel.set_name(job);
  v1::Job answer;
  ASSERT_TRUE(stub_->CancelJob(Context().get(), cancel, &answer).ok());
  EXPECT_EQ(answer.state(), v1::JOB_STATE_CANCELLING);
  ASSERT_TRUE(stub_->CancelJob(Context().get(), cancel, &answer).ok());
  workers_.AwaitCancelling(Id(job));
  Finish(job, 1, v1::JOB_STATE_CANCELLED);

  ASSERT_TRUE(stub_->DeleteJob(Context().get(), remove, &empty).ok());
  EXPECT_EQ(stub_->DeleteJob(Context().get(), remove, &empty).error_code(), StatusCode::NOT_FOUND);
  cancel.set_name("jobs/none-at-all");
  EXPECT_EQ(stub_->CancelJob(Context().get(), cancel, &answer).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, ShutdownCancelsTheJobsFirst) {
  const std::string running = Create("a");
  const std::string also_running = Create("b");
  const std::string queued = Create("c");
  workers_.AwaitStarted(Id(running));
  workers_.AwaitStarted(Id(also_running));
  Report(running, {Started(1)});
  std::thread worker([&] {
    workers_.AwaitCancelling(Id(running));
    Finish(running, 2, v1::JOB_STATE_CANCELLED);
    workers_.AwaitCancelling(Id(also_running));
    Finish(also_running, 1, v1::JOB_STATE_CANCELLED);
  });
  v1::ShutdownRequest request;
  request.set_cancel_jobs(true);
  v1::ShutdownResponse response;
  const grpc::Status status = daemon_stub_->Shutdown(Context().get(), request, &response);
  worker.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.cancelled_jobs(), 3);
  lifecycle_.WaitForStop();
  v1::Job job;
  const grpc::Status refused = stub_->CreateJob(Context().get(), Request("d"), &job);
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(refused).reason(), "SHUTTING_DOWN");
  EXPECT_TRUE(jobs_->NonTerminalJobs()->empty());
}

// An ignored field would change the training's meaning and be stored with the job.
TEST_F(ServiceTest, RefusesFieldsThatItDoesNotKnow) {
  const auto add = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(99, 1);
  };
  const auto expect_refused = [](const grpc::Status& status, const std::string& field) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << field;
    EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(status).reason(), "UNKNOWN_FIELD");
    const auto request = DetailOf<google::rpc::BadRequest>(status);
    ASSERT_EQ(request.field_violations_size(), 1);
    EXPECT_EQ(request.field_violations(0).field(), field);
    EXPECT_THAT(request.field_violations(0).description(),
                HasSubstr("this version of the daemon does not know"));
  };
  v1::Job job;
  v1::CreateJobRequest create = Request("a");
  add(create.mutable_spec()->mutable_model()->add_layers()->mutable_dense());
  expect_refused(stub_->CreateJob(Context().get(), create, &job), "spec.model.layers[0].dense.99");
  create.set_validate_only(true);
  expect_refused(stub_->CreateJob(Context().get(), create, &job), "spec.model.layers[0].dense.99");
  v1::ForkJobRequest fork;
  fork.set_name("jobs/none-aaaaaa");
  add(fork.mutable_spec()->mutable_training());
  expect_refused(stub_->ForkJob(Context().get(), fork, &job), "spec.training.99");
  v1::CreateSweepRequest sweep;
  add(sweep.mutable_sweep()->mutable_base()->mutable_training());
  v1::Sweep swept;
  expect_refused(sweep_stub_->CreateSweep(Context().get(), sweep, &swept), "sweep.base.training.99");
  v1::CreateDatasetRequest dataset;
  add(dataset.mutable_dataset()->mutable_spec());
  v1::Dataset made;
  expect_refused(dataset_stub_->CreateDataset(Context().get(), dataset, &made), "dataset.spec.99");
  add(&dataset);
  expect_refused(dataset_stub_->CreateDataset(Context().get(), dataset, &made), "99");
}

TEST_F(ServiceTest, AShutdownThatCannotReadTheJobsLeavesTheDaemonServing) {
  SQLite::Database database(folder_->DatabasePath(), SQLite::OPEN_READWRITE, /*aBusyTimeoutMs=*/5000);
  database.exec("ALTER TABLE jobs RENAME TO hidden_jobs");
  v1::ShutdownRequest request;
  request.set_cancel_jobs(true);
  v1::ShutdownResponse response;
  const grpc::Status status = daemon_stub_->Shutdown(Context().get(), request, &response);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("the jobs to cancel cannot be read"));
  database.exec("ALTER TABLE hidden_jobs RENAME TO jobs");
  // The daemon accepts jobs again, and another shutdown works.
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  std::thread worker([&] {
    workers_.AwaitCancelling(Id(job));
    Finish(job, 1, v1::JOB_STATE_CANCELLED);
  });
  const grpc::Status again = daemon_stub_->Shutdown(Context().get(), request, &response);
  worker.join();
  ASSERT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ(response.cancelled_jobs(), 1);
}

TEST_F(ServiceTest, StoppingEndsStreamsWithUnavailable) {
  const std::string job = Create("a");
  auto watch_context = Context();
  auto watcher = stub_->WatchJob(watch_context.get(), Named<v1::WatchJobRequest>(job));
  v1::JobEvent event;
  ASSERT_TRUE(watcher->Read(&event));
  auto changes_context = Context();
  auto changes = stub_->WatchJobs(changes_context.get(), {});
  v1::WatchJobsResponse change;
  ASSERT_TRUE(changes->Read(&change));
  v1::ReadLogRequest log;
  log.set_name(job);
  log.set_follow(true);
  auto log_context = Context();
  auto log_reader = stub_->ReadLog(log_context.get(), log);
  log_reader->WaitForInitialMetadata();

  v1::ShutdownResponse response;
  ASSERT_TRUE(daemon_stub_->Shutdown(Context().get(), {}, &response).ok());
  lifecycle_.WaitForStop();
  server_->Stop(absl::Seconds(2));
  while (watcher->Read(&event)) {
  }
  EXPECT_EQ(watcher->Finish().error_code(), StatusCode::UNAVAILABLE);
  while (changes->Read(&change)) {
  }
  EXPECT_EQ(changes->Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(log_reader->Finish().error_code(), StatusCode::UNAVAILABLE);
  // The job runs on.
  EXPECT_EQ(jobs_->NonTerminalJobs()->size(), 1);
}

}  // namespace
}  // namespace tandem
