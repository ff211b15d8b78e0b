#include "client/dashboard/calls.h"

#include <google/protobuf/type.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/status_details.h"

namespace tandem::dashboard {
namespace {

using client::Client;
using Call = std::function<absl::StatusOr<std::string>(Client&, const std::string&)>;

// Makes a call from a function that takes the client and a request, and returns a message.
template <typename Request, typename Function>
Call Make(Function function) {
  return [function](Client& client, const std::string& text) -> absl::StatusOr<std::string> {
    Request request;
    if (!google::protobuf::util::JsonStringToMessage(text.empty() ? "{}" : text, &request).ok())
      return absl::InvalidArgumentError(
          "cannot read the request: it is not this method's; load the page again");
    const auto answer = function(client, request);
    if (!answer.ok()) return answer.status();
    return ToJson(*answer);
  };
}

constexpr char kUrlPrefix[] = "type.googleapis.com";

// Describes the compiled messages to the conversion to JSON. Keeps each description, because the library
// would make it again for each conversion, and this takes longer than the conversion itself. Thread-safe.
class KeptTypes : public google::protobuf::util::TypeResolver {
 public:
  google::protobuf::util::Status ResolveMessageType(const std::string& url,
                                                    google::protobuf::Type* type) override {
    return Resolve(url, type, &TypeResolver::ResolveMessageType, &messages_);
  }
  google::protobuf::util::Status ResolveEnumType(const std::string& url,
                                                 google::protobuf::Enum* type) override {
    return Resolve(url, type, &TypeResolver::ResolveEnumType, &enums_);
  }

 private:
  template <typename Type, typename Method>
  google::protobuf::util::Status Resolve(const std::string& url, Type* type, Method method,
                                         std::map<std::string, Type>* kept) {
    const absl::MutexLock lock(&mutex_);
    const auto [found, is_new] = kept->try_emplace(url);
    if (is_new) {
      if (const auto status = (*types_.*method)(url, &found->second); !status.ok()) {
        kept->erase(found);
        return status;
      }
    }
    *type = found->second;
    return {};
  }

  absl::Mutex mutex_;
  const std::unique_ptr<TypeResolver> types_{google::protobuf::util::NewTypeResolverForDescriptorPool(
      kUrlPrefix, google::protobuf::DescriptorPool::generated_pool())};
  std::map<std::string, google::protobuf::Type> messages_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, google::protobuf::Enum> enums_ ABSL_GUARDED_BY(mutex_);
};

template <typename Response, typename List>
absl::StatusOr<Response> Whole(absl::StatusOr<std::vector<List>> list,
                               google::protobuf::RepeatedPtrField<List>* (Response::*field)()) {
  if (!list.ok()) return list.status();
  Response response;
  for (List& one : *list) *(response.*field)()->Add() = std::move(one);
  return response;
}

const std::map<std::string, Call, std::less<>>& Calls() {
  static const auto* const calls = new std::map<std::string, Call, std::less<>>{
      {"GetDaemon",
       Make<v1::GetDaemonRequest>([](Client& client, const auto&) { return client.GetDaemon(); })},
      {"ListDevices", Make<v1::ListDevicesRequest>([](Client& client, const auto&) {
         v1::ListDevicesResponse cluster;
         absl::StatusOr<v1::ListDevicesResponse> whole =
             Whole(client.ListDevices(&cluster), &v1::ListDevicesResponse::mutable_devices);
         if (whole.ok()) whole->MergeFrom(cluster);
         return whole;
       })},
      {"DrainDevice", Make<v1::DrainDeviceRequest>([](Client& client, const auto& request) {
         return client.DrainDevice(request.name(), request.reason());
       })},
      {"ResumeDevice", Make<v1::ResumeDeviceRequest>([](Client& client, const auto& request) {
         return client.ResumeDevice(request.name());
       })},
      {"ListQueue", Make<v1::ListQueueRequest>([](Client& client, const auto& request) {
         return client.ListQueue(request.page_size() > 0 ? request.page_size() : 1000);
       })},
      {"GetJob", Make<v1::GetJobRequest>(
                     [](Client& client, const auto& request) { return client.GetJob(request.name()); })},
      {"GetJobHistory", Make<v1::GetJobHistoryRequest>([](Client& client, const auto& request) {
         return client.GetJobHistory(request);
       })},
      {"UpdateJob", Make<v1::UpdateJobRequest>([](Client& client, const auto& request) {
         return client.SetPriority(request.job().name(), request.job().priority());
       })},
      {"CancelJob", Make<v1::CancelJobRequest>([](Client& client, const auto& request) {
         return client.CancelJob(request.name());
       })},
      {"PauseJob", Make<v1::PauseJobRequest>(
                       [](Client& client, const auto& request) { return client.PauseJob(request.name()); })},
      {"ResumeJob", Make<v1::ResumeJobRequest>([](Client& client, const auto& request) {
         return client.ResumeJob(request.name());
       })},
      {"ListCheckpoints", Make<v1::ListCheckpointsRequest>([](Client& client, const auto& request) {
         return Whole(client.ListCheckpoints(request.job()),
                      &v1::ListCheckpointsResponse::mutable_checkpoints);
       })},
      {"DescribeModel", Make<v1::DescribeModelRequest>([](Client& client, const auto& request) {
         return client.DescribeModel(request);
       })},
      {"ListSweeps", Make<v1::ListSweepsRequest>([](Client& client, const auto& request) {
         return Whole(client.ListSweeps(request.page_size()), &v1::ListSweepsResponse::mutable_sweeps);
       })},
      {"GetSweep", Make<v1::GetSweepRequest>(
                       [](Client& client, const auto& request) { return client.GetSweep(request.name()); })},
      {"CancelSweep", Make<v1::CancelSweepRequest>([](Client& client, const auto& request) {
         return client.CancelSweep(request.name());
       })},
  };
  return *calls;
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  static KeptTypes* const types = new KeptTypes;
  std::string text;
  // The conversion fails only for messages of unknown types, and the API has none.
  google::protobuf::util::BinaryToJsonString(
      types, absl::StrCat(kUrlPrefix, "/", message.GetDescriptor()->full_name()), message.SerializeAsString(),
      &text, options)
      .ok();
  return text;
}

absl::StatusOr<std::string> CallInJson(Client& client, absl::string_view method, const std::string& request) {
  const auto call = Calls().find(method);
  if (call == Calls().end())
    return absl::NotFoundError(absl::StrCat("cannot call ", method, ": the dashboard makes no such call"));
  return call->second(client, request);
}

std::string ErrorInJson(const absl::Status& status) {
  nlohmann::json error = {{"code", absl::StatusCodeToString(status.code())},
                          {"message", std::string(status.message())}};
  for (const client::FieldViolation& violation : client::FieldViolations(status))
    error["violations"].push_back({{"field", violation.field}, {"description", violation.description}});
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int HttpStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return 503;
    default:
      return 500;
  }
}

}  // namespace tandem::dashboard
