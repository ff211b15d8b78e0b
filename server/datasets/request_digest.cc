#include "server/datasets/request_digest.h"

#include "absl/status/statusor.h"
#include "engine/base/sha256.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tandem {

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
  return Sha256Of(bytes).value_or("");
}

}  // namespace tandem
