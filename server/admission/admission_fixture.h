#ifndef TANDEM_SERVER_ADMISSION_ADMISSION_FIXTURE_H_
#define TANDEM_SERVER_ADMISSION_ADMISSION_FIXTURE_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/admission/admission.h"
#include "server/admission/idx_files.h"
#include "server/admission/read_dataset.h"

namespace tandem {

// A job that is admitted.
inline constexpr char kGoodJob[] = R"(
  name: "shapes"
  dataset { name: "shapes" }
  model {
    input { shape: [1, 4, 4] }
    layers { conv2d { filters: 2 kernel: [3, 3] } }
    layers { max_pool2d { size: [2, 2] } }
    layers { dense { units: 3 } }
  }
  training {
    loss { softmax_cross_entropy {} }
    optimizer { sgd { learning_rate: 0.1 } }
    global_batch_size: 6
    epochs: 1
  }
  replicas { count: 2 }
)";

// Returns devices with a GiB of memory.
inline std::vector<v1::Device> Devices(int cpu, int reference) {
  std::vector<v1::Device> devices;
  for (int i = 0; i < cpu + reference; ++i) {
    v1::Device device;
    device.set_kind(i < cpu ? v1::DEVICE_KIND_CPU : v1::DEVICE_KIND_REFERENCE);
    device.set_memory_bytes(int64_t{1} << 30);
    device.add_precisions(i < cpu ? v1::PRECISION_FLOAT32 : v1::PRECISION_FLOAT64);
    devices.push_back(device);
  }
  return devices;
}

// Admission with the data set "shapes", two CPU devices and a reference device.
class AdmissionFixture : public ::testing::Test {
 protected:
  AdmissionFixture() { WriteNamedSet(data_ + "/shapes"); }

  static v1::JobSpec Good() {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kGoodJob, &spec));
    return spec;
  }

  absl::Status Refused(const v1::JobSpec& spec) const {
    const absl::Status status = admission_.Admit(spec).status();
    EXPECT_FALSE(status.ok());
    return status;
  }

  std::vector<std::string> FieldsOf(const v1::JobSpec& spec) const {
    const absl::Status status = Refused(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(GetReason(status), "INVALID_SPEC");
    std::vector<std::string> fields;
    for (const FieldViolation& violation : GetFieldViolations(status)) fields.push_back(violation.field);
    return fields;
  }

  const std::string data_ = FreshFolder();
  LocalDatasetReader reader_;
  const DatasetCatalog catalog_{{data_}, &reader_};
  const WeightsFinder weights_{&catalog_, [](const std::string&) { return absl::NotFoundError(""); }};
  const SpecAdmission admission_{&catalog_, &weights_, Devices(2, 1)};
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_ADMISSION_FIXTURE_H_
