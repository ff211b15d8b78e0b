// Streams of the client library whose daemon stops and returns after some seconds. A TLS handshake takes
// several rounds, and each needs a waiting thread.
#include <grpcpp/security/server_credentials.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/client.h"
#include "client/lib/fake_daemon.h"
#include "gtest/gtest.h"
#include "server/auth/test_certificates.h"
#include "server/store/temporary_folder.h"

namespace tandem::client {
namespace {

// Long enough for a client's waits between attempts to have grown.
constexpr absl::Duration kAway = absl::Seconds(5);
constexpr absl::Duration kLongestReturn = absl::Seconds(2);

enum Stream { kWatchJob, kWatchJobs, kReadLog, kReadArtifact, kUpload, kFollowSweep, kStreams };
constexpr const char* kNames[kStreams] = {"WatchJob",     "WatchJobs", "ReadLog",
                                          "ReadArtifact", "Upload",    "FollowSweep"};

v1::JobEvent Event(int64_t sequence, bool terminal) {
  v1::JobEvent event;
  event.set_job("jobs/a");
  event.set_sequence(sequence);
  event.set_terminal(terminal);
  return event;
}

class StreamReconnectTest : public ::testing::TestWithParam<bool> {
 protected:
  bool tls() const { return GetParam(); }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Read(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(Path(name)).rdbuf();
    return content.str();
  }

  void SetUp() override {
    authority_.Issue("gpu-box", Path("server.pem"), Path("server.key"));
    authority_.Write(Path("ca.pem"));
    std::ofstream(Path("file")) << "abc";
  }

  std::unique_ptr<FakeDaemon> MakeDaemon(int port, bool second) {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (tls()) {
      grpc::SslServerCredentialsOptions options;
      options.pem_key_cert_pairs.push_back({Read("server.key"), Read("server.pem")});
      credentials = grpc::SslServerCredentials(options);
    }
    return std::make_unique<FakeDaemon>(port, credentials,
                                        [=, this](FakeDaemon& daemon) { Answer(daemon, second); });
  }

  std::unique_ptr<Client> Connect() const {
    ConnectionOptions options;
    options.address = daemon_->address();
    if (tls()) options.tls_ca_file = Path("ca.pem");
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // A call of the first daemon: it lasts until the daemon ends.
  grpc::Status Hold(Stream stream) {
    began_[stream] = true;
    while (!ends_) absl::SleepFor(absl::Milliseconds(1));
    return {grpc::StatusCode::UNAVAILABLE, "the daemon ends"};
  }
  // A call of the second one, which ends the stream.
  void Return(Stream stream) { returned_[stream] = absl::Now(); }

  void Answer(FakeDaemon& daemon, bool second) {
    daemon.watch_job = [=, this](const v1::WatchJobRequest& request, grpc::ServerContext*,
                                 grpc::ServerWriter<v1::JobEvent>* writer) {
      if (second) Return(kWatchJob);
      writer->Write(Event(request.after_sequence() + 1, second));
      return second ? grpc::Status::OK : Hold(kWatchJob);
    };
    daemon.watch_jobs = [=, this](const v1::WatchJobsRequest& request, grpc::ServerContext*,
                                  grpc::ServerWriter<v1::WatchJobsResponse>* writer) {
      if (second) Return(kWatchJobs);
      v1::WatchJobsResponse change;
      change.set_cursor(request.after_cursor() + 1);
      writer->Write(change);
      return second ? grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "enough") : Hold(kWatchJobs);
    };
    daemon.read_log = [=, this](const v1::ReadLogRequest& request,
                                grpc::ServerWriter<v1::ReadLogResponse>* writer) {
      if (second) Return(kReadLog);
      v1::ReadLogResponse piece;
      piece.set_offset(request.offset());
      piece.set_data("line\n");
      writer->Write(piece);
      return second ? grpc::Status::OK : Hold(kReadLog);
    };
    daemon.read_artifact = [=, this](const v1::ReadArtifactRequest& request,
                                     grpc::ServerWriter<v1::ReadArtifactResponse>* writer) {
      if (second) Return(kReadArtifact);
      v1::ReadArtifactResponse piece;
      piece.set_offset(request.offset());
      piece.set_data("part ");
      writer->Write(piece);
      return second ? grpc::Status::OK : Hold(kReadArtifact);
    };
    daemon.create_upload = [=, this](const v1::CreateUploadRequest& request, v1::Upload* upload) {
      if (second) Return(kUpload);
      *upload = request.upload();
      upload->set_name("uploads/a");
      if (second) upload->set_files_received(upload->files());
      return grpc::Status::OK;
    };
    daemon.upload_files = [this](grpc::ServerReader<v1::UploadFilesRequest>*, v1::Upload*) {
      return Hold(kUpload);
    };
    daemon.get_sweep = [=, this](const v1::GetSweepRequest& request, v1::Sweep* sweep) {
      if (second) Return(kFollowSweep);
      began_[kFollowSweep] = true;
      sweep->set_name(request.name());
      sweep->set_state(second ? v1::SWEEP_STATE_SUCCEEDED : v1::SWEEP_STATE_ACTIVE);
      return grpc::Status::OK;
    };
  }

  // Runs a stream to its end.
  void Run(Client& client, Stream stream) {
    StreamObserver observer;
    switch (stream) {
      case kWatchJob: {
        std::vector<int64_t> sequences;
        EXPECT_TRUE(client
                        .WatchJob("jobs/a", 0, observer,
                                  [&](const v1::JobEvent& event) { sequences.push_back(event.sequence()); })
                        .ok());
        EXPECT_EQ(sequences, std::vector<int64_t>({1, 2}));
        break;
      }
      case kWatchJobs: {
        std::vector<int64_t> cursors;
        EXPECT_TRUE(absl::IsPermissionDenied(client.WatchJobs(
            0, observer, [&](const v1::WatchJobsResponse& change) { cursors.push_back(change.cursor()); })));
        EXPECT_EQ(cursors, std::vector<int64_t>({1, 2}));
        break;
      }
      case kReadLog: {
        std::string log;
        EXPECT_TRUE(client
                        .ReadLog("jobs/a", /*rank=*/0, 0, /*follow=*/true, observer,
                                 [&](absl::string_view data) {
                                   log.append(data.data(), data.size());
                                   return absl::OkStatus();
                                 })
                        .ok());
        EXPECT_EQ(log, "line\nline\n");
        break;
      }
      case kReadArtifact: {
        std::string content;
        EXPECT_TRUE(client
                        .ReadArtifact("jobs/a", "model", 0, observer,
                                      [&](const v1::ReadArtifactResponse& piece) {
                                        content += piece.data();
                                        return absl::OkStatus();
                                      })
                        .ok());
        EXPECT_EQ(content, "part part ");
        break;
      }
      case kUpload: {
        UploadPlan plan;
        plan.files.push_back(
            {.path = "file", .local = Path("file"), .size = 3, .sha256 = std::string(32, 'x')});
        plan.bytes = 3;
        plan.manifest_sha256 = std::string(32, 'y');
        const absl::StatusOr<v1::Upload> upload = client.Upload(plan, observer, [](int64_t) {});
        EXPECT_TRUE(upload.ok()) << upload.status();
        break;
      }
      case kFollowSweep: {
        const absl::StatusOr<v1::Sweep> sweep =
            client.FollowSweep("sweeps/a", observer, [](const v1::Sweep&) {});
        EXPECT_TRUE(sweep.ok()) << sweep.status();
        break;
      }
      case kStreams:
        break;
    }
  }

  TemporaryFolder folder_;
  TestAuthority authority_{"authority"};
  std::unique_ptr<FakeDaemon> daemon_;
  std::array<std::atomic<bool>, kStreams> began_ = {};
  std::atomic<bool> ends_ = false;
  // The time at which each stream is back.
  std::array<absl::Time, kStreams> returned_;
};

TEST_P(StreamReconnectTest, EachStreamIsBackSoonAfterItsDaemon) {
  returned_.fill(absl::InfiniteFuture());
  daemon_ = MakeDaemon(0, /*second=*/false);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int stream = 0; stream < kStreams; ++stream) clients.push_back(Connect());
  for (int stream = 0; stream < kStreams; ++stream) {
    threads.emplace_back([this, stream, &clients] { Run(*clients[stream], static_cast<Stream>(stream)); });
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    while (!began_[stream]) absl::SleepFor(absl::Milliseconds(1));
  }
  const int port = daemon_->port();
  ends_ = true;
  daemon_.reset();
  absl::SleepFor(kAway);
  daemon_ = MakeDaemon(port, /*second=*/true);
  // The daemon serves.
  const absl::Time back = absl::Now();
  for (std::thread& thread : threads) thread.join();
  for (int stream = 0; stream < kStreams; ++stream) {
    EXPECT_LE(returned_[stream] - back, kLongestReturn) << kNames[stream];
  }
}

INSTANTIATE_TEST_SUITE_P(OverPlainTextAndTls, StreamReconnectTest, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Tls" : "PlainText"; });

}  // namespace
}  // namespace tandem::client
