#ifndef TANDEM_SERVER_JOBS_UPLOADED_WEIGHTS_H_
#define TANDEM_SERVER_JOBS_UPLOADED_WEIGHTS_H_

#include <optional>
#include <string>

#include "tandem/v1/job.pb.h"

namespace tandem {

// A file of an upload.
struct UploadedFile {
  // The upload's name without "uploads/".
  std::string upload;
  // The file's path in the upload, unchecked.
  std::string path;
};

// Returns the file of an upload that initial weights name: "uploads/<id>/<path>", where the id has 16
// hexadecimal digits. nullopt if the weights have another source. Another path that begins with "uploads/"
// is a path in a data folder.
std::optional<UploadedFile> UploadedWeights(const v1::InitialWeights& weights);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_UPLOADED_WEIGHTS_H_
