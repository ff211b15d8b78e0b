// The command line's messages about a daemon's certificate that it refuses.

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/app.h"
#include "client/cli/fake_terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/test_certificates.h"
#include "server/store/temporary_folder.h"
#include "tandem/v1/job_service.grpc.pb.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class TlsClientTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Read(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(Path(name)).rdbuf();
    return content.str();
  }
  // Returns the output of `tandem list` if the server has a certificate with this end. Replaces the
  // certificate.
  std::string List(absl::Duration end, const TestAuthority& trusted) {
    authority_.Issue("gpu-box", Path("server.pem"), Path("server.key"), end);
    trusted.Write(Path("ca.pem"));
    std::ofstream(Path("token")) << "0123456789abcdef0123456789abcdef\n";
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({Read("server.key"), Read("server.pem")});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    v1::JobService::Service service;
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    FakeTerminal terminal;
    terminal.now = absl::Now();
    EXPECT_NE(RunCommand({"list", "--address", absl::StrCat("127.0.0.1:", port), "--tls-ca", Path("ca.pem"),
                          "--token-file", Path("token"), "--reconnect-timeout", "1s"},
                         terminal),
              0);
    return terminal.err();
  }

  TemporaryFolder folder_;
  TestAuthority authority_{"authority"};
};

TEST_F(TlsClientTest, ACertificateThatHasExpired) {
  EXPECT_THAT(List(-absl::Hours(48), authority_), HasSubstr("The daemon's certificate expired on "));
}

TEST_F(TlsClientTest, ACertificateOfTheFuture) {
  EXPECT_THAT(List(absl::Hours(48), authority_), HasSubstr("The daemon's certificate is valid only from "));
}

TEST_F(TlsClientTest, AnotherAuthoritysCertificate) {
  const TestAuthority other("another");
  EXPECT_THAT(List(absl::Hours(1), other), HasSubstr("No trusted authority signed the daemon's certificate"));
}

// gRPC only says that it has no addresses then.
TEST_F(TlsClientTest, FilesThatCannotBeUsedAreNamed) {
  authority_.Write(Path("ca.pem"));
  authority_.Issue("ann", Path("ann.pem"), Path("ann.key"), absl::Hours(1));
  authority_.Issue("bob", Path("bob.pem"), Path("bob.key"), absl::Hours(1));
  std::ofstream(Path("token")) << "0123456789abcdef0123456789abcdef\n";
  const auto run = [&](const std::vector<std::string>& tls) {
    std::vector<std::string> arguments = {"list", "--address", "127.0.0.1:1", "--token-file", Path("token")};
    arguments.insert(arguments.end(), tls.begin(), tls.end());
    FakeTerminal terminal;
    EXPECT_EQ(RunCommand(arguments, terminal), 2) << terminal.err();
    return terminal.err();
  };
  EXPECT_EQ(run({"--tls-ca", Path("token")}), absl::StrCat("tandem: the CA file (--tls-ca) ", Path("token"),
                                                           " has no certificate in PEM form\n"));
  EXPECT_THAT(run({"--tls-ca", Path("ca.pem"), "--tls-cert", Path("ann.key"), "--tls-key", Path("ann.key")}),
              HasSubstr(absl::StrCat(Path("ann.key"), " has no certificate in PEM form")));
  EXPECT_THAT(run({"--tls-ca", Path("ca.pem"), "--tls-cert", Path("ann.pem"), "--tls-key", Path("ann.pem")}),
              HasSubstr(absl::StrCat(Path("ann.pem"), " has no private key in PEM form")));
  EXPECT_THAT(
      run({"--tls-ca", Path("ca.pem"), "--tls-cert", Path("ann.pem"), "--tls-key", Path("bob.key")}),
      HasSubstr(absl::StrCat(Path("bob.key"), " is not the key of the certificate ", Path("ann.pem"))));
}

}  // namespace
}  // namespace tandem::cli
