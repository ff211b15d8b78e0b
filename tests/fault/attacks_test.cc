// Attacks on a real daemon, over real sockets, by clients without a token, with a token of a lower role, or
// with an expired or revoked token. server/auth/THREATS.md names these tests, and the tests of single parts.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/test_certificates.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/holdings.h"
#include "tests/integration/idx_files.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A connection below gRPC, for bytes that no gRPC library sends.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Returns whether the other side still takes bytes.
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t now = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }
  // Returns all bytes until the other side closes, or is silent for ten seconds.
  std::string ReadToEnd() {
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) all.append(buffer, got);
    return all;
  }

 private:
  const int fd_;
};

// A frame of HTTP/2 (RFC 9113).
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift & 0xff);
  return frame + payload;
}

class AttacksTest : public ::testing::Test {
 protected:
  AttacksTest() {
    std::filesystem::create_directory(scratch_.File("data"));
    daemon_ = std::make_unique<DaemonProcess>(DaemonProcess::Options{
        .state_folder = scratch_.File("state"), .extra_arguments = {"--data-folder", scratch_.File("data")}});
    EXPECT_TRUE(daemon_->Start().ok()) << daemon_->Log();
    channel_ = daemon_->NewChannel();
  }
  // After any attack the daemon must run and serve.
  ~AttacksTest() override {
    EXPECT_TRUE(daemon_->IsRunning()) << daemon_->Log();
    Api(*daemon_).List();
  }

  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // Begins a call of any path with any message, as a client of one's own may make it. All calls share one
  // connection: making one takes a starved machine seconds.
  std::future<grpc::Status> Begin(const std::string& path, const std::string& token,
                                  const std::string& message = "", const Metadata& metadata = {}) {
    struct Open {
      grpc::ClientContext context;
      grpc::ByteBuffer request, response;
      std::promise<grpc::Status> ended;
    };
    auto open = std::make_shared<Open>();
    open->context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(4));
    // Daemons are killed and started again.
    open->context.set_wait_for_ready(true);
    if (!token.empty()) open->context.AddMetadata("authorization", "Bearer " + token);
    for (const auto& [name, value] : metadata) open->context.AddMetadata(name, value);
    grpc::Slice slice(message);
    open->request = grpc::ByteBuffer(&slice, 1);
    std::future<grpc::Status> status = open->ended.get_future();
    // A context holds its channel, and gRPC 1.51 crashes if its own thread is the last to release a channel.
    // So the context ends before the test's thread learns of the call's end.
    auto end = [open](grpc::Status status) mutable {
      std::promise<grpc::Status> ended = std::move(open->ended);
      open.reset();
      ended.set_value(std::move(status));
    };
    grpc::GenericStub(channel_).UnaryCall(&open->context, path, grpc::StubOptions(), &open->request,
                                          &open->response, end);
    return status;
  }
  grpc::Status Call(const std::string& path, const std::string& token, const std::string& message = "",
                    const Metadata& metadata = {}) {
    return Begin(path, token, message, metadata).get();
  }

  std::string MakeToken(const std::string& user, v1::TokenRole role,
                        absl::Duration expires = absl::ZeroDuration()) {
    v1::CreateTokenRequest request;
    request.mutable_token()->set_user(user);
    request.mutable_token()->set_role(role);
    if (expires > absl::ZeroDuration()) {
      request.mutable_token()->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + expires));
    }
    grpc::ClientContext context;
    daemon_->Prepare(context);
    v1::CreateTokenResponse response;
    const grpc::Status status =
        v1::DaemonService::NewStub(daemon_->NewChannel())->CreateToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.secret();
  }

  std::string AuditLog() const { return ReadFile(scratch_.File("state/audit.log")); }

  ScratchFolder scratch_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(AttacksTest, WithoutATokenNothingAnswersButHealth) {
  std::vector<std::pair<std::string, std::future<grpc::Status>>> calls;
  for (const char* const path : {"/tandem.v1.JobService/ListJobs", "/tandem.v1.JobService/CreateJob",
                                 "/tandem.v1.DaemonService/Shutdown", "/tandem.v1.DaemonService/CreateToken",
                                 "/tandem.v1.DatasetService/UploadFiles", "/tandem.v1.JobService/WatchJobs",
                                 "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                 "/no.such.Service/Method", "/", "/../token"}) {
    for (const std::string& token : {std::string(), std::string(43, 'A'), daemon_->Token() + "x"}) {
      calls.emplace_back(path, Begin(path, token));
    }
  }
  for (auto& [path, status] : calls) {
    EXPECT_EQ(status.get().error_code(), StatusCode::UNAUTHENTICATED) << path;
  }
  EXPECT_EQ(CheckHealth(*daemon_), 1);
  // A watcher would keep its stream; a name that begins alike is no health check.
  EXPECT_EQ(Call("/grpc.health.v1.Health/Watch", "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call("/grpc.health.v1.HealthX/Check", "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(
      WaitUntil([this] { return AuditLog().find("\"code\":\"UNAUTHENTICATED\"") != std::string::npos; },
                absl::Seconds(30)));
  EXPECT_EQ(AuditLog().find(daemon_->Token()), std::string::npos);
  EXPECT_EQ(daemon_->Log().find(daemon_->Token()), std::string::npos);
  struct stat info = {};
  ASSERT_EQ(stat(scratch_.File("state/audit.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
}

TEST_F(AttacksTest, AnothersJobMayBeSeenAndNotTouched) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  const std::string bob = MakeToken("bob", v1::TOKEN_ROLE_SUBMITTER);
  const std::string vic = MakeToken("vic", v1::TOKEN_ROLE_VIEWER);
  const std::string job = Api(*daemon_, ann).Create(LongJob(1'000'000)).name();
  for (const std::string& token : {bob, vic}) {
    Api other(*daemon_, token);
    EXPECT_EQ(other.Get(job).name(), job);
    EXPECT_EQ(other.TryCancel(job).error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(other.TryPause(job).error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(other.TrySetPriority(job, -5).error_code(), StatusCode::PERMISSION_DENIED);
    v1::DeleteJobRequest request;
    request.set_name(job);
    EXPECT_EQ(Call("/tandem.v1.JobService/DeleteJob", token, request.SerializeAsString()).error_code(),
              StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(Call("/tandem.v1.DaemonService/Shutdown", token).error_code(), StatusCode::PERMISSION_DENIED);
  }
  // A viewer cannot even make one's own.
  EXPECT_EQ(Api(*daemon_, vic).TryCreate(SmallJob({})).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(IsTerminal(Api(*daemon_).Get(job).state()));
  Api(*daemon_, ann).Cancel(job);
}

TEST_F(AttacksTest, NamesLeadOutOfNoFolder) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  const v1::Job job = Api(*daemon_, ann).Create(SmallJob({}));
  Api(*daemon_, ann).WaitFor(job.name(), v1::JOB_STATE_SUCCEEDED);
  for (const std::string& name :
       {std::string("jobs/../token"), std::string("jobs/.."), std::string("jobs/"),
        job.name() + "/../../token", std::string("jobs/..\\token"), std::string("jobs/%2e%2e"),
        std::string("/etc/passwd"), std::string("jobs/a\0b", 8)}) {
    v1::ReadLogRequest log;
    log.set_name(name);
    EXPECT_THAT(Call("/tandem.v1.JobService/ReadLog", ann, log.SerializeAsString()).error_code(),
                AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND))
        << name;
    v1::DeleteJobRequest remove;
    remove.set_name(name);
    EXPECT_THAT(Call("/tandem.v1.JobService/DeleteJob", ann, remove.SerializeAsString()).error_code(),
                AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND))
        << name;
  }
  for (const char* const artifact :
       {"../../token", "../../tandem.db", "/etc/passwd", "..", "", "worker.log/../../../token"}) {
    v1::ReadArtifactRequest read;
    read.set_name(job.name());
    read.set_artifact(artifact);
    EXPECT_THAT(Call("/tandem.v1.JobService/ReadArtifact", ann, read.SerializeAsString()).error_code(),
                AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND))
        << artifact;
  }
  const auto datasets = v1::DatasetService::NewStub(daemon_->NewChannel());
  v1::CreateUploadRequest begin;
  begin.mutable_upload()->set_manifest_sha256(std::string(32, 'm'));
  begin.mutable_upload()->set_files(1);
  begin.mutable_upload()->set_bytes(1);
  v1::Upload upload;
  grpc::ClientContext context;
  daemon_->Prepare(context, absl::Seconds(60), ann);
  const grpc::Status begun = datasets->CreateUpload(&context, begin, &upload);
  ASSERT_TRUE(begun.ok()) << begun.error_message();
  for (const char* const path : {"../token", "/etc/cron.d/x", "a/../../token", "..", "a//b", "./a"}) {
    v1::UploadFilesRequest piece;
    piece.set_name(upload.name());
    piece.mutable_file()->set_path(path);
    piece.mutable_file()->set_size(1);
    piece.mutable_file()->set_sha256(std::string(32, 'a'));
    piece.set_data("x");
    EXPECT_EQ(Call("/tandem.v1.DatasetService/UploadFiles", ann, piece.SerializeAsString()).error_code(),
              StatusCode::INVALID_ARGUMENT)
        << path;
  }
  EXPECT_TRUE(std::filesystem::exists(daemon_->TokenPath()));
}

TEST_F(AttacksTest, ALinkThatIsSwappedAfterTheCheckLeadsNowhere) {
  const std::string inside = scratch_.Write("data/images", IdxFile({64, 8, 8}, 256));
  scratch_.Write("data/labels", IdxFile({64}, 4));
  const std::string outside = scratch_.Write("outside", IdxFile({64, 8, 8}, 256));
  const std::string link = scratch_.File("data/link");
  std::filesystem::create_symlink(inside, link);

  Cli cli(scratch_);
  cli.Use(*daemon_);
  // Both devices are out of service, so the job waits between its check and its start.
  ASSERT_EQ(cli.Run({"devices", "drain", "cpu:0"}).exit_code, 0);
  ASSERT_EQ(cli.Run({"devices", "drain", "cpu:1"}).exit_code, 0);
  v1::JobSpec spec = SmallJob({});
  v1::IdxSource& idx = *spec.mutable_dataset()->mutable_idx();
  idx.set_train_images("link");
  idx.set_train_labels("labels");
  idx.set_classes(4);
  Api api(*daemon_);
  const std::string job = api.Create(spec).name();
  ASSERT_FALSE(job.empty());
  std::filesystem::remove(link);
  std::filesystem::create_symlink(outside, link);
  ASSERT_EQ(cli.Run({"devices", "resume", "cpu:0"}).exit_code, 0);
  const v1::Job ended = api.WaitFor(job, v1::JOB_STATE_FAILED);
  EXPECT_EQ(ended.state(), v1::JOB_STATE_FAILED) << ended.ShortDebugString();
  EXPECT_THAT(ended.message(), HasSubstr("data folder"));
}

TEST_F(AttacksTest, AHeaderThatAnnouncesTooMuchTakesNoMemory) {
  // A header that announces 2^44 bytes, and nothing behind it.
  std::string header(16, '\0');
  header[2] = 8;
  header[3] = 3;
  header[5] = '\x10';
  header[10] = header[14] = '\x10';
  scratch_.Write("data/images", header + std::string(1 << 16, '\0'));
  scratch_.Write("data/labels", IdxFile({64}, 4));
  const int64_t before = HoldingsOf(daemon_->pid()).memory_bytes;
  v1::JobSpec spec = SmallJob({});
  spec.mutable_dataset()->mutable_idx()->set_train_images("images");
  spec.mutable_dataset()->mutable_idx()->set_train_labels("labels");
  spec.mutable_dataset()->mutable_idx()->set_classes(4);
  EXPECT_EQ(Api(*daemon_).TryCreate(spec).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_LT(HoldingsOf(daemon_->pid()).memory_bytes - before, int64_t{64} << 20);
}

TEST_F(AttacksTest, GiantTensorsAreRefusedBeforeTheyAreMade) {
  const int64_t before = HoldingsOf(daemon_->pid()).memory_bytes;
  for (const int64_t units : {int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62}) {
    v1::JobSpec spec = SmallJob({});
    for (v1::Layer& layer : *spec.mutable_model()->mutable_layers()) {
      if (layer.has_dense()) layer.mutable_dense()->set_units(units);
    }
    EXPECT_THAT(
        Api(*daemon_).TryCreate(spec).error_code(),
        AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::RESOURCE_EXHAUSTED, StatusCode::FAILED_PRECONDITION));
  }
  // More than a request may have.
  EXPECT_EQ(
      Call("/tandem.v1.JobService/CreateJob", daemon_->Token(), std::string(17 << 20, '\0')).error_code(),
      StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(HoldingsOf(daemon_->pid()).memory_bytes - before, int64_t{128} << 20);
}

TEST_F(AttacksTest, AFloodOfHeadersHurtsOnlyItsOwnConnection) {
  // A header that is too large, from a client with a token and from a client without.
  for (const std::string& token : {daemon_->Token(), std::string()}) {
    const grpc::Status status =
        Call("/tandem.v1.JobService/ListJobs", token, "", {{"x-flood", std::string(1 << 20, 'x')}});
    EXPECT_FALSE(status.ok());
  }
  // Headers without an end, in one frame after the other, from a client without a token. gRPC 1.51 keeps all
  // received bytes until the connection ends, so a flood costs at most the memory of its own bytes. This test
  // sends 16 MiB at a time, and at least 256 MiB in all.
  // A literal without indexing: name "x-f", 8,000 bytes of value (RFC 7541, 6.2.2).
  std::string field("\x00\x03x-f", 5);
  field += '\x7f';
  field += static_cast<char>(((8000 - 127) & 0x7f) | 0x80);
  field += static_cast<char>((8000 - 127) >> 7);
  field += std::string(8000, 'v');
  const std::string more = Frame(9, 0, 1, field);
  const auto flood = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      RawConnection connection(daemon_->address());
      ASSERT_TRUE(connection.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "")));
      ASSERT_TRUE(connection.Send(Frame(1, 0, 1, field)));
      for (int i = 0; i < 2048 && connection.Send(more); ++i) {
      }
      // Meanwhile others are served.
      Api(*daemon_).List();
    }
  };
  // An allocator keeps memory of floods for each of its arenas and threads, and uses it again for the next
  // flood. A leak would show as growth with each flood, without an end.
  flood(4);
  int64_t grown = 0;
  bool settled = false;
  for (int i = 0; i < 4 && !settled; ++i) {
    const int64_t before = HoldingsOf(daemon_->pid()).memory_bytes;
    flood(12);
    // The daemon notices the end of a connection only when it reaches the connection's event.
    settled = WaitUntil(
        [&] {
          grown = HoldingsOf(daemon_->pid()).memory_bytes - before;
          return grown < int64_t{96} << 20;
        },
        absl::Seconds(20));
  }
  EXPECT_TRUE(settled) << grown << " bytes more after another 192 MiB, each time";
  // Connections that say nothing, or nonsense.
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(std::make_unique<RawConnection>(daemon_->address()));
    if (i % 2 == 1) idle.back()->Send(std::string(1000, static_cast<char>(i)));
  }
  const absl::Time start = absl::Now();
  Api(*daemon_).List();
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
}

TEST_F(AttacksTest, ARequestIdOfAnotherGivesNothingOfTheirs) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  const std::string bob = MakeToken("bob", v1::TOKEN_ROLE_SUBMITTER);
  v1::CreateJobRequest request;
  *request.mutable_spec() = SmallJob({});
  request.set_request_id("d2d1cd04-0a3b-4d4c-9f4a-6a4ba3f4b9d1");
  const std::string job = Api(*daemon_, ann).Create(request.spec(), request.request_id()).name();
  EXPECT_EQ(Api(*daemon_, ann).Create(request.spec(), request.request_id()).name(), job);
  const grpc::Status replayed = Call("/tandem.v1.JobService/CreateJob", bob, request.SerializeAsString());
  EXPECT_EQ(replayed.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(replayed.error_message().find(job), std::string::npos);
  EXPECT_EQ(Api(*daemon_).List().size(), 1);
  Api(*daemon_, ann).WaitFor(job, v1::JOB_STATE_SUCCEEDED);
}

TEST_F(AttacksTest, RevokedAndExpiredTokensStaySoAcrossRestarts) {
  const std::string ann = MakeToken("ann", v1::TOKEN_ROLE_SUBMITTER);
  const std::string exp = MakeToken("exp", v1::TOKEN_ROLE_SUBMITTER, absl::Seconds(4));
  auto jobs = v1::JobService::NewStub(daemon_->NewChannel());
  const auto watch = [&](grpc::ClientContext& context, const std::string& token) {
    daemon_->Prepare(context, absl::Seconds(60), token);
    auto reader = jobs->WatchJobs(&context, v1::WatchJobsRequest());
    reader->WaitForInitialMetadata();
    return reader;
  };
  grpc::ClientContext ann_context, exp_context;
  auto ann_stream = watch(ann_context, ann);
  auto exp_stream = watch(exp_context, exp);
  v1::RevokeTokenRequest revoke;
  revoke.set_name("tokens/ann");
  Call("/tandem.v1.DaemonService/RevokeToken", daemon_->Token(), revoke.SerializeAsString());
  const absl::Time revoked = absl::Now();
  v1::WatchJobsResponse response;
  EXPECT_FALSE(ann_stream->Read(&response));
  EXPECT_EQ(ann_stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  // Without the revocation the stream would last a minute.
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(40));
  EXPECT_FALSE(exp_stream->Read(&response));
  EXPECT_EQ(exp_stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  for (int restart = 0; restart < 2; ++restart) {
    const grpc::Status expired = Call("/tandem.v1.JobService/ListJobs", exp);
    EXPECT_EQ(expired.error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(expired.error_message(), HasSubstr("expired at"));
    EXPECT_EQ(Call("/tandem.v1.JobService/ListJobs", ann).error_code(), StatusCode::UNAUTHENTICATED);
    daemon_->Kill();
    ASSERT_TRUE(daemon_->Start().ok()) << daemon_->Log();
  }
}

// A daemon with TLS that asks clients for certificates, and the command line as its client.
TEST_F(AttacksTest, ATlsPortTalksToCertificatesAlone) {
  TestAuthority servers("servers"), clients("clients"), strangers("clients");
  servers.Write(scratch_.File("servers.pem"));
  clients.Write(scratch_.File("clients.pem"));
  servers.Issue("localhost", scratch_.File("server.pem"), scratch_.File("server.key"));
  clients.Issue("ann", scratch_.File("ann.pem"), scratch_.File("ann.key"));
  strangers.Issue("eve", scratch_.File("eve.pem"), scratch_.File("eve.key"));
  DaemonProcess daemon(
      {.state_folder = scratch_.File("tls-state"),
       .extra_arguments = {"--tls-cert", scratch_.File("server.pem"), "--tls-key",
                           scratch_.File("server.key"), "--tls-client-ca", scratch_.File("clients.pem")}});
  ASSERT_TRUE(daemon.Launch().ok());
  const std::string address_file = scratch_.File("tls-state/address");
  ASSERT_TRUE(WaitUntil([&] { return !ReadFile(address_file).empty(); }, absl::Seconds(60))) << daemon.Log();
  const std::string address(absl::StripAsciiWhitespace(ReadFile(address_file)));

  Cli cli(scratch_);
  const auto list = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> arguments = {
        "--address", address, "--token-file", scratch_.File("tls-state/token"), "--timeout", "20s"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    arguments.push_back("list");
    return cli.Run(arguments);
  };
  const auto with = [&](const std::string& who, const std::string& authority) {
    return list({"--tls-ca", scratch_.File(authority + ".pem"), "--tls-cert", scratch_.File(who + ".pem"),
                 "--tls-key", scratch_.File(who + ".key")});
  };
  EXPECT_EQ(with("ann", "servers").exit_code, 0) << with("ann", "servers");
  EXPECT_NE(with("eve", "servers").exit_code, 0);
  EXPECT_NE(list({"--tls-ca", scratch_.File("servers.pem")}).exit_code, 0);
  EXPECT_NE(list({"--plaintext"}).exit_code, 0);
  // Plain text gets no byte of an answer, let alone a page.
  {
    RawConnection plain(address);
    plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(plain.ReadToEnd().find("HTTP"), std::string::npos);
    RawConnection preface(address);
    preface.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, ""));
    // At most TLS' own alert, seven bytes.
    EXPECT_LE(preface.ReadToEnd().size(), 7);
  }
  // The certificate is renewed by another authority, without a restart; then a broken one changes nothing.
  TestAuthority renewed("renewed");
  renewed.Write(scratch_.File("renewed.pem"));
  renewed.Issue("localhost", scratch_.File("server.pem"), scratch_.File("server.key"));
  EXPECT_TRUE(WaitUntil([&] { return with("ann", "renewed").exit_code == 0; }, absl::Seconds(60)))
      << daemon.Log();
  std::ofstream(scratch_.File("server.pem")) << "broken\n";
  EXPECT_TRUE(WaitUntil([&] { return daemon.Log().find("the old ones stay in use") != std::string::npos; },
                        absl::Seconds(60)));
  EXPECT_EQ(with("ann", "renewed").exit_code, 0) << daemon.Log();
  EXPECT_EQ(daemon.Terminate(), 0);
}

}  // namespace
}  // namespace tandem::testing
