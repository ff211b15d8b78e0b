// Tests the port for workers with strangers on it, who have no secret.

#include "server/clusters/worker_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"
#include "server/workers/worker_protocol.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {
namespace {

constexpr char kSecret[] = "the attempt's secret";

// Admits workers that know the secret.
class SecretHost : public WorkerSessionHost {
 public:
  absl::Status Admit(const internal::v1::Hello& hello, const std::shared_ptr<WorkerSession>&) override {
    return hello.secret() == kSecret ? absl::OkStatus() : absl::FailedPreconditionError("a wrong secret");
  }
  void Leave(const std::string&, const WorkerSession*) override {}
};

// A worker's end of a stream, or a stranger's.
class Stream {
 public:
  Stream(int port, const std::string& certificate) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = certificate;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(kWorkerListenerName);
    // Each stream has its own connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    stub_ = internal::v1::WorkerService::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("ipv4:127.0.0.1:", port), grpc::SslCredentials(tls), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    context_.set_wait_for_ready(true);
    stream_ = stub_->Connect(&context_);
  }
  ~Stream() {
    if (!finished_) End();
  }

  void SayHello(const std::string& job_id, const std::string& secret) {
    internal::v1::ConnectRequest request;
    request.mutable_hello()->set_job_id(job_id);
    request.mutable_hello()->set_attempt(1);
    request.mutable_hello()->set_protocol(kWorkerProtocol);
    request.mutable_hello()->set_secret(secret);
    EXPECT_TRUE(stream_->Write(request));
  }
  void Send(const internal::v1::WorkerEvent& event) {
    internal::v1::ConnectRequest request;
    *request.add_events() = event;
    EXPECT_TRUE(stream_->Write(request));
  }
  // Returns the next acknowledged number; -1 if something else comes, or the stream ends.
  int64_t Acknowledged() {
    internal::v1::ConnectResponse response;
    if (!stream_->Read(&response) || !response.has_acknowledgement()) return -1;
    return response.acknowledgement().worker_sequence();
  }
  // Waits until the daemon ends the stream, and returns the stream's end.
  grpc::Status AwaitEnd() {
    internal::v1::ConnectResponse response;
    while (stream_->Read(&response)) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  void End() {
    context_.TryCancel();
    AwaitEnd();
  }

  std::unique_ptr<internal::v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<internal::v1::ConnectRequest, internal::v1::ConnectResponse>>
      stream_;
  bool finished_ = false;
};

class WorkerListenerTest : public testing::Test {
 protected:
  WorkerListenerTest() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit files = before_;
    files.rlim_cur = kFiles;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  }
  ~WorkerListenerTest() override {
    Leave();
    setrlimit(RLIMIT_NOFILE, &before_);
  }

  void Listen(absl::Duration hello_limit) {
    const auto certificate = LoadWorkerCertificate(folder_.path());
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    certificate_ = certificate->certificate;
    auto listener = WorkerListener::Start(
        {.address = "127.0.0.1:0", .certificate = *certificate, .hello_limit = hello_limit}, &host_,
        &jobs_.machine());
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  // Strangers connect over TCP, and send nothing.
  void ConnectStrangers(int count) {
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_GE(fd, 0);
      strangers_.push_back(fd);
      sockaddr_in to = {};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      to.sin_port = htons(static_cast<uint16_t>(listener_->port()));
      ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    }
  }
  // Returns the number of strangers whose connections the daemon closed.
  int Closed() {
    return static_cast<int>(std::count_if(strangers_.begin(), strangers_.end(), [](int fd) {
      pollfd event = {fd, POLLIN, 0};
      char byte;
      return poll(&event, 1, 0) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
    }));
  }
  void Leave() {
    for (const int fd : strangers_) close(fd);
    strangers_.clear();
  }
  // A worker connects, and its stream takes an event.
  void ExpectAWorkerCanWork() {
    const std::string id = jobs_.NewJob();
    ASSERT_TRUE(jobs_.Schedule(id).ok());
    Stream worker(listener_->port(), certificate_);
    worker.SayHello(id, kSecret);
    EXPECT_EQ(worker.Acknowledged(), 0);
    worker.Send(Started(1));
    EXPECT_EQ(worker.Acknowledged(), 1);
  }

  static constexpr int kFiles = 1600;
  // A quarter of the files, and half of these for one address.
  static constexpr int kMostOfOneAddress = kFiles / 4 / 2;

  rlimit before_ = {};
  const TemporaryFolder folder_;
  JobMachineFixture jobs_;
  SecretHost host_;
  std::string certificate_;
  std::unique_ptr<WorkerListener> listener_;
  std::vector<int> strangers_;
};

TEST_F(WorkerListenerTest, TooManyConnectionsAreRefusedAndTheNextWorkerIsNot) {
  Listen(absl::Hours(1));
  constexpr int kStrangers = 1000;
  ConnectStrangers(kStrangers);
  EXPECT_TRUE(Eventually([this] { return Closed() >= kStrangers - kMostOfOneAddress; })) << Closed();
  // The others have an hour for their handshakes.
  EXPECT_EQ(Closed(), kStrangers - kMostOfOneAddress);
  Leave();
  ExpectAWorkerCanWork();
}

TEST_F(WorkerListenerTest, ConnectionsThatSendNothingAreClosed) {
  Listen(absl::Seconds(1));
  ConnectStrangers(kMostOfOneAddress);
  EXPECT_TRUE(Eventually([this] { return Closed() == kMostOfOneAddress; })) << Closed();
  ExpectAWorkerCanWork();
}

TEST_F(WorkerListenerTest, AStreamWithoutAGoodHelloEndsAndAWorkersStreamStays) {
  constexpr absl::Duration kLimit = absl::Seconds(2);
  Listen(kLimit);
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  Stream worker(listener_->port(), certificate_);
  worker.SayHello(id, kSecret);
  ASSERT_EQ(worker.Acknowledged(), 0);
  Stream silent(listener_->port(), certificate_);
  EXPECT_EQ(silent.AwaitEnd().error_code(), grpc::StatusCode::CANCELLED);
  Stream wrong(listener_->port(), certificate_);
  wrong.SayHello(id, "another secret");
  EXPECT_EQ(wrong.Acknowledged(), -1);
  EXPECT_NE(wrong.AwaitEnd().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  absl::SleepFor(kLimit);
  worker.Send(Started(1));
  EXPECT_EQ(worker.Acknowledged(), 1);
}

TEST_F(WorkerListenerTest, NamesTheOptionOfATakenPort) {
  Listen(absl::Hours(1));
  const auto second =
      WorkerListener::Start({.address = absl::StrCat("127.0.0.1:", listener_->port()), .certificate = {}},
                            &host_, &jobs_.machine());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_TRUE(absl::StrContains(second.status().message(), "choose another with --worker-listen"))
      << second.status();
}

}  // namespace
}  // namespace tandem
