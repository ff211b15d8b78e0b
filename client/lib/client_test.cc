#include "client/lib/client.h"

#include <grpcpp/create_channel.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/fake_daemon.h"
#include "client/lib/listener_check.h"
#include "client/lib/resumable_stream.h"
#include "client/lib/status_details.h"
#include "client/lib/stranger.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ReconnectPolicy Quick() {
  ReconnectPolicy policy;
  policy.first_wait = absl::Milliseconds(5);
  policy.longest_wait = absl::Milliseconds(20);
  policy.give_up_after = absl::Seconds(20);
  return policy;
}

std::unique_ptr<Client> Connect(const std::string& address, const ReconnectPolicy& policy = Quick(),
                                const std::string& token = "") {
  ConnectionOptions options;
  options.address = address;
  options.token = token;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(options, policy);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

v1::JobEvent Event(int64_t sequence, bool terminal = false) {
  v1::JobEvent event;
  event.set_job("jobs/a");
  event.set_sequence(sequence);
  event.set_terminal(terminal);
  return event;
}

class CountingObserver : public StreamObserver {
 public:
  void Lost(const absl::Status&, absl::Duration) override { ++lost; }
  void Restored() override { ++restored; }
  int lost = 0;
  int restored = 0;
};

// Returns a refusal with a delay.
grpc::Status ComeAgain(absl::Duration delay) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  retry.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay) % 1'000'000'000));
  return DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "too often", retry);
}

class CountingWaits : public WaitObserver {
 public:
  void OnAskedToWait(const absl::Status& why, absl::Duration wait) override {
    EXPECT_EQ(why.message(), "too often");
    waited += wait;
    ++waits;
  }
  bool KeepWaiting() override { return keep_waiting; }
  int waits = 0;
  absl::Duration waited;
  bool keep_waiting = true;
};

TEST(ClientTest, WaitsWhereTheDaemonAsksForIt) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  std::atomic<int> delay_ms = 30;
  daemon.get_job = [&](const v1::GetJobRequest& request, v1::Job* job) {
    if (++calls <= 2) return ComeAgain(absl::Milliseconds(delay_ms.load()));
    job->set_name(request.name());
    return grpc::Status::OK;
  };
  const auto client = Connect(daemon.address());
  CountingWaits waits;
  client->SetWaitObserver(&waits);
  const absl::Time begin = absl::Now();
  EXPECT_EQ(client->GetJob("jobs/a")->name(), "jobs/a");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(waits.waits, 2);
  EXPECT_EQ(waits.waited, absl::Milliseconds(60));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(60));
  // A delay above the client's limit is left to the user.
  calls = 0;
  delay_ms = 11'000;
  EXPECT_TRUE(absl::IsResourceExhausted(client->GetJob("jobs/a").status()));
  EXPECT_EQ(calls, 1);
  // A client that is told to stop stops waiting.
  calls = 0;
  delay_ms = 9'000;
  waits.keep_waiting = false;
  EXPECT_TRUE(absl::IsResourceExhausted(client->GetJob("jobs/a").status()));
  EXPECT_EQ(calls, 1);
}

TEST(ClientTest, StreamsAreTakenUpWhereTheDaemonAsksForAMoment) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.watch_job = [&](const v1::WatchJobRequest&, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>* writer) {
    if (++calls <= 2) return ComeAgain(absl::Milliseconds(10));
    writer->Write(Event(1, /*terminal=*/true));
    return grpc::Status::OK;
  };
  CountingObserver observer;
  EXPECT_TRUE(Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {}).ok());
  EXPECT_EQ(calls, 3);
}

TEST(ClientTest, AStreamThatIsNeverLetInEndsWithWhatTheDaemonSays) {
  FakeDaemon daemon;
  daemon.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*, grpc::ServerWriter<v1::JobEvent>*) {
    return ComeAgain(absl::Milliseconds(1));
  };
  ReconnectPolicy policy = Quick();
  policy.give_up_after = absl::Milliseconds(50);
  CountingObserver observer;
  const absl::Status status =
      Connect(daemon.address(), policy)->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "too often");
  EXPECT_GT(observer.lost, 0);
}

TEST(ClientTest, ErrorsKeepTheirFields) {
  FakeDaemon daemon;
  daemon.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return BadRequestStatus("2 fields are wrong",
                            {{"spec.training.epochs", "must be at least 1"}, {"spec.name", "bad"}});
  };
  const auto client = Connect(daemon.address());
  const absl::Status status = client->CreateJob({}, "id", false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "2 fields are wrong");
  const std::vector<FieldViolation> violations = FieldViolations(status);
  ASSERT_EQ(violations.size(), 2);
  EXPECT_EQ(violations[0].field, "spec.training.epochs");
  EXPECT_EQ(violations[0].description, "must be at least 1");
  EXPECT_EQ(violations[1].field, "spec.name");
}

TEST(ClientTest, SendsItsToken) {
  FakeDaemon daemon;
  daemon.token = "secret";
  daemon.get_job = [](const v1::GetJobRequest& request, v1::Job* job) {
    job->set_name(request.name());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Connect(daemon.address())->GetJob("jobs/a").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Connect(daemon.address(), Quick(), "wrong")->GetJob("jobs/a").status().code(),
            absl::StatusCode::kUnauthenticated);
  const absl::StatusOr<v1::Job> job = Connect(daemon.address(), Quick(), "secret")->GetJob("jobs/a");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "jobs/a");
}

// When a daemon has ended, another user on its port would get the token when the stream reconnects.
class TakenOver : public CountingObserver {
 public:
  explicit TakenOver(std::function<void()> take_over) : take_over_(std::move(take_over)) {}
  void Lost(const absl::Status& why, absl::Duration wait) override {
    if (lost == 0) take_over_();
    CountingObserver::Lost(why, wait);
  }

 private:
  const std::function<void()> take_over_;
};

TEST(ClientTest, SendsNoTokenToWhoeverTookThePort) {
  if (!Stranger::CanBe()) GTEST_SKIP() << "only root can listen as another user";
  auto daemon = std::make_unique<FakeDaemon>();
  daemon->token = "secret";
  daemon->watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>* writer) {
    writer->Write(Event(1));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon ends");
  };
  daemon->get_job = [](const v1::GetJobRequest&, v1::Job*) { return grpc::Status::OK; };
  ConnectionOptions options;
  options.address = daemon->address();
  options.token = "secret";
  options.trusted_listeners = {geteuid()};
  ReconnectPolicy policy = Quick();
  policy.give_up_after = absl::Milliseconds(200);
  const std::unique_ptr<Client> client = *Client::Create(options, policy);
  ASSERT_TRUE(client->GetJob("jobs/a").ok());
  std::unique_ptr<Stranger> stranger;
  TakenOver observer([&] {
    const int port = daemon->port();
    daemon.reset();
    stranger = std::make_unique<Stranger>(port);
  });
  const absl::Status status = client->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(kStrangerListens));
  const absl::Status called = client->GetJob("jobs/a").status();
  EXPECT_THAT(std::string(called.message()), HasSubstr(kStrangerListens));
  EXPECT_EQ(stranger->Received(), "");
}

TEST(ClientTest, UnaryCallFailsAtOnceWhereNobodyListens) {
  std::string address;
  { address = FakeDaemon().address(); }
  EXPECT_EQ(Connect(address)->GetDaemon().status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, ListsPageAfterPage) {
  FakeDaemon daemon;
  daemon.list_jobs = [](const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
    const int begin = request.page_token().empty() ? 0 : std::stoi(request.page_token());
    const int end = std::min(begin + std::min(request.page_size(), 2), 5);
    for (int i = begin; i < end; ++i) response->add_jobs()->set_name("jobs/" + std::to_string(i));
    if (end < 5) response->set_next_page_token(std::to_string(end));
    return grpc::Status::OK;
  };
  const auto client = Connect(daemon.address());
  EXPECT_EQ(client->ListJobs({})->size(), 5);
  ListJobsOptions three;
  three.limit = 3;
  EXPECT_EQ(client->ListJobs(three)->size(), 3);
}

TEST(WatchJobTest, GoesOnAfterEachBreak) {
  FakeDaemon daemon;
  // Each call sends two events and breaks, in another way each time. The client must not deliver a repeated
  // event twice.
  std::atomic<int> calls = 0;
  daemon.watch_job = [&](const v1::WatchJobRequest& request, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    const int call = calls++;
    const int64_t after = request.after_sequence();
    if (call % 4 == 3) writer->Write(Event(after));
    for (int64_t sequence = after + 1; sequence <= after + 2; ++sequence) {
      writer->Write(Event(sequence, sequence == 20));
      if (sequence == 20) return grpc::Status::OK;
    }
    if (call % 4 == 1) return grpc::Status::OK;
    if (call % 4 == 2) return {grpc::StatusCode::CANCELLED, "torn down"};
    return {grpc::StatusCode::UNAVAILABLE, "shutting down"};
  };
  CountingObserver observer;
  std::vector<int64_t> sequences;
  const absl::Status status =
      Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [&](const v1::JobEvent& event) {
        sequences.push_back(event.sequence());
      });
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_EQ(sequences.size(), 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sequences[i], i + 1);
  EXPECT_EQ(observer.lost, 9);
  EXPECT_EQ(observer.restored, 9);
}

// A job that failed, was resumed, and then succeeded has a terminal event within its log.
TEST(WatchJobTest, ABreakAfterATerminalEventIsNoEnd) {
  FakeDaemon daemon;
  std::vector<int64_t> asked;
  daemon.watch_job = [&](const v1::WatchJobRequest& request, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    const int64_t after = request.after_sequence();
    asked.push_back(after);
    if (after < 4) {
      // Events 2 and 4 are terminal, and the connection breaks after each of them.
      writer->Write(Event(after + 1));
      writer->Write(Event(after + 2, /*terminal=*/true));
      return {grpc::StatusCode::UNAVAILABLE, "broken"};
    }
    return grpc::Status::OK;
  };
  CountingObserver observer;
  std::vector<int64_t> sequences;
  const absl::Status status =
      Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [&](const v1::JobEvent& event) {
        sequences.push_back(event.sequence());
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(asked, ElementsAre(0, 2, 4));
}

TEST(WatchJobTest, SurvivesADaemonThatGoesAndComesBack) {
  std::unique_ptr<FakeDaemon> daemon = std::make_unique<FakeDaemon>();
  const int port = daemon->port();
  const auto watch = [](const v1::WatchJobRequest& request, grpc::ServerContext* context,
                        grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    if (request.after_sequence() == 0) {
      writer->Write(Event(1));
      while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      return grpc::Status::CANCELLED;
    }
    writer->Write(Event(2, true));
    return grpc::Status::OK;
  };
  daemon->watch_job = watch;
  class Observer : public CountingObserver {
   public:
    explicit Observer(std::function<void()> restart) : restart_(std::move(restart)) {}
    void Lost(const absl::Status& why, absl::Duration wait) override {
      CountingObserver::Lost(why, wait);
      // The daemon stays away for some attempts.
      if (lost == 3) restart_();
    }

   private:
    const std::function<void()> restart_;
  };
  Observer observer([&] {
    daemon = std::make_unique<FakeDaemon>(port);
    daemon->watch_job = watch;
  });
  std::vector<int64_t> sequences;
  const auto client = Connect(daemon->address());
  const absl::Status status = client->WatchJob("jobs/a", 0, observer, [&](const v1::JobEvent& event) {
    sequences.push_back(event.sequence());
    if (event.sequence() == 1) daemon.reset();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2));
  EXPECT_EQ(observer.restored, 1);
}

// The second break has long waits, and a channel on which no call asks for a connection.
TEST(ReconnectorTest, ASecondBreakEndsWithTheConnectionToo) {
  auto daemon = std::make_unique<FakeDaemon>();
  const int port = daemon->port();
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateChannel(daemon->address(), grpc::InsecureChannelCredentials());
  const auto connects = [&] {
    return channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  };
  ASSERT_TRUE(connects());
  const ReconnectPolicy policy = {.first_wait = absl::Milliseconds(300), .longest_wait = absl::Seconds(30)};
  CountingObserver observer;
  Reconnector reconnector(policy, channel.get(), observer);
  daemon.reset();
  // The waits are 0.3, 0.6, 1.2, 2.4 and 4.8 s, minus at most a half.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reconnector.OnBreak(absl::UnavailableError("away")).ok());
  daemon = std::make_unique<FakeDaemon>(port);
  ASSERT_TRUE(connects());
  daemon.reset();
  while (channel->GetState(false) == GRPC_CHANNEL_READY) absl::SleepFor(absl::Milliseconds(1));
  daemon = std::make_unique<FakeDaemon>(port);
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(reconnector.OnBreak(absl::UnavailableError("away again")).ok());
  EXPECT_LT(absl::Now() - begin, absl::Milliseconds(4500)) << "the next wait lasts for at least 4.8 s";
}

TEST(WatchJobTest, GivesUpAfterItsTime) {
  std::string address;
  { address = FakeDaemon().address(); }
  ReconnectPolicy policy = Quick();
  policy.give_up_after = absl::Milliseconds(100);
  CountingObserver observer;
  const absl::Status status =
      Connect(address, policy)->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot reconnect within 100ms"));
  EXPECT_GT(observer.lost, 1);
}

TEST(WatchJobTest, AQuietStreamThatHeldIsNotBrokenForThatLong) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.watch_job = [&](const v1::WatchJobRequest&, grpc::ServerContext* context,
                         grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    const int call = calls++;
    if (call == 3) {
      writer->Write(Event(2, true));
      return grpc::Status::OK;
    }
    if (call == 0) {
      writer->Write(Event(1));
    } else {
      // Longer than the client tries to reconnect.
      context->AddInitialMetadata("tandem-call-id", "1");
      writer->SendInitialMetadata();
      absl::SleepFor(absl::Milliseconds(1200));
    }
    return {grpc::StatusCode::UNAVAILABLE, "shutting down"};
  };
  ReconnectPolicy policy = Quick();
  policy.give_up_after = absl::Seconds(1);
  CountingObserver observer;
  std::vector<int64_t> sequences;
  const absl::Status status =
      Connect(daemon.address(), policy)->WatchJob("jobs/a", 0, observer, [&](const v1::JobEvent& event) {
        sequences.push_back(event.sequence());
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2));
  EXPECT_EQ(observer.lost, 3);
  EXPECT_EQ(observer.restored, 3);
}

TEST(WatchJobTest, ReportsAMissingEvent) {
  FakeDaemon daemon;
  daemon.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*,
                        grpc::ServerWriter<v1::JobEvent>* writer) {
    writer->Write(Event(1));
    writer->Write(Event(3));
    return grpc::Status::OK;
  };
  CountingObserver observer;
  const absl::Status status =
      Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("cannot follow jobs/a: the daemon sent event 3 after event 1; "));
}

TEST(WatchJobTest, ErrorsThatNoRepetitionMendsEndIt) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.watch_job = [&](const v1::WatchJobRequest&, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>*) -> grpc::Status {
    ++calls;
    return {grpc::StatusCode::NOT_FOUND, "no such job"};
  };
  CountingObserver observer;
  EXPECT_EQ(Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {}).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(calls, 1);
}

TEST(WatchJobTest, ObserverStopsAQuietStream) {
  FakeDaemon daemon;
  daemon.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext* context,
                        grpc::ServerWriter<v1::JobEvent>* writer) {
    writer->Write(Event(1));
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  class Stop : public StreamObserver {
   public:
    bool KeepGoing() override { return !stop; }
    bool stop = false;
  };
  Stop observer;
  const absl::Status status =
      Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [&](const v1::JobEvent&) {
        observer.stop = true;
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(WatchJobTest, APatientObserverIsAskedTwiceASecond) {
  FakeDaemon daemon;
  daemon.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*,
                        grpc::ServerWriter<v1::JobEvent>* writer) {
    writer->Write(Event(1));
    absl::SleepFor(absl::Seconds(1));
    writer->Write(Event(2, true));
    return grpc::Status::OK;
  };
  class Patient : public StreamObserver {
   public:
    bool KeepGoing() override { return ++calls > 0; }
    absl::Duration Patience() override { return absl::InfiniteDuration(); }
    int calls = 0;
  };
  Patient observer;
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(Connect(daemon.address())->WatchJob("jobs/a", 0, observer, [](const v1::JobEvent&) {}).ok());
  // Once for each event and twice a second. An impatient observer is asked more than ten times.
  EXPECT_LE(observer.calls, (absl::Now() - begin) / absl::Milliseconds(500) + 4);
  EXPECT_GE(observer.calls, 2);
}

TEST(WatchJobTest, WatchingFromTheTerminalEventEndsWell) {
  FakeDaemon daemon;
  daemon.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*, grpc::ServerWriter<v1::JobEvent>*) {
    return grpc::Status::OK;
  };
  CountingObserver observer;
  EXPECT_TRUE(Connect(daemon.address())->WatchJob("jobs/a", 7, observer, [](const v1::JobEvent&) {}).ok());
}

TEST(FollowSweepTest, EndsWithTheSweepAndGoesOnAfterBreaks) {
  FakeDaemon daemon;
  std::atomic<int> calls = 0;
  daemon.get_sweep = [&](const v1::GetSweepRequest& request, v1::Sweep* sweep) -> grpc::Status {
    const int call = ++calls;
    if (request.name() != "sweeps/a") return {grpc::StatusCode::NOT_FOUND, "no such sweep"};
    if (call == 1) return {grpc::StatusCode::UNAVAILABLE, "shutting down"};
    if (call == 2) return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer within 30 s"};
    sweep->set_name(request.name());
    sweep->set_state(call == 3 ? v1::SWEEP_STATE_CANCELLING : v1::SWEEP_STATE_CANCELLED);
    return grpc::Status::OK;
  };
  const auto client = Connect(daemon.address());
  CountingObserver observer;
  std::vector<int> states;
  const absl::StatusOr<v1::Sweep> sweep =
      client->FollowSweep("sweeps/a", observer, [&](const v1::Sweep& now) { states.push_back(now.state()); });
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->state(), v1::SWEEP_STATE_CANCELLED);
  EXPECT_THAT(states, ElementsAre(v1::SWEEP_STATE_CANCELLING, v1::SWEEP_STATE_CANCELLED));
  EXPECT_EQ(observer.lost, 2);
  EXPECT_EQ(observer.restored, 1);
  EXPECT_TRUE(absl::IsNotFound(client->FollowSweep("sweeps/b", observer, [](const v1::Sweep&) {}).status()));
}

TEST(ReadArtifactTest, GoesOnAtTheByteWhereItBroke) {
  FakeDaemon daemon;
  const std::string content = "0123456789abcdefghij";
  daemon.read_artifact = [&](const v1::ReadArtifactRequest& request,
                             grpc::ServerWriter<v1::ReadArtifactResponse>* writer) -> grpc::Status {
    v1::ReadArtifactResponse piece;
    piece.set_offset(request.offset());
    piece.set_data(content.substr(request.offset(), 7));
    writer->Write(piece);
    if (request.offset() + 7 >= static_cast<int64_t>(content.size())) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, "broken"};
  };
  std::string received;
  CountingObserver observer;
  const absl::Status status =
      Connect(daemon.address())
          ->ReadArtifact("jobs/a", "model", 0, observer, [&](const v1::ReadArtifactResponse& piece) {
            absl::StrAppend(&received, piece.data());
            return absl::OkStatus();
          });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(received, content);
  EXPECT_EQ(observer.lost, 2);
}

TEST(ConnectionTest, LocalAddresses) {
  for (const char* address :
       {"127.0.0.1:7447", "127.8.9.1:1", "localhost:7447", "[::1]:7447", "0.0.0.0:1", "unix:/x"}) {
    EXPECT_TRUE(IsLocalAddress(address)) << address;
  }
  for (const char* address : {"10.0.0.1:7447", "gpu-box:7447", "[fe80::1]:7447", "localhost.example.org:1",
                              "127.0.0.1.example.org:7447"}) {
    EXPECT_FALSE(IsLocalAddress(address)) << address;
  }
}

TEST(ConnectionTest, UnspecifiedAddressesAreReachedOnLoopback) {
  EXPECT_EQ(ReachableAddress("0.0.0.0:7447"), "127.0.0.1:7447");
  EXPECT_EQ(ReachableAddress("[::]:7447"), "localhost:7447");
  for (const char* address : {"127.0.0.1:1", "[::1]:7447", "10.0.0.0:7447", "gpu-box:7447", "unix:/run/t"}) {
    EXPECT_EQ(ReachableAddress(address), address);
  }
}

TEST(ConnectionTest, AProxyOfTheEnvironmentIsNotForTheDaemon) {
  FakeDaemon daemon;
  daemon.get_job = [](const v1::GetJobRequest&, v1::Job*) { return grpc::Status::OK; };
  // Nobody listens there.
  setenv("grpc_proxy", "http://127.0.0.1:1", /*replace=*/1);
  setenv("no_grpc_proxy", "elsewhere", /*replace=*/1);
  const absl::Status status = Connect(daemon.address())->GetJob("jobs/a").status();
  unsetenv("grpc_proxy");
  unsetenv("no_grpc_proxy");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ConnectionTest, TokenDoesNotTravelUnencrypted) {
  ConnectionOptions options;
  options.address = "gpu-box:7447";
  EXPECT_TRUE(OpenChannel(options).ok());
  options.token = "secret";
  const absl::Status status = OpenChannel(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tls-ca"));
  options.allow_plaintext = true;
  EXPECT_TRUE(OpenChannel(options).ok());
}

TEST(ConnectionTest, BadOptionsAreNamed) {
  ConnectionOptions options;
  for (const char* address : {"", "gpu-box", ":7447", "gpu-box:", "gpu-box:70000", "gpu-box:x"}) {
    options.address = address;
    EXPECT_THAT(std::string(OpenChannel(options).status().message()),
                HasSubstr("it is not an address; give HOST:PORT"));
  }
  options.address = "gpu-box:7447";
  options.tls_ca_file = "/no/such/ca.pem";
  EXPECT_EQ(OpenChannel(options).status().message(),
            "cannot use the CA file: cannot read /no/such/ca.pem: No such file or directory; name "
            "another file");
  options.tls_ca_file = "";
  options.tls_certificate_file = "/some/cert.pem";
  EXPECT_THAT(std::string(OpenChannel(options).status().message()), HasSubstr("--tls-key"));
}

TEST(ClientTest, ABreakBeforeTheFirstChangeLosesNone) {
  FakeDaemon daemon;
  std::vector<int64_t> asked;
  daemon.watch_jobs = [&](const v1::WatchJobsRequest& request, grpc::ServerContext* context,
                          grpc::ServerWriter<v1::WatchJobsResponse>* writer) -> grpc::Status {
    asked.push_back(request.after_cursor());
    if (request.after_cursor() == -1) {
      context->AddInitialMetadata("tandem-cursor", "41");
      writer->SendInitialMetadata();
      return {grpc::StatusCode::UNAVAILABLE, "going"};
    }
    v1::WatchJobsResponse change;
    change.set_cursor(42);
    writer->Write(change);
    return {grpc::StatusCode::PERMISSION_DENIED, "enough"};
  };
  CountingObserver observer;
  std::vector<int64_t> cursors;
  const absl::Status status =
      Connect(daemon.address())->WatchJobs(-1, observer, [&](const v1::WatchJobsResponse& change) {
        cursors.push_back(change.cursor());
      });
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(asked, ElementsAre(-1, 41));
  EXPECT_THAT(cursors, ElementsAre(42));
}

}  // namespace
}  // namespace tandem::client
