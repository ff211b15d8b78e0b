#ifndef TANDEM_SERVER_ADMISSION_ADMISSION_H_
#define TANDEM_SERVER_ADMISSION_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/training/plan.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/device_check.h"
#include "server/admission/memo.h"
#include "server/admission/weights_finder.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A job that may be queued.
struct AdmittedJob {
  // Defaults filled in; the data set is named as the client named it.
  v1::JobSpec spec;
  // Of one replica, with its part of what the job has in the host's memory where that is the device's.
  int64_t planned_memory_bytes = 0;
  // Floating-point operations of the whole training; an estimate.
  double planned_operations = 0;
};

// Decides whether a job may be queued. Thread-safe.
class Admission {
 public:
  virtual ~Admission() = default;
  // INVALID_ARGUMENT: with every field at fault that was found, each with its path from the request on
  // ("spec.model.layers[3].conv2d.kernel[0]"). FAILED_PRECONDITION: the spec is right, but could never run on
  // this machine's devices. Reads the data set's files.
  virtual absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec) const = 0;
  // Admit of a job that goes on with a model that knows its data by `names`: the data are matched to them,
  // and INVALID_ARGUMENT names what does not match.
  virtual absl::StatusOr<AdmittedJob> AdmitMatched(const v1::JobSpec& spec, const DataNames& names) const = 0;
  // That a job, which was admitted, can go on from a checkpoint. INVALID_ARGUMENT as above, with what of its
  // network or its optimizer the checkpoint does not have, or with the reason NOTHING_TO_TRAIN.
  virtual absl::Status CheckCheckpoint(const AdmittedJob& job, const SafetensorsHeader& checkpoint) const = 0;
};

// Checks a spec as a whole: its data set, then the plan of its training, then the devices that it asks for.
class SpecAdmission : public Admission {
 public:
  // `catalog` and `weights` outlive this; `devices` are all that the machine has, `priority` the kinds that a
  // job without a wish is given, the best first, `gpu_limits` what the owner says of GPUs.
  SpecAdmission(const DatasetCatalog* catalog, const WeightsFinder* weights, std::vector<v1::Device> devices,
                std::vector<v1::DeviceKind> priority = {v1::DEVICE_KIND_GPU, v1::DEVICE_KIND_CPU},
                GpuLimits gpu_limits = {});
  absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec) const override {
    return AdmitJob(spec, nullptr);
  }
  absl::StatusOr<AdmittedJob> AdmitMatched(const v1::JobSpec& spec, const DataNames& names) const override {
    return AdmitJob(spec, &names);
  }
  absl::Status CheckCheckpoint(const AdmittedJob& job, const SafetensorsHeader& checkpoint) const override;

 private:
  // `names` may be null.
  absl::StatusOr<AdmittedJob> AdmitJob(const v1::JobSpec& spec, const DataNames* names) const;
  // The job's data, matched to the model that `names` are of, or to that which it begins with. Errors are
  // relative to the DatasetSpec.
  absl::StatusOr<DatasetInfo> DescribeData(const v1::JobSpec& spec, const DataNames* names) const;
  // PlanJob's, planned once for jobs that are equal in all that the plan depends on, as most of a sweep's
  // are.
  absl::StatusOr<JobPlan> Plan(const v1::JobSpec& spec, const DatasetInfo& data) const;
  // Of `steps` optimizer steps; 0 where nobody knows.
  double OperationsOf(const v1::JobSpec& spec, int64_t steps) const;

  const DatasetCatalog* const catalog_;
  const WeightsFinder* const weights_;
  const DeviceCheck devices_;
  // By the SHA-256 of PlanKey, and of the model.
  mutable Memo<JobPlan> plans_;
  mutable Memo<double> operations_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_ADMISSION_H_
