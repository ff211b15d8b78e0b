#include "engine/training/model_file.h"

#include <map>

#include "google/protobuf/util/json_util.h"

namespace tandem {
namespace {

constexpr char kFramework[] = "tandem";
constexpr char kFormatVersion[] = "1";

}  // namespace

absl::Status WriteModel(Env* env, const std::string& path, const v1::JobSpec& spec,
                        absl::Span<const NamedTensor> tensors) {
  std::string job;
  google::protobuf::util::JsonPrintOptions json;
  json.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(spec, &job, json).ok()) {
    return absl::InternalError("the job cannot be written as JSON");
  }
  const std::map<std::string, std::string> metadata = {
      {"framework", kFramework}, {"format_version", kFormatVersion}, {"job", job}};
  return WriteSafetensors(env, path, tensors, metadata);
}

}  // namespace tandem
