#ifndef TANDEM_ENGINE_DATA_FORMATS_IMAGE_FOLDER_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_IMAGE_FOLDER_DATASET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for an ImageFolderSource, before limits and splits. Describing reads the
// headers of all files, and decodes small sets whole. Opening decodes all files on several threads. An error
// names the paths of the first 20 wrong images of a split. Fields in errors are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeImageFolder(const v1::ImageFolderSource& source, const DataNames& model);
absl::StatusOr<OpenedDataset> OpenImageFolder(const v1::ImageFolderSource& source, const DataNames& model);
// Returns the class of each training sample, without decoding images.
absl::StatusOr<std::vector<int32_t>> ImageFolderLabels(const v1::ImageFolderSource& source);
// Passes the training samples to `use`, as StreamTraining.
absl::Status StreamImageFolder(const v1::ImageFolderSource& source, UseSamples use);

// Returns the paths of all images in a folder of classes, class by class. INVALID_ARGUMENT if a folder cannot
// be read or has no image.
absl::StatusOr<std::vector<std::string>> ImagesIn(const std::string& folder);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_FOLDER_DATASET_H_
