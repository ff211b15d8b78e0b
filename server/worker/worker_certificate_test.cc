// Tests of the daemon's certificate for workers, with a real server and the worker's end of the connection.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/clusters/worker_listener.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"
#include "server/worker/event_reporter.h"
#include "tandem/internal/v1/worker.grpc.pb.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

class WorkerCertificateTest : public testing::Test {
 protected:
  WorkerCertificateTest() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
    const auto own = LoadWorkerCertificate(own_.path());
    EXPECT_TRUE(own.ok()) << own.status();
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({own->key, own->certificate});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~WorkerCertificateTest() override {
    server_->Shutdown();
    server_.reset();
    spdlog::set_default_logger(before_);
  }

  // Returns the first line with `part`, or else the last line, of the log of a worker that expects the
  // certificate of this state folder.
  std::string LineOfWorker(const std::string& state_folder, const std::string& part) {
    const TemporaryFolder folder;
    EventReporter::Options options;
    options.job_id = "job";
    options.attempt = 1;
    options.daemon_target = absl::StrCat("ipv4:127.0.0.1:", port_);
    options.daemon_certificate = LoadWorkerCertificate(state_folder)->certificate;
    options.spool_path = folder.path() + "/spool";
    options.on_cancel = [] {};
    options.on_dismissed = [](absl::string_view) {};
    options.first_complaint = absl::Seconds(1);
    options.complaint_interval = absl::Seconds(1);
    const auto reporter = EventReporter::Create(options);
    EXPECT_TRUE(reporter.ok()) << reporter.status();
    std::string last;
    Eventually([&] {
      const std::vector<std::string> lines = sink_->last_formatted();
      if (!lines.empty()) last = lines.back();
      return absl::StrContains(last, part);
    });
    return last;
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
  const TemporaryFolder own_, other_;
  // Gives no answer to a worker.
  internal::v1::WorkerService::Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(WorkerCertificateTest, AWorkerNamesAWrongCertificate) {
  const std::string line = LineOfWorker(other_.path(), "certificate");
  EXPECT_TRUE(absl::StrContains(line, absl::StrCat("cannot reach the daemon at 127.0.0.1:", port_,
                                                   ": its certificate is not the certificate of this "
                                                   "attempt's start, no answer for ")))
      << line;
  EXPECT_TRUE(absl::StrContains(line, "; put worker-listen.pem and worker-listen.key of that time back"))
      << line;
}

TEST_F(WorkerCertificateTest, AWorkerDoesNotBlameARightCertificate) {
  const std::string line = LineOfWorker(own_.path(), "cannot reach");
  EXPECT_TRUE(absl::StrContains(line, "cannot reach the daemon at ")) << line;
  EXPECT_FALSE(absl::StrContains(line, "certificate")) << line;
}

}  // namespace
}  // namespace tandem
