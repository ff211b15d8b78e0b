// Hostile clients on real sockets, while a good client makes calls. The good client must get its answers.
// Prints how long they take.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "server/rpc/service_fixture.h"
#include "server/store/eventually.h"

namespace tandem {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Types and flags of HTTP/2's frames (RFC 9113).
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kContinuation = 9
};
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  const char head[9] = {
      static_cast<char>(size >> 16),   static_cast<char>(size >> 8),   static_cast<char>(size),
      static_cast<char>(type),         static_cast<char>(flags),       static_cast<char>(stream >> 24),
      static_cast<char>(stream >> 16), static_cast<char>(stream >> 8), static_cast<char>(stream)};
  return absl::StrCat(absl::string_view(head, sizeof(head)), payload);
}

// A header as HPACK's literal without indexing; both parts must be below 127 bytes.
std::string Header(absl::string_view name, absl::string_view value) {
  std::string text(1, '\0');
  absl::StrAppend(&text, std::string(1, static_cast<char>(name.size())), name,
                  std::string(1, static_cast<char>(value.size())), value);
  return text;
}

std::string CallHeaders(absl::string_view method = "DaemonService/GetDaemon", absl::string_view token = "") {
  return absl::StrCat(Header(":method", "POST"), Header(":scheme", "http"),
                      Header(":path", absl::StrCat("/tandem.v1.", method)), Header(":authority", "here"),
                      Header("content-type", "application/grpc"), Header("te", "trailers"),
                      token.empty() ? "" : Header("authorization", absl::StrCat("Bearer ", token)));
}

// A whole unary call with an empty message.
std::string WholeCall(uint32_t stream, absl::string_view method, absl::string_view token) {
  return absl::StrCat(Frame(kHeaders, kEndHeaders, stream, CallHeaders(method, token)),
                      Frame(kData, kEndStream, stream, absl::string_view("\0\0\0\0\0", 5)));
}

// The settings of a client that accepts no data: its windows are 0.
std::string NoWindow() {
  return absl::StrCat(kPreface, Frame(kSettings, 0, 0, absl::string_view("\0\4\0\0\0\0", 6)));
}

// Returns the peak of this process's memory, in bytes.
int64_t MostMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %ld kB", &kibibytes) == 1) return kibibytes << 10;
  }
  return 0;
}

class HostileClientsTest : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    good_ = v1::JobService::NewStub(NewChannel());
    // Connects before a hostile connection gets its address refused.
    v1::ListJobsResponse none;
    ASSERT_TRUE(good_->ListJobs(Context().get(), {}, &none).ok());
  }
  void TearDown() override {
    for (const int fd : sockets_) close(fd);
    ServiceFixture::TearDown();
  }

  int Connect() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(server_->address().port));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    sockets_.push_back(fd);
    return fd;
  }
  // Sends as many bytes as are accepted without a long wait. Returns false if the server hung up.
  static bool Send(int fd, absl::string_view bytes) {
    while (!bytes.empty()) {
      pollfd event = {fd, POLLOUT, 0};
      if (poll(&event, 1, 200) != 1) return true;
      const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return errno == EAGAIN;
      bytes.remove_prefix(sent);
    }
    return true;
  }
  // Returns true if the server hangs up within this time. Reads and drops its data.
  static bool HangsUp(int fd, absl::Duration within) {
    const absl::Time end = absl::Now() + within;
    char buffer[4096];
    while (absl::Now() < end) {
      pollfd event = {fd, POLLIN, 0};
      if (poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now())) + 1) != 1)
        return false;
      if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0) return true;
    }
    return false;
  }

  // A good client on its own connection makes calls, and all must be answered. Prints how long they took.
  void ExpectAnswers(const char* during) {
    std::vector<double> milliseconds;
    for (int i = 0; i < 50; ++i) {
      const absl::Time begin = absl::Now();
      v1::Job job;
      // Durable, so that the call passes through the whole daemon.
      const grpc::Status made = good_->CreateJob(Context().get(), Request(absl::StrCat("good-", i)), &job);
      ASSERT_TRUE(made.ok()) << during << ": " << made.error_message();
      ASSERT_TRUE(good_->GetJob(Context().get(), Named<v1::GetJobRequest>(job.name()), &job).ok()) << during;
      milliseconds.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    std::printf("%s: two calls took %.1f ms, the slowest %.1f ms\n", during, milliseconds[25],
                milliseconds[49]);
    EXPECT_LT(milliseconds[49], 10'000) << during;
  }

  // Returns the types of a stream's frames that arrive within this time, up to the first `last`.
  static std::vector<uint8_t> FramesOf(int fd, uint32_t stream, uint8_t last, absl::Duration within) {
    const absl::Time end = absl::Now() + within;
    std::string bytes;
    std::vector<uint8_t> types;
    char buffer[4096];
    while (absl::Now() < end) {
      pollfd event = {fd, POLLIN, 0};
      if (poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now())) + 1) != 1) break;
      const ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got <= 0) break;
      bytes.append(buffer, got);
      while (bytes.size() >= 9) {
        const auto at = [&bytes](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
        const size_t size = (at(0) << 16 | at(1) << 8 | at(2)) + 9;
        if (bytes.size() < size) break;
        if ((at(5) << 24 | at(6) << 16 | at(7) << 8 | at(8)) == stream)
          types.push_back(static_cast<uint8_t>(at(3)));
        bytes.erase(0, size);
        if (!types.empty() && types.back() == last) return types;
      }
    }
    return types;
  }

  int64_t Count(absl::string_view call) {
    const std::vector<std::string> calls = Calls();
    return std::count(calls.begin(), calls.end(), call);
  }
  // Blocks until `count` calls have ended like this.
  bool AwaitCount(absl::string_view call, int64_t count) {
    return Eventually([&] { return Count(call) >= count; }, absl::Seconds(30));
  }

  // A good client's connection.
  std::unique_ptr<v1::JobService::Stub> good_;
  std::vector<int> sockets_;
};

TEST_F(HostileClientsTest, ConnectionsThatSendNothing) {
  for (int i = 0; i < 200; ++i) Connect();
  ExpectAnswers("200 silent connections");
}

TEST_F(HostileClientsTest, HalfOpenConnections) {
  // Clients that stop in the middle of the preface, after the preface, in the middle of a frame, and in the
  // middle of a call.
  const std::string settings = Frame(kSettings, 0, 0, "");
  const std::string headers = Frame(kHeaders, kEndHeaders, 1, CallHeaders());
  for (int i = 0; i < 25; ++i) {
    EXPECT_TRUE(Send(Connect(), kPreface.substr(0, 10)));
    EXPECT_TRUE(Send(Connect(), kPreface));
    EXPECT_TRUE(Send(Connect(), absl::StrCat(kPreface, settings.substr(0, 5))));
    EXPECT_TRUE(Send(Connect(), absl::StrCat(kPreface, settings, headers)));
  }
  ExpectAnswers("100 half-open connections");
}

TEST_F(HostileClientsTest, BytesThatMeanNothing) {
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i)
    noise.push_back(static_cast<char>((state = state * 1664525 + 1013904223) >> 24));
  const int before = Connect();
  Send(before, noise);
  const int after = Connect();
  Send(after, absl::StrCat(kPreface, Frame(kSettings, 0, 0, ""), noise));
  const int http = Connect();
  Send(http, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  ExpectAnswers("noise");
  for (const int fd : {before, after, http}) EXPECT_TRUE(HangsUp(fd, absl::Seconds(30)));
}

TEST_F(HostileClientsTest, HeadersWithoutEnd) {
  std::vector<std::thread> floods;
  for (int i = 0; i < 4; ++i) {
    floods.emplace_back([fd = Connect()] {
      Send(fd, absl::StrCat(kPreface, Frame(kSettings, 0, 0, ""), Frame(kHeaders, 0, 1, CallHeaders())));
      std::string block;
      for (int n = 0; n < 100; ++n) block += Header(absl::StrCat("x-", n), std::string(100, 'x'));
      const std::string frame = Frame(kContinuation, 0, 1, block);
      // About 32 MiB, none of which may be kept.
      for (int n = 0; n < 3000 && Send(fd, frame); ++n) {
      }
    });
  }
  ExpectAnswers("4 floods of headers");
  for (std::thread& flood : floods) flood.join();
}

TEST_F(HostileClientsTest, PingsSettingsAndResets) {
  std::vector<std::thread> floods;
  const std::string ping = Frame(kPing, 0, 0, "12345678");
  const std::string settings = Frame(kSettings, 0, 0, "");
  for (const std::string& frame : {ping, settings}) {
    floods.emplace_back([frame, fd = Connect()] {
      std::string many;
      for (int n = 0; n < 100; ++n) many += frame;
      Send(fd, absl::StrCat(kPreface, Frame(kSettings, 0, 0, "")));
      for (int n = 0; n < 500 && Send(fd, many); ++n) {
      }
    });
  }
  floods.emplace_back([fd = Connect()] {
    Send(fd, absl::StrCat(kPreface, Frame(kSettings, 0, 0, "")));
    for (uint32_t stream = 1; stream < 20'000; stream += 2) {
      const std::string call =
          absl::StrCat(Frame(kHeaders, kEndHeaders | kEndStream, stream, CallHeaders()),
                       Frame(kResetStream, 0, stream, absl::string_view("\0\0\0\x08", 4)));
      if (!Send(fd, call)) break;
    }
  });
  ExpectAnswers("floods of pings, settings and calls that are taken back");
  for (std::thread& flood : floods) flood.join();
}

// Messages that are nested too deeply, or no messages at all.
TEST_F(HostileClientsTest, MessagesThatCannotBeReadAreExplained) {
  v1::DescribeModelRequest deep;
  v1::Layer* layer = deep.mutable_model()->add_layers();
  for (int i = 0; i < 60; ++i) layer = layer->mutable_repeat()->add_layers();
  v1::DescribeModelRequest deep_and_large = deep;
  deep_and_large.mutable_model()->set_name(std::string(100'000, 'x'));
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"ModelService/DescribeModel", "\xff\xff"},
      {"JobService/WatchJob", "\xff\xff"},
      {"ModelService/DescribeModel", deep.SerializeAsString()},
      {"ModelService/DescribeModel", deep_and_large.SerializeAsString()}};
  for (const auto& [method, message] : calls) {
    const grpc::Status status = CallWith(absl::StrCat("/tandem.v1.", method), message);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("cannot read the message"));
  }
}

// Fields of two bytes each, which would take some sixty in memory; and unknown fields.
TEST_F(HostileClientsTest, MessagesOfVeryManyFieldsAreNotMade) {
  const int64_t before = MostMemory();
  const auto field = [](absl::string_view tag, const std::string& content) {
    std::string size;
    size_t left = content.size();
    for (; left > 127; left >>= 7) size.push_back(static_cast<char>((left & 127) | 128));
    size.push_back(static_cast<char>(left));
    return absl::StrCat(tag, size, content);
  };
  v1::CreateJobRequest one;
  one.mutable_spec()->mutable_model()->add_layers();
  // The tags of the spec, the model and a layer, each before a size.
  const std::string tags = one.SerializeAsString();
  ASSERT_EQ(tags.size(), 6);
  for (const int fields : {1'000'000, 8'000'000}) {
    std::string layers, unknown;
    for (int i = 0; i < fields; ++i) {
      layers.append({tags[4], '\0'});
      unknown.append({'\x78', '\0'});
    }
    const std::string job = field(tags.substr(0, 1), field(tags.substr(2, 1), layers));
    for (const auto& [method, message] : {std::pair("JobService/CreateJob", job),
                                          {"DaemonService/GetDaemon", unknown},
                                          {"JobService/WatchJob", unknown},
                                          {"ModelService/Predict", unknown}}) {
      const grpc::Status status = CallWith(absl::StrCat("/tandem.v1.", method), message);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method << fields;
      EXPECT_THAT(status.error_message(), ::testing::HasSubstr("cannot take the request"))
          << method << fields;
    }
  }
  // The bytes themselves, on both sides.
  EXPECT_LT(MostMemory() - before, 150 << 20);
}

TEST_F(HostileClientsTest, UnknownMethodsStayUnimplemented) {
  for (const char* const method : {"/tandem.v1.JobService/NoSuchMethod", "/no.such.Service/Method"}) {
    EXPECT_EQ(CallWith(method, "").error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
  }
}

// gRPC's own services know no users. A connection may have 16 open calls, and an address 64 streams.
TEST_F(HostileClientsTest, StreamsOfGrpcsOwnServicesAreFew) {
  struct Stream {
    std::unique_ptr<grpc::ClientContext> context;
    grpc::ByteBuffer reply;
    grpc::Status status;
    std::atomic<bool> has_ended = false;
  };
  const auto watch = [](const std::shared_ptr<grpc::Channel>& channel, Stream& stream) {
    // A unary call of a stream's method is answered when the stream ends.
    static const grpc::Slice nothing("");
    static const grpc::ByteBuffer request(&nothing, 1);
    stream.context = Context();
    grpc::GenericStub(channel).UnaryCall(stream.context.get(), "/grpc.health.v1.Health/Watch", {}, &request,
                                         &stream.reply, [&stream](grpc::Status status) {
                                           stream.status = std::move(status);
                                           stream.has_ended = true;
                                         });
  };
  const auto ended = [](const std::vector<Stream>& streams) {
    return std::count_if(streams.begin(), streams.end(),
                         [](const Stream& one) { return one.has_ended.load(); });
  };
  const auto await_ended = [&ended](const std::vector<Stream>& streams, int count) {
    Eventually([&] { return ended(streams) >= count; });
    return ended(streams);
  };
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::vector<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    channels.push_back(NewChannel());
    for (Stream& stream : streams.emplace_back(20)) watch(channels.back(), stream);
    EXPECT_EQ(await_ended(streams.back(), 4), 4) << "16 of a connection";
  }
  channels.push_back(NewChannel());
  for (Stream& stream : streams.emplace_back(5)) watch(channels.back(), stream);
  EXPECT_EQ(await_ended(streams.back(), 5), 5) << "64 of an address";
  for (const Stream& stream : streams.back())
    EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectAnswers("64 watchers of the health");
  // After their end there is room.
  for (Stream& stream : streams[0]) stream.context->TryCancel();
  EXPECT_EQ(await_ended(streams[0], 20), 20);
  // The daemon counts a stream until a moment after the client's end.
  EXPECT_TRUE(Eventually([&] {
    std::vector<Stream> late(1);
    watch(channels.back(), late[0]);
    absl::SleepFor(absl::Milliseconds(500));
    const bool is_open = ended(late) == 0;
    late[0].context->TryCancel();
    EXPECT_EQ(await_ended(late, 1), 1);
    return is_open;
  }));
  for (auto& some : streams) {
    for (Stream& stream : some) stream.context->TryCancel();
    EXPECT_EQ(await_ended(some, static_cast<int>(some.size())), some.size());
  }
}

TEST_F(HostileClientsTest, AConnectionThatTakesCallsBackIsShut) {
  for (const absl::string_view token : {"", kToken}) {
    const int fd = Connect();
    Send(fd, absl::StrCat(kPreface, Frame(kSettings, 0, 0, "")));
    bool is_open = true;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    for (uint32_t stream = 1; is_open && absl::Now() < end;) {
      std::string calls;
      for (int i = 0; i < 100; ++i, stream += 2) {
        absl::StrAppend(&calls,
                        Frame(kHeaders, kEndHeaders, stream, CallHeaders("DaemonService/GetDaemon", token)),
                        Frame(kResetStream, 0, stream, absl::string_view("\0\0\0\x08", 4)));
      }
      is_open = Send(fd, calls);
    }
    EXPECT_FALSE(is_open) << "token \"" << token << "\"";
    // Other users of this machine have the same address.
    const auto own = v1::JobService::NewStub(
        grpc::CreateChannel(server_->address().ToString(), grpc::InsecureChannelCredentials()));
    v1::ListJobsResponse jobs;
    EXPECT_TRUE(own->ListJobs(Context().get(), {}, &jobs).ok());
    ExpectAnswers("calls that are taken back");
  }
}

class UnreadAnswersTest : public HostileClientsTest {
 protected:
  UnreadAnswersTest() { unary_limits_ = {.answer_bytes = 100'000, .reading_time = absl::Seconds(2)}; }
  void SetUp() override {
    HostileClientsTest::SetUp();
    v1::CreateJobRequest request = Request("large");
    request.mutable_spec()->mutable_dataset()->set_name(std::string(100'000, 'x'));
    v1::Job job;
    ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  }

  // A new user without earlier calls, because an answer counts until gRPC reports that it was sent.
  std::string MakeToken() {
    v1::CreateTokenRequest create;
    create.mutable_token()->set_user("ann");
    v1::CreateTokenResponse token;
    grpc::Status status;
    // The administrator's last answer may still count.
    EXPECT_TRUE(Eventually([&] {
      return (status = daemon_stub_->CreateToken(Context().get(), create, &token)).ok();
    })) << status.error_message();
    return token.secret();
  }
};

TEST_F(UnreadAnswersTest, AreRefusedAboveALimitAndCutOffInTime) {
  const std::string token = MakeToken();
  const int fd = Connect();
  Send(fd, absl::StrCat(NoWindow(), WholeCall(1, "JobService/ListJobs", token)));
  ASSERT_TRUE(AwaitCount("ListJobs OK", 2)) << "one is the good client's own";
  for (uint32_t stream = 3; stream < 13; stream += 2)
    Send(fd, WholeCall(stream, "JobService/ListJobs", token));
  EXPECT_TRUE(AwaitCount("ListJobs RESOURCE_EXHAUSTED", 5));
  // Other users are not affected, and the user may continue after the answer was cut off.
  EXPECT_THAT(FramesOf(fd, 1, kResetStream, absl::Seconds(20)), ::testing::Contains(kResetStream));
  v1::ListJobsResponse jobs;
  grpc::Status after;
  EXPECT_TRUE(Eventually([&] { return (after = good_->ListJobs(Context(token).get(), {}, &jobs)).ok(); }))
      << after.error_message();
  EXPECT_EQ(jobs.jobs_size(), 1);
}

TEST_F(UnreadAnswersTest, EndWithTheToken) {
  const std::string token = MakeToken();
  const int fd = Connect();
  Send(fd, absl::StrCat(NoWindow(), WholeCall(1, "JobService/ListJobs", token)));
  ASSERT_TRUE(AwaitCount("ListJobs OK", 2));
  Revoke("ann");
  EXPECT_THAT(FramesOf(fd, 1, kResetStream, absl::Seconds(10)), ::testing::Contains(kResetStream));
}

TEST_F(HostileClientsTest, WatchersThatNeverRead) {
  const std::string job = Create("watched");
  workers_.AwaitStarted(Id(job));
  Report(job, {Started(1)});
  v1::WatchJobRequest request;
  request.set_name(job);
  struct Watcher {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader;
  };
  std::vector<Watcher> idle(50);
  for (Watcher& watcher : idle) {
    watcher.context = Context();
    watcher.reader = stub_->WatchJob(watcher.context.get(), request);
  }
  // More than the hub's and the connections' buffers hold.
  constexpr int64_t kEvents = 20'000;
  for (int64_t sequence = 2; sequence < kEvents;) {
    std::vector<internal::v1::WorkerEvent> events;
    for (int i = 0; i < 1000; ++i, ++sequence) events.push_back(ProgressAt(sequence, sequence));
    Report(job, std::move(events));
  }
  ExpectAnswers("50 watchers that never read");
  auto context = Context();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  // On its own connection, because clients that do not read fill their connection's window.
  const auto own = v1::JobService::NewStub(NewChannel());
  auto reader = own->WatchJob(context.get(), request);
  v1::JobEvent event;
  int64_t expected = 1;
  while (expected <= kEvents && reader->Read(&event)) ASSERT_EQ(event.sequence(), expected++);
  EXPECT_GT(expected, kEvents);
  context->TryCancel();
  for (Watcher& watcher : idle) watcher.context->TryCancel();
}

// Without a token, by a call that needs none. A quarter of a MiB would become 256 MiB.
TEST_F(HostileClientsTest, CompressedMessagesAreRefusedAndNotInflated) {
  constexpr int kPieces = 256;
  constexpr int64_t kPiece = 1 << 20;
  // One slice in memory, repeated in the message.
  const std::vector<grpc::Slice> bomb(kPieces, grpc::Slice(std::string(kPiece, '\0')));
  const std::vector<grpc::Slice> small = {grpc::Slice(absl::StrCat("\x0a\x64", std::string(100, 'x')))};
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const std::vector<grpc::Slice>* const message : {&small, &bomb}) {
      const int64_t before = MostMemory();
      grpc::ByteBuffer request(message->data(), message->size()), reply;
      auto context = Context("");
      context->set_compression_algorithm(algorithm);
      const grpc::Status status = CallRaw("/grpc.health.v1.Health/Check", request, context.get(), &reply);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
      EXPECT_LT(MostMemory() - before, kPieces * kPiece / 4);
    }
  }
}

}  // namespace
}  // namespace tandem
