// Tests reading jobs' logs, followed or not, and artifacts; devices; health.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/env.h"
#include "engine/base/sha256.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/training/training_state.h"
#include "server/rpc/log_source.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class ReadTest : public ServiceFixture {
 protected:
  struct Outcome {
    std::string content;
    int64_t offset = -1;  // The first piece's offset.
    grpc::Status status;
  };

  static v1::ReadLogRequest LogOf(const std::string& job, int64_t offset, bool follow) {
    v1::ReadLogRequest request;
    request.set_name(job);
    request.set_offset(offset);
    request.set_follow(follow);
    return request;
  }

  template <typename Response, typename Reader>
  static Outcome ReadAll(Reader* reader) {
    Outcome outcome;
    Response response;
    while (reader->Read(&response)) {
      if (outcome.offset < 0) outcome.offset = response.offset();
      outcome.content += response.data();
    }
    outcome.status = reader->Finish();
    return outcome;
  }

  Outcome ReadLog(const std::string& job, int64_t offset) {
    auto context = Context();
    auto reader = stub_->ReadLog(context.get(), LogOf(job, offset, false));
    return ReadAll<v1::ReadLogResponse>(reader.get());
  }

  Outcome ReadArtifact(const std::string& job, const std::string& artifact, int64_t offset) {
    v1::ReadArtifactRequest request;
    request.set_name(job);
    request.set_artifact(artifact);
    request.set_offset(offset);
    auto context = Context();
    auto reader = stub_->ReadArtifact(context.get(), request);
    return ReadAll<v1::ReadArtifactResponse>(reader.get());
  }
};

TEST_F(ReadTest, ReadsALog) {
  const std::string job = Create("a");
  EXPECT_EQ(ReadLog(job, 0).content, "");
  EXPECT_TRUE(ReadLog(job, 0).status.ok());
  const std::string content = "first line\nbytes \xff\xfe that are no text\n" + std::string(700'000, 'x');
  AppendFile(job, "worker.log", content);
  EXPECT_EQ(ReadLog(job, 0).content, content);
  const Outcome tail = ReadLog(job, 11);
  EXPECT_EQ(tail.content, content.substr(11));
  EXPECT_EQ(tail.offset, 11);
  EXPECT_TRUE(ReadLog(job, content.size()).status.ok());
  EXPECT_EQ(ReadLog(job, content.size() + 1).status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ReadLog(job, -1).status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReadLog("jobs/none-at-all", 0).status.error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ReadTest, ReadsTheLogOfARank) {
  v1::CreateJobRequest request = Request("a");
  request.mutable_spec()->mutable_replicas()->set_count(4);
  request.mutable_spec()->mutable_replicas()->set_workers(2);
  v1::Job job;
  auto create_context = Context();
  ASSERT_TRUE(stub_->CreateJob(create_context.get(), request, &job).ok());
  AppendFile(job.name(), "worker.log", "first");
  AppendFile(job.name(), "worker-1.log", "second");
  for (const auto& [rank, content] :
       std::vector<std::pair<int, std::string>>{{0, "first"}, {1, "first"}, {2, "second"}, {3, "second"}}) {
    v1::ReadLogRequest log = LogOf(job.name(), 0, false);
    log.set_rank(rank);
    auto context = Context();
    auto reader = stub_->ReadLog(context.get(), log);
    EXPECT_EQ(ReadAll<v1::ReadLogResponse>(reader.get()).content, content) << rank;
  }
  for (const int rank : {-1, 4}) {
    v1::ReadLogRequest log = LogOf(job.name(), 0, false);
    log.set_rank(rank);
    auto context = Context();
    auto reader = stub_->ReadLog(context.get(), log);
    const grpc::Status status = ReadAll<v1::ReadLogResponse>(reader.get()).status;
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("rank: is ", rank)));
    EXPECT_THAT(status.error_message(), HasSubstr("ranks 0 to 3"));
  }
}

TEST_F(ReadTest, FollowsALogUntilTheJobEnds) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  // Before the folder exists.
  auto context = Context();
  auto reader = stub_->ReadLog(context.get(), LogOf(job, 0, true));
  reader->WaitForInitialMetadata();
  AppendFile(job, "worker.log", "one\n");
  Report(job, {Started(1)});
  v1::ReadLogResponse piece;
  ASSERT_TRUE(reader->Read(&piece));
  EXPECT_EQ(piece.data(), "one\n");
  // No event tells of this, only the file.
  AppendFile(job, "worker.log", "two\n");
  ASSERT_TRUE(reader->Read(&piece));
  EXPECT_EQ(piece.data(), "two\n");
  EXPECT_EQ(piece.offset(), 4);
  AppendFile(job, "worker.log", "three\n");
  Finish(job, 2, v1::JOB_STATE_SUCCEEDED);
  const Outcome rest = ReadAll<v1::ReadLogResponse>(reader.get());
  EXPECT_EQ(rest.content, "three\n");
  EXPECT_TRUE(rest.status.ok()) << rest.status.error_message();
  // For a job that has ended.
  auto late_context = Context();
  auto late = stub_->ReadLog(late_context.get(), LogOf(job, 4, true));
  EXPECT_EQ(ReadAll<v1::ReadLogResponse>(late.get()).content, "two\nthree\n");
}

// Somebody removed the folder on the daemon's machine.
TEST_F(ReadTest, SaysThatAJobsFolderIsGone) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  AppendFile(job, "worker.log", "one\n");
  Report(job, {Started(1)});
  Finish(job, 2, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ReadLog(job, 0).content, "one\n");
  std::filesystem::remove_all(jobs_->Get(Id(job))->folder());
  const grpc::Status gone = ReadLog(job, 0).status;
  EXPECT_EQ(gone.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(gone.error_message(), testing::HasSubstr("was removed on the daemon's machine"));
}

TEST_F(ReadTest, AFollowerMayLeave) {
  const std::string job = Create("a");
  auto context = Context();
  auto reader = stub_->ReadLog(context.get(), LogOf(job, 0, true));
  reader->WaitForInitialMetadata();
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
}

// The daemon's stop drops the pool's tasks before it cancels the streams.
TEST_F(ReadTest, AStoppingPoolFreesAFollower) {
  const std::string job = Create("a");
  FairPool pool(1, 1);
  LogRequest request;
  request.path = jobs_->FolderOf(Id(job)) + "/worker.log";
  request.until_end = events_->Subscribe(Id(job), 0);
  const auto source = MakeLogSource(std::move(request), &pool, "a", files_.get());
  auto stream = std::make_shared<int>();
  const std::weak_ptr<int> kept = stream;
  source->Next([stream = std::move(stream)](const auto&) {});
  // The pool's only thread has then found nothing to read.
  absl::Notification idle;
  pool.Post("a", [&idle] { idle.Notify(); });
  idle.WaitForNotification();
  EXPECT_FALSE(kept.expired());
  pool.Drop();
  source->Cancel();
  pool.Stop();
  EXPECT_TRUE(kept.expired());
}

TEST_F(ReadTest, ReadsArtifacts) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  const std::string content(1'000'000, 'm');
  AppendFile(job, "model.safetensors", content);
  AppendFile(job, "cut", "short");
  AppendFile(job, "empty", "");
  const auto artifact = [](int64_t sequence, const std::string& name, absl::string_view made) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_artifact()->set_name(name);
    event.mutable_report()->mutable_artifact()->set_size_bytes(static_cast<int64_t>(made.size()));
    event.mutable_report()->mutable_artifact()->set_sha256(*Sha256Of(made));
    return event;
  };
  Report(job,
         {Started(1), artifact(2, "model.safetensors", content), artifact(3, "cut", std::string(100, 'c')),
          artifact(4, "empty", ""), artifact(5, "changed", "the model")});
  EXPECT_EQ(ReadArtifact(job, "model.safetensors", 0).content, content);
  EXPECT_EQ(ReadArtifact(job, "model.safetensors", 999'990).content, "mmmmmmmmmm");
  const Outcome at_end = ReadArtifact(job, "model.safetensors", content.size());
  EXPECT_TRUE(at_end.status.ok());
  EXPECT_EQ(at_end.content, "");
  EXPECT_EQ(at_end.offset, static_cast<int64_t>(content.size()));
  EXPECT_TRUE(ReadArtifact(job, "empty", 0).status.ok());
  EXPECT_EQ(ReadArtifact(job, "model.safetensors", content.size() + 1).status.error_code(),
            StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ReadArtifact(job, "cut", 0).status.error_code(), StatusCode::DATA_LOSS);
  // One bit differs. A client that continues a download also gets the error.
  Finish(job, 6, v1::JOB_STATE_SUCCEEDED);
  AppendFile(job, "changed", "the modem");
  for (const int64_t offset : {0, 5}) {
    const Outcome changed = ReadArtifact(job, "changed", offset);
    EXPECT_EQ(changed.status.error_code(), StatusCode::DATA_LOSS);
    EXPECT_THAT(changed.status.error_message(), HasSubstr("is not the file that the job made"));
    EXPECT_EQ(changed.content, "");
  }
  EXPECT_EQ(ReadArtifact(job, "../../token", 0).status.error_code(), StatusCode::NOT_FOUND);
  const grpc::Status missing = ReadArtifact(job, "optimizer", 0).status;
  EXPECT_EQ(missing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("model.safetensors"));
  EXPECT_EQ(ReadArtifact(job, "", 0).status.error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ReadTest, AModelOfAPausedJobIsCheckedToo) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  AppendFile(job, "best.safetensors", "the modem");
  internal::v1::WorkerEvent artifact = MakeWorkerEvent(2);
  artifact.mutable_report()->mutable_artifact()->set_name("best.safetensors");
  artifact.mutable_report()->mutable_artifact()->set_size_bytes(9);
  artifact.mutable_report()->mutable_artifact()->set_sha256(*Sha256Of("the model"));
  Report(job, {Started(1), artifact});
  EXPECT_TRUE(ReadArtifact(job, "best.safetensors", 0).status.ok())
      << "a better one may have taken its place";
  Finish(job, 3, v1::JOB_STATE_PAUSED);
  EXPECT_EQ(ReadArtifact(job, "best.safetensors", 0).status.error_code(), StatusCode::DATA_LOSS);
}

// Their worker was lost and may have rewritten them, so only their existence is known.
// The model of a checkpoint has the names of its variables, and the metadata of a model file.
TEST_F(ReadTest, ReadsTheModelOfACheckpoint) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  Report(job, {Started(1)});
  AppendFile(job, "worker.log", "");
  constexpr char kModel[] = "model-7.safetensors";
  const auto expect_none = [&](const std::string& message) {
    const grpc::Status status = ReadArtifact(job, kModel, 0).status;
    EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
    EXPECT_THAT(status.error_details(), HasSubstr("CHECKPOINT_NOT_FOUND"));
  };
  expect_none("it has no checkpoint yet");

  TrainingState state;
  state.step = 7;
  state.steps_per_epoch = 10;
  state.epoch_shares.resize(2);
  state.model = {{"framework", "tandem"}, {"job", "{}"}};
  Tensor weight(DType::kFloat32, Shape({100'000}));
  for (size_t i = 0; i < weight.data<float>().size(); ++i) weight.data<float>()[i] = static_cast<float>(i);
  const auto pair = [](float a, float b) { return Tensor::Of<float>(Shape({2}), {a, b}); };
  const std::vector<NamedTensor> tensors = {{"shared/dense_1.weight", weight},
                                            {"shared/momentum/dense_1.weight", weight},
                                            {"replica/0/norm.running_mean", pair(1, 2)},
                                            {"replica/1/norm.running_mean", pair(2, 4)}};
  const std::string folder = jobs_->FolderOf(Id(job));
  const std::string path = folder + "/checkpoint-7.safetensors";
  ASSERT_TRUE(WriteCheckpoint(Env::Real(), path, ToJson(state), tensors).ok());
  ASSERT_TRUE(WriteSafetensors(Env::Real(), folder + "/expected",
                               {{"dense_1.weight", weight}, {"norm.running_mean", pair(1.5, 3)}}, state.model)
                  .ok());
  const std::string model = *Env::Real()->ReadFile(folder + "/expected");
  EXPECT_EQ(ReadArtifact(job, kModel, 0).content, model);
  for (const size_t offset : {size_t{3}, size_t{300'001}, model.size()}) {
    const Outcome rest = ReadArtifact(job, kModel, static_cast<int64_t>(offset));
    EXPECT_TRUE(rest.status.ok()) << rest.status.error_message();
    EXPECT_EQ(rest.content, model.substr(offset));
  }
  EXPECT_EQ(ReadArtifact(job, kModel, static_cast<int64_t>(model.size()) + 1).status.error_code(),
            StatusCode::OUT_OF_RANGE);

  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  for (const int64_t offset : {0, 3}) {
    const grpc::Status damaged = ReadArtifact(job, kModel, offset).status;
    EXPECT_EQ(damaged.error_code(), StatusCode::DATA_LOSS);
    EXPECT_THAT(damaged.error_message(), HasSubstr("checkpoint-7.safetensors cannot be used"));
    EXPECT_THAT(damaged.error_details(), HasSubstr("CHECKPOINT_DAMAGED"));
  }
  std::filesystem::rename(path, folder + "/checkpoint-8.safetensors");
  expect_none("it has no checkpoint of step 7; give one of the steps 8");
}

// A hijacked worker may write a checkpoint with a large header. Streams that nobody reads keep it in memory.
TEST_F(ReadTest, BoundsTheHeadersOfCheckpointsThatAreRead) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  Report(job, {Started(1)});
  AppendFile(job, "worker.log", "");
  TrainingState state;
  state.steps_per_epoch = 10;
  state.epoch_shares.resize(1);
  state.model = {{"class_names", std::string(20 << 20, 'x')}, {"job", "{}"}};
  const std::string path = jobs_->FolderOf(Id(job)) + "/checkpoint-0.safetensors";
  ASSERT_TRUE(WriteCheckpoint(Env::Real(), path, ToJson(state), {}).ok());
  v1::ReadArtifactRequest request;
  request.set_name(job);
  request.set_artifact("model-0.safetensors");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::ReadArtifactResponse>>> readers;
  v1::ReadArtifactResponse piece;
  for (int i = 0; i < 3; ++i) {
    contexts.push_back(Context());
    // A busy machine needs several seconds for each header, and all streams must outlive the refused call.
    contexts.back()->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
    readers.push_back(stub_->ReadArtifact(contexts.back().get(), request));
    ASSERT_TRUE(readers.back()->Read(&piece)) << readers.back()->Finish().error_message();
  }
  const grpc::Status refused = ReadArtifact(job, request.artifact(), 0).status;
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) {
    while (reader->Read(&piece)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
  }
}

TEST_F(ReadTest, ReadsArtifactsWithoutAChecksumAsTheyAre) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  Report(job, {Started(1)});
  int64_t sequence = 1;
  for (const std::string name : {"shorter", "longer", "gone"}) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(++sequence);
    event.mutable_report()->mutable_artifact()->set_name(name);
    event.mutable_report()->mutable_artifact()->set_size_bytes(7);
    Report(job, {event});
  }
  AppendFile(job, "shorter", "short");
  AppendFile(job, "longer", "rather longer");
  for (const auto& [name, content] : {std::pair("shorter", "short"), {"longer", "rather longer"}}) {
    const Outcome outcome = ReadArtifact(job, name, 0);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.content, content);
  }
  EXPECT_EQ(ReadArtifact(job, "shorter", 6).status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ReadArtifact(job, "gone", 0).status.error_code(), StatusCode::DATA_LOSS);
}

TEST_F(ReadTest, ListsDevicesAndWhoHoldsThem) {
  const std::string job = Create("a");
  workers_.AwaitStarted(Id(job));
  v1::ListDevicesResponse devices;
  ASSERT_TRUE(daemon_stub_->ListDevices(Context().get(), {}, &devices).ok());
  ASSERT_EQ(devices.devices_size(), 2);
  EXPECT_EQ(devices.devices(0).job(), job);
  EXPECT_EQ(devices.devices(1).job(), "");
}

TEST_F(ReadTest, HealthNeedsNoToken) {
  const auto check = [&](const std::string& service, std::string* answer) {
    // grpc.health.v1.HealthCheckRequest and -Response, each with one field, written by hand.
    std::string request;
    if (!service.empty())
      request = absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
    grpc::Slice slice(request);
    grpc::ByteBuffer buffer(&slice, 1);
    grpc::ByteBuffer reply;
    auto context = Context("");
    const grpc::Status status = CallRaw("/grpc.health.v1.Health/Check", buffer, context.get(), &reply);
    std::vector<grpc::Slice> slices;
    if (status.ok()) reply.Dump(&slices).ok();
    answer->clear();
    for (const grpc::Slice& part : slices)
      answer->append(reinterpret_cast<const char*>(part.begin()), part.size());
    return status;
  };
  std::string answer;
  for (const char* service : {"", "tandem.v1.JobService", "tandem.v1.DaemonService"}) {
    const grpc::Status status = check(service, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(answer, "\x08\x01");
  }
  server_->SetServing(false);
  EXPECT_TRUE(check("tandem.v1.JobService", &answer).ok());
  EXPECT_EQ(answer, "\x08\x02");
  server_->SetServing(true);
  EXPECT_TRUE(check("tandem.v1.JobService", &answer).ok());
  EXPECT_EQ(answer, "\x08\x01");
  EXPECT_EQ(check("no.such.Service", &answer).error_code(), StatusCode::NOT_FOUND);
}

// The stream stays open, so it needs a token.
TEST_F(ReadTest, WatchingHealthNeedsAToken) {
  for (const std::string& token : {std::string(), std::string(kToken)}) {
    grpc::CompletionQueue queue;
    auto context = Context(token);
    const auto call =
        grpc::GenericStub(channel_).PrepareCall(context.get(), "/grpc.health.v1.Health/Watch", &queue);
    const auto await = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    await();
    grpc::Slice nothing("");
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, nullptr);
    await();
    const auto read = [&] {
      grpc::ByteBuffer buffer;
      call->Read(&buffer, nullptr);
      std::vector<grpc::Slice> slices;
      return await() && buffer.Dump(&slices).ok() && !slices.empty()
                 ? std::string(reinterpret_cast<const char*>(slices[0].begin()), slices[0].size())
                 : std::string();
    };
    EXPECT_EQ(read(), token.empty() ? "" : "\x08\x01");
    if (!token.empty()) {
      server_->SetServing(false);
      EXPECT_EQ(read(), "\x08\x02");
      context->TryCancel();
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    await();
    EXPECT_EQ(status.error_code(), token.empty() ? StatusCode::UNAUTHENTICATED : StatusCode::CANCELLED);
    queue.Shutdown();
    while (await()) {
    }
  }
}

}  // namespace
}  // namespace tandem
