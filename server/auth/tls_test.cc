// Tests TLS over real sockets: access with several certificates, and files that change meanwhile.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "server/auth/certificate_validity.h"
#include "server/auth/server_credentials.h"
#include "server/auth/test_certificates.h"
#include "server/auth/tls_reloader.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kToken[] = "secret-token-0123456789";

// Answers every call with an empty response.
class Echo : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    class Reactor : public grpc::ServerGenericBidiReactor {
     public:
      Reactor() { Finish(grpc::Status::OK); }
      void OnDone() override { delete this; }
    };
    return new Reactor;
  }
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    servers_.Write(File("servers.pem"));
    clients_.Write(File("clients.pem"));
    servers_.Issue("localhost", File("server.pem"), File("server.key"));
    clients_.Issue("ann", File("ann.pem"), File("ann.key"));
  }
  ~TlsTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }
  TlsFiles Files(bool ask_clients) const {
    return {File("server.pem"), File("server.key"), ask_clients ? File("clients.pem") : ""};
  }

  void Serve(bool ask_clients) {
    auto files = TlsReloader::Start(Files(ask_clients), {.interval = absl::Milliseconds(20)});
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    const auto authenticator = std::make_shared<const Authenticator>(kToken);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsCredentials(files_, authenticator), &port_);
    builder.RegisterCallbackGenericService(&echo_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // Makes a call on a new connection. `identity` "": no certificate. `authority`: the authority that the
  // client trusts.
  grpc::Status Call(const std::string& identity, const std::string& authority = "servers",
                    const std::string& token = kToken) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ContentOrEmpty(File(authority + ".pem"));
    if (!identity.empty()) {
      options.pem_cert_chain = ContentOrEmpty(File(identity + ".pem"));
      options.pem_private_key = ContentOrEmpty(File(identity + ".key"));
    }
    return CallOn(grpc::SslCredentials(options), token);
  }
  grpc::Status CallOn(const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                      const std::string& token = kToken) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.AddMetadata("authorization", "Bearer " + token);
    grpc::Slice empty("", 0);
    const grpc::ByteBuffer request(&empty, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, "/tandem.v1.JobService/GetJob", grpc::StubOptions(), &request, &response,
                   [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }
  // Returns true if the call reached the service. The service returns no message, and a unary call reports
  // this as an error.
  bool GetsIn(const grpc::Status& status) { return status.error_code() != StatusCode::UNAVAILABLE; }

  template <typename Condition>
  bool Await(Condition condition) {
    return Eventually(condition);
  }

  TemporaryFolder folder_;
  TestAuthority servers_{"servers"};
  TestAuthority clients_{"clients"};
  std::shared_ptr<TlsReloader> files_;
  Echo echo_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(TlsTest, WithoutAnAuthorityOfClientsTheyNeedNoCertificate) {
  Serve(/*ask_clients=*/false);
  EXPECT_TRUE(GetsIn(Call("")));
  EXPECT_TRUE(GetsIn(Call("ann")));
  EXPECT_EQ(Call("", "servers", "wrong").error_code(), StatusCode::UNAUTHENTICATED);
  // A client that trusts another authority refuses the server.
  EXPECT_FALSE(GetsIn(Call("", "clients")));
}

TEST_F(TlsTest, PlainTextToATlsPortGetsNothing) {
  Serve(/*ask_clients=*/false);
  EXPECT_EQ(CallOn(grpc::InsecureChannelCredentials()).error_code(), StatusCode::UNAVAILABLE);
  // The server still works.
  EXPECT_TRUE(GetsIn(Call("")));
}

TEST_F(TlsTest, ClientsNeedACertificateOfTheRightAuthorityAndAToken) {
  Serve(/*ask_clients=*/true);
  EXPECT_TRUE(GetsIn(Call("ann")));
  EXPECT_FALSE(GetsIn(Call("")));
  TestAuthority others("clients");
  others.Issue("eve", File("eve.pem"), File("eve.key"));
  EXPECT_FALSE(GetsIn(Call("eve")));
  EXPECT_FALSE(GetsIn(CallOn(grpc::InsecureChannelCredentials())));
  // The certificate does not replace the token.
  EXPECT_EQ(Call("ann", "servers", "wrong").error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsTest, NewConnectionsHaveWhatChangedOnTheDisk) {
  Serve(/*ask_clients=*/true);
  ASSERT_TRUE(GetsIn(Call("ann")));
  // A new authority for servers: a client that trusts only the old authority refuses the new certificate.
  TestAuthority renewed("renewed");
  renewed.Write(File("renewed.pem"));
  renewed.Issue("localhost", File("server.pem"), File("server.key"));
  ASSERT_TRUE(Await([this] { return files_->state().reloads == 1; }));
  EXPECT_FALSE(GetsIn(Call("ann")));
  EXPECT_TRUE(GetsIn(Call("ann", "renewed")));
  // A new authority for clients.
  TestAuthority other_clients("other clients");
  other_clients.Write(File("clients.pem"));
  other_clients.Issue("bob", File("bob.pem"), File("bob.key"));
  ASSERT_TRUE(Await([this] { return files_->state().reloads == 2; }));
  EXPECT_FALSE(GetsIn(Call("ann", "renewed")));
  EXPECT_TRUE(GetsIn(Call("bob", "renewed")));
}

TEST_F(TlsTest, ABrokenFileKeepsTheOldOneUntilItIsMended) {
  Serve(/*ask_clients=*/false);
  const absl::Time valid_until = files_->state().valid_until;
  EXPECT_GT(valid_until, absl::Now());
  const std::string good = ContentOrEmpty(File("server.pem"));
  std::ofstream(File("server.pem")) << good.substr(0, good.size() / 2);
  ASSERT_TRUE(Await([this] { return files_->state().failing; }));
  EXPECT_TRUE(GetsIn(Call("")));
  EXPECT_EQ(files_->state().valid_until, valid_until);
  // The key of another certificate, and no file at all.
  std::ofstream(File("server.pem")) << good;
  ASSERT_TRUE(Await([this] { return !files_->state().failing; }));
  servers_.Issue("localhost", File("other.pem"), File("server.key"));
  ASSERT_TRUE(Await([this] { return files_->state().failing; }));
  EXPECT_TRUE(GetsIn(Call("")));
  std::filesystem::remove(File("server.pem"));
  ASSERT_TRUE(Await([this] { return files_->state().failures >= 3; }));
  EXPECT_TRUE(GetsIn(Call("")));
  std::filesystem::rename(File("other.pem"), File("server.pem"));
  ASSERT_TRUE(Await([this] { return !files_->state().failing; }));
  EXPECT_TRUE(GetsIn(Call("")));
  EXPECT_EQ(files_->state().reloads, 2);
}

// For example too many open files: afterwards the unchanged files are valid.
TEST_F(TlsTest, WhatCouldNotBeReadForAPassingReasonIsReadAgain) {
  Serve(/*ask_clients=*/false);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  servers_.Issue("localhost", File("server.pem"), File("server.key"), absl::Hours(48));
  const rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int64_t reloads = files_->state().reloads;
  std::filesystem::last_write_time(File("server.pem"), std::filesystem::file_time_type::clock::now());
  const bool has_failed = Await([this] { return files_->state().failing; });
  // Logged once.
  absl::SleepFor(absl::Milliseconds(100));
  const int64_t failures = files_->state().failures;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(has_failed);
  EXPECT_EQ(failures, 1);
  EXPECT_TRUE(Await([&] { return !files_->state().failing && files_->state().reloads > reloads; }));
}

// Counts log lines with a certain text.
class CountingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CountingSink(std::string part) : part_(std::move(part)) {}
  std::atomic<int> lines = 0;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (absl::StrContains(absl::string_view(message.payload.data(), message.payload.size()), part_)) ++lines;
  }
  void flush_() override {}
  const std::string part_;
};

// Logged at the reading, and every day.
TEST_F(TlsTest, ACertificateThatIsRefusedIsToldToTheLog) {
  servers_.Issue("localhost", File("server.pem"), File("server.key"), -absl::Hours(48));
  const auto sink = std::make_shared<CountingSink>("the TLS certificate expired on ");
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("log", sink));
  auto reloader = TlsReloader::Start({File("server.pem"), File("server.key"), ""},
                                     {.interval = absl::Milliseconds(1), .reminder = absl::Milliseconds(1)});
  EXPECT_TRUE(reloader.ok()) << reloader.status();
  EXPECT_TRUE(Await([&sink] { return sink->lines >= 3; }));
  reloader = absl::UnknownError("ended");
  spdlog::set_default_logger(before);
}

TEST(CertificateValidityTest, TroubleIsToldInTime) {
  const absl::Time now = absl::FromUnixSeconds(1800000000);
  const absl::Duration day = absl::Hours(24);
  EXPECT_FALSE(TroubleOf({now - day, now + 15 * day}, now).has_value());
  const auto soon = TroubleOf({now - day, now + 13 * day}, now);
  ASSERT_TRUE(soon.has_value());
  EXPECT_FALSE(soon->is_refused);
  EXPECT_EQ(soon->text, "expires on 2027-01-28 08:00 UTC; renew it");
  const auto late = TroubleOf({now - 9 * day, now}, now);
  ASSERT_TRUE(late.has_value());
  EXPECT_TRUE(late->is_refused);
  EXPECT_THAT(late->text, ::testing::HasSubstr("expired on 2027-01-15 08:00 UTC, so clients refuse it"));
  const auto early = TroubleOf({now + day, now + 99 * day}, now);
  ASSERT_TRUE(early.has_value());
  EXPECT_TRUE(early->is_refused);
  EXPECT_THAT(early->text, ::testing::HasSubstr("is valid only from 2027-01-16 08:00 UTC"));
}

TEST_F(TlsTest, SaysWhichFileIsWrong) {
  EXPECT_TRUE(ReadTlsFiles(Files(true)).ok());
  const auto message = [](const TlsFiles& files) {
    const absl::Status status = ReadTlsFiles(files).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  TlsFiles files = Files(true);
  files.key = File("ann.key");
  EXPECT_THAT(message(files), HasSubstr("does not belong to the certificate"));
  files = Files(true);
  files.certificate = File("missing.pem");
  EXPECT_THAT(message(files), HasSubstr("cannot read the TLS certificate " + File("missing.pem")));
  std::ofstream(File("text")) << "no certificate\n";
  files.certificate = File("text");
  EXPECT_THAT(message(files), HasSubstr("no certificate in PEM form"));
  files = Files(true);
  files.client_ca = File("text");
  EXPECT_THAT(message(files), HasSubstr("clients' authorities"));
  files = Files(true);
  std::swap(files.certificate, files.key);
  ASSERT_EQ(chmod(files.key.c_str(), 0644), 0);
  EXPECT_THAT(message(files), HasSubstr(files.key + " has: are the two swapped?"));
  files = Files(true);
  ASSERT_EQ(chmod(files.key.c_str(), 0644), 0);
  EXPECT_THAT(message(files), HasSubstr("its mode 0644"));
}

TEST_F(TlsTest, TheValidityIsThatOfTheFilesCertificate) {
  const absl::Time before = absl::Now();
  servers_.Issue("localhost", File("server.pem"), File("server.key"), absl::Hours(48));
  const absl::StatusOr<TlsContent> content = ReadTlsFiles(Files(false));
  ASSERT_TRUE(content.ok()) << content.status();
  const CertificateValidity& validity = content->validity;
  // Certificates count whole seconds.
  EXPECT_GE(validity.end, before + absl::Hours(48) - absl::Seconds(1));
  EXPECT_LE(validity.end, absl::Now() + absl::Hours(48));
  EXPECT_LE(validity.begin, validity.end - absl::Hours(1));
  EXPECT_GE(validity.begin, validity.end - absl::Hours(1) - absl::Minutes(2));
}

}  // namespace
}  // namespace tandem
