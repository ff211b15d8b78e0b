// Requests to a daemon: a line with the method ("tandem.v1.JobService/GetJob"), then the message in binary
// form, or as text if "text " precedes the method. Every call must end with a status other than UNKNOWN and
// INTERNAL, and the daemon must still answer.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/sinks/null_sink.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/daemon/daemon.h"
#include "server/daemon/service_manager.h"
#include "server/rpc/lifecycle.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/dataset_service.pb.h"
#include "tandem/v1/job_service.pb.h"
#include "tandem/v1/model_service.pb.h"
#include "tandem/v1/sweep_service.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// By "<service>/<method>". Without Shutdown, which would stop the daemon.
std::map<std::string, const google::protobuf::MethodDescriptor*> Methods() {
  std::map<std::string, const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::Descriptor* message :
       {v1::GetDaemonRequest::descriptor(), v1::GetDatasetRequest::descriptor(),
        v1::GetJobRequest::descriptor(), v1::PredictRequest::descriptor(),
        v1::GetSweepRequest::descriptor()}) {
    const google::protobuf::FileDescriptor* file = message->file();
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const google::protobuf::MethodDescriptor* method = file->service(s)->method(m);
        if (method->name() == "Shutdown") continue;
        methods[absl::StrCat(file->service(s)->full_name(), "/", method->name())] = method;
      }
    }
  }
  return methods;
}

class RunningDaemon {
 public:
  RunningDaemon() {
    // Formats the log's messages, but writes them nowhere.
    spdlog::set_default_logger(spdlog::create<spdlog::sinks::null_sink_mt>("nowhere"));
    DaemonOptions options;
    options.state_folder = InputFolder() + "/state";
    options.listen = "127.0.0.1:0";
    options.cpu_devices = 1;
    options.threads_per_cpu_device = 1;
    options.fetch_from = {};
    options.worker_program = "/bin/false";
    auto daemon = Daemon::Start(options, &lifecycle_, &service_manager_);
    if (!daemon.ok()) Wrong(daemon.status().ToString());
    daemon_ = *std::move(daemon);
    std::ifstream(daemon_->token_file()) >> token_;
    channel_ = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }

  // Sends the message, and reads at most two answers. Cancels a stream that continues after a moment.
  grpc::StatusCode Call(const std::string& method, const std::string& message) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token_);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    auto call = stub_->PrepareCall(&context, "/" + method, &queue);
    // Returns whether the present operation succeeded, or nothing if it has not ended within `most`.
    const auto next = [&queue](std::chrono::milliseconds most) -> std::optional<bool> {
      void* tag = nullptr;
      bool ok = false;
      if (queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + most) !=
          grpc::CompletionQueue::GOT_EVENT) {
        return std::nullopt;
      }
      return ok;
    };
    // A call ends by its deadline at the latest.
    const std::chrono::seconds plenty(30);
    call->StartCall(nullptr);
    if (next(plenty) == true) {
      const grpc::Slice slice(message);
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      next(plenty);
    }
    grpc::ByteBuffer answer;
    for (int i = 0; i < 2; ++i) {
      call->Read(&answer, nullptr);
      const std::optional<bool> read = next(std::chrono::milliseconds(5));
      if (read == true) continue;
      if (!read.has_value()) {
        // A stream without news.
        context.TryCancel();
        next(plenty);
      }
      break;
    }
    // A stream may continue after two messages.
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    next(plenty);
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
    return status.error_code();
  }

 private:
  Lifecycle lifecycle_;
  ServiceManager service_manager_;
  std::unique_ptr<Daemon> daemon_;
  std::string token_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& [name, method] : Methods()) seeds.push_back(absl::StrCat(name, "\n"));
  const auto add = [&seeds](const std::string& method, const std::string& text) {
    seeds.push_back(absl::StrCat("text ", method, "\n", text));
  };
  add("tandem.v1.JobService/GetJob", "name: \"jobs/a-123456\"");
  add("tandem.v1.JobService/GetJobHistory",
      "name: \"jobs/a-123456\" first_step: 1 last_step: 9 max_points: 5");
  add("tandem.v1.JobService/ListJobs",
      "page_size: 3 page_token: \"x\" states: JOB_STATE_FAILED order_by: \"name desc\"");
  add("tandem.v1.JobService/WatchJob", "name: \"jobs/a-123456\" after_sequence: 3");
  add("tandem.v1.JobService/UpdateJob",
      "job { name: \"jobs/a\" priority: 3 } update_mask { paths: \"priority\" }");
  add("tandem.v1.JobService/CreateJob", R"(request_id: "1" validate_only: true spec {
        name: "a" dataset { synthetic { shape: [1, 4, 4] classes: 3 train_samples: 8 } }
        model { input { shape: [1, 4, 4] } layers { dense { units: 3 } } }
        training { loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 0.1 } } global_batch_size: 4 epochs: 1 } })");
  add("tandem.v1.SweepService/CreateSweep", R"(sweep { base { name: "a" }
        grid { field: "training.seed" values { number_value: 1 } values { number_value: 2 } } })");
  add("tandem.v1.DatasetService/ListDatasets", "");
  add("tandem.v1.ModelService/DescribeModel", "model { template { lenet {} } } classes: 10");
  return seeds;
}

}  // namespace tandem

// libFuzzer's own mutation; not there in the ordinary test.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

// Mostly leaves the line that names the method as it is: with another one the daemon has next to nothing to
// do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed) {
  const void* const end = size == 0 ? nullptr : std::memchr(data, '\n', size);
  if (end == nullptr || seed % 32 == 0) return LLVMFuzzerMutate(data, size, most);
  const size_t line = static_cast<const uint8_t*>(end) - data + 1;
  return line + LLVMFuzzerMutate(data + line, size - line, most - line);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;  // NOLINT: a target is the program.
  static const auto* const methods =
      new std::map<std::string, const google::protobuf::MethodDescriptor*>(Methods());
  static auto* const daemon = new RunningDaemon();
  static google::protobuf::LogSilencer silencer;
  std::string input(reinterpret_cast<const char*>(data), size);
  const bool text = absl::StartsWith(input, "text ");
  if (text) input.erase(0, 5);
  const size_t end = input.find('\n');
  if (end == std::string::npos) return 0;
  const auto method = methods->find(input.substr(0, end));
  if (method == methods->end()) return 0;
  std::string message = input.substr(end + 1);
  if (text) {
    static google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<google::protobuf::Message> request(
        factory.GetPrototype(method->second->input_type())->New());
    if (!google::protobuf::TextFormat::ParseFromString(message, request.get())) return 0;
    message = request->SerializeAsString();
  }
  const grpc::StatusCode code = daemon->Call(method->first, message);
  // gRPC itself says INTERNAL of bytes that are no message.
  bool is_message = true;
  {
    static google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<google::protobuf::Message> request(
        factory.GetPrototype(method->second->input_type())->New());
    is_message = request->ParseFromString(message);
  }
  if (code == grpc::StatusCode::UNKNOWN || (code == grpc::StatusCode::INTERNAL && is_message) ||
      code == grpc::StatusCode::UNIMPLEMENTED || code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    Wrong(absl::StrCat(method->first, " ended with status ", static_cast<int>(code)));
  }
  return 0;
}
