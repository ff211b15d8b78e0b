#include "server/datasets/request_digest.h"

#include "absl/strings/str_cat.h"
#include "engine/base/sha256.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tandem {
namespace {

constexpr absl::string_view kMark("\0", 1);

}  // namespace

std::string DigestOf(const v1::CreateDatasetRequest& request) {
  v1::CreateDatasetRequest counts;
  counts.set_dataset_id(request.dataset_id());
  counts.mutable_dataset()->set_description(request.dataset().description());
  *counts.mutable_dataset()->mutable_spec() = request.dataset().spec();
  counts.set_upload(request.upload());
  counts.DiscardUnknownFields();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    counts.SerializeToCodedStream(&coded);
  }
  const absl::StatusOr<std::string> digest = Sha256Of(bytes);
  return digest.ok() ? absl::StrCat(kMark, *digest) : "";
}

std::string DigestOfStored(const std::string& stored) {
  if (stored.empty() || stored.front() == '\0') return stored;
  v1::CreateDatasetRequest request;
  return request.ParseFromString(stored) ? DigestOf(request) : "";
}

}  // namespace tandem
