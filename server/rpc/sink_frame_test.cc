#include "server/rpc/sink_frame.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {
namespace {

using Sink = RequestSink<v1::UploadFilesRequest, v1::Upload>;
using Reactor = SinkReactor<v1::UploadFilesRequest, v1::Upload>;

// Keeps its callers waiting until the test answers.
class FakeSink : public Sink {
 public:
  struct State {
    std::vector<Completion<absl::Status>> waiting;
    int abandoned = 0;
  };
  explicit FakeSink(State* state) : state_(state) {}
  void Take(v1::UploadFilesRequest, Completion<absl::Status> done) override {
    state_->waiting.push_back(std::move(done));
  }
  void Finish(Completion<absl::StatusOr<v1::Upload>> done) override { done(v1::Upload()); }
  void Abandon() override { ++state_->abandoned; }

 private:
  State* const state_;
};

// gRPC's side of a call. gRPC frees a finished call that has no read, so no read may start then.
class FakeCall : public grpc::ServerCallbackReader<grpc::ByteBuffer> {
 public:
  explicit FakeCall(Reactor* reactor) : reactor_(reactor) { BindReactor(reactor); }

  void Finish(grpc::Status status) override {
    EXPECT_FALSE(is_starting_) << "the call is freed while a read of it starts";
    finished.push_back(std::move(status));
  }
  void SendInitialMetadata() override {}
  void Read(grpc::ByteBuffer* bytes) override {
    EXPECT_TRUE(finished.empty());
    // An empty request.
    const grpc::Slice none;
    *bytes = grpc::ByteBuffer(&none, 1);
    ++reads;
    is_starting_ = true;
    if (while_starting != nullptr) std::exchange(while_starting, nullptr)();
    is_starting_ = false;
  }

  int reads = 0;
  std::vector<grpc::Status> finished;
  // Runs on another thread in a daemon.
  std::function<void()> while_starting;

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  Reactor* const reactor_;
  bool is_starting_ = false;
};

class SinkFrameTest : public testing::Test {
 protected:
  SinkFrameTest()
      : reactor_(std::make_shared<Reactor>(CallLog("UploadFiles", "ipv4:127.0.0.1:1", &hooks_), nullptr,
                                           &streams_, &context_, &response_)) {
    reactor_->Start(std::make_unique<FakeSink>(&sink_), Caller());
    call_ = std::make_unique<FakeCall>(reactor_.get());
    EXPECT_EQ(call_->reads, 1);
  }
  ~SinkFrameTest() override { reactor_->OnDone(); }

  // Answers the sink's oldest request.
  void Answer(const absl::Status& status) {
    ASSERT_FALSE(sink_.waiting.empty());
    Completion<absl::Status> done = std::move(sink_.waiting.front());
    sink_.waiting.erase(sink_.waiting.begin());
    done(status);
  }
  void ExpectEnd(grpc::StatusCode code) {
    ASSERT_EQ(call_->finished.size(), 1);
    EXPECT_EQ(call_->finished[0].error_code(), code);
    EXPECT_EQ(sink_.abandoned, 1);
  }

  const CallHooks hooks_;
  ActiveStreams streams_;
  grpc::CallbackServerContext context_;
  grpc::ByteBuffer response_;
  FakeSink::State sink_;
  std::shared_ptr<Reactor> reactor_;
  std::unique_ptr<FakeCall> call_;
};

TEST_F(SinkFrameTest, AnEndWhileAReadIsOpenFinishesAtOnce) {
  reactor_->OnReadDone(true);
  Answer(absl::OkStatus());
  EXPECT_EQ(call_->reads, 2);
  reactor_->End(absl::AbortedError("so"));
  ExpectEnd(grpc::StatusCode::ABORTED);
  reactor_->OnReadDone(false);
  ExpectEnd(grpc::StatusCode::ABORTED);
}

TEST_F(SinkFrameTest, AnEndWaitsForTheSink) {
  reactor_->OnReadDone(true);
  reactor_->End(absl::AbortedError("so"));
  EXPECT_TRUE(call_->finished.empty());
  EXPECT_EQ(sink_.abandoned, 0);
  Answer(absl::OkStatus());
  ExpectEnd(grpc::StatusCode::ABORTED);
  EXPECT_EQ(call_->reads, 1);
}

TEST_F(SinkFrameTest, AnEndWaitsForTheStartOfARead) {
  reactor_->OnReadDone(true);
  call_->while_starting = [this] { reactor_->End(absl::AbortedError("so")); };
  Answer(absl::OkStatus());
  EXPECT_EQ(call_->reads, 2);
  ExpectEnd(grpc::StatusCode::ABORTED);
}

TEST_F(SinkFrameTest, AReadMayBeDoneBeforeItsStartReturns) {
  reactor_->OnReadDone(true);
  call_->while_starting = [this] {
    reactor_->OnReadDone(true);
    reactor_->End(absl::AbortedError("so"));
  };
  Answer(absl::OkStatus());
  // The sink has the second request.
  EXPECT_TRUE(call_->finished.empty());
  EXPECT_EQ(sink_.abandoned, 0);
  Answer(absl::OkStatus());
  ExpectEnd(grpc::StatusCode::ABORTED);
}

TEST_F(SinkFrameTest, TheSinksErrorWaitsForTheStartOfARead) {
  reactor_->OnReadDone(true);
  call_->while_starting = [this] {
    reactor_->OnReadDone(true);
    Answer(absl::DataLossError("torn"));
  };
  Answer(absl::OkStatus());
  ExpectEnd(grpc::StatusCode::DATA_LOSS);
}

TEST_F(SinkFrameTest, TheSinksAnswerEndsTheCall) {
  reactor_->OnReadDone(false);
  ASSERT_EQ(call_->finished.size(), 1);
  EXPECT_TRUE(call_->finished[0].ok());
  EXPECT_EQ(sink_.abandoned, 0);
}

}  // namespace
}  // namespace tandem
