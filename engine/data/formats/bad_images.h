#ifndef TANDEM_ENGINE_DATA_FORMATS_BAD_IMAGES_H_
#define TANDEM_ENGINE_DATA_FORMATS_BAD_IMAGES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

// The images of a data set that cannot be read. An error has all of them in one answer.

namespace tandem {

// The most bad images of a data set that an error names.
inline constexpr size_t kNamedImages = 20;

// An image that cannot be read.
struct ImageFault {
  std::string path;   // "set/a/7.png". Empty if the fault names the file.
  std::string fault;  // Continues the path: " is truncated".
};

// The bad images of a split.
struct BadImages {
  std::string field;              // "image_folder.train"
  std::string folder;             // "set/": not shown in paths if several images are named.
  size_t images = 0;              // All images that were read, good and bad.
  size_t bad = 0;                 // All bad images.
  std::vector<ImageFault> first;  // The first bad images, at most kNamedImages.
};

// Returns INVALID_ARGUMENT with the numbers of the bad images and the first kNamedImages of them, in the
// order of `splits`. OK if no image is bad.
absl::Status BadImagesStatus(const std::vector<BadImages>& splits);

// As RunInParallel, but also continues after INVALID_ARGUMENT, so that all of these errors are returned.
std::vector<absl::Status> ReadAll(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_BAD_IMAGES_H_
