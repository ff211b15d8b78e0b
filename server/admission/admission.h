#ifndef TANDEM_SERVER_ADMISSION_ADMISSION_H_
#define TANDEM_SERVER_ADMISSION_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/training/plan.h"
#include "server/admission/cluster_spec.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/device_check.h"
#include "server/admission/memo.h"
#include "server/admission/weights_finder.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A job that may be queued.
struct AdmittedJob {
  // Has all defaults. The data set keeps the client's name.
  v1::JobSpec spec;
  // The planned memory of one replica. On kinds of device that use the host's memory, includes the replica's
  // share of the job's host memory.
  int64_t planned_memory_bytes = 0;
  // An estimate of the whole training's floating-point operations.
  double planned_operations = 0;
};

// Decides whether a job may be queued. Thread-safe.
class Admission {
 public:
  virtual ~Admission() = default;
  // Reads the data set's files. INVALID_ARGUMENT: names every wrong field that was found, with its path from
  // the request on ("spec.model.layers[3].conv2d.kernel[0]"). FAILED_PRECONDITION: the spec is valid, but
  // this machine's devices can never run the job.
  virtual absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec) const = 0;
  // Like Admit, for a job that continues a model. Matches the data to `names`, the model's names of its data.
  // INVALID_ARGUMENT also names the data that do not match.
  virtual absl::StatusOr<AdmittedJob> AdmitMatched(const v1::JobSpec& spec, const DataNames& names) const = 0;
  // Checks that an admitted job can continue from a checkpoint. INVALID_ARGUMENT, with paths like Admit's:
  // names the parts of the network or optimizer that the checkpoint lacks. If the checkpoint is already at
  // the training's end, the reason is NOTHING_TO_TRAIN.
  virtual absl::Status CheckCheckpoint(const AdmittedJob& job, const SafetensorsHeader& checkpoint) const = 0;
};

// Checks the whole spec: the data set, then the plan of the training, then the devices.
class SpecAdmission : public Admission {
 public:
  // `catalog` and `weights` must outlive this object. `devices` are all devices of the machine. `priority`
  // lists the kinds for jobs that name no kind, best first. `gpu_limits` are the owner's limits.
  // `cluster` has the rules for jobs on a cluster.
  SpecAdmission(const DatasetCatalog* catalog, const WeightsFinder* weights, std::vector<v1::Device> devices,
                std::vector<v1::DeviceKind> priority = {v1::DEVICE_KIND_GPU, v1::DEVICE_KIND_CPU},
                GpuLimits gpu_limits = {}, ClusterRules cluster = {});
  absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec) const override {
    return AdmitJob(spec, nullptr);
  }
  absl::StatusOr<AdmittedJob> AdmitMatched(const v1::JobSpec& spec, const DataNames& names) const override {
    return AdmitJob(spec, &names);
  }
  absl::Status CheckCheckpoint(const AdmittedJob& job, const SafetensorsHeader& checkpoint) const override;

 private:
  struct Request;

  // `names` may be null.
  absl::StatusOr<AdmittedJob> AdmitJob(const v1::JobSpec& spec, const DataNames* names) const;

  // The steps of AdmitJob, in order. Each adds to the job's spec and to the violations. An error ends the
  // admission.

  // Describes the data, matched to `names` if not null. Keeps an error of the description for PlanTraining.
  absl::Status ReadData(const DataNames* names, Request* request) const;
  // Replaces the model's template by layers.
  absl::Status ExpandModel(Request* request) const;
  // Chooses the replicas' devices or nodes.
  absl::Status FillReplicas(Request* request) const;
  // Matches data and template to the names in the initial weights: their model knows the target's column.
  // If it knows the data's classes, the template gets its outputs. Columns stay those of the data.
  absl::Status MatchToWeights(Request* request) const;
  absl::Status PlanTraining(Request* request) const;
  // Checks that the initial weights fit the model.
  absl::Status CheckWeights(Request* request) const;
  // Check that the plan fits the cluster, or this machine's devices.
  absl::Status FitCluster(Request* request) const;
  absl::Status FitDevices(Request* request) const;

  // Describes the job's data, matched to `names` if not null. Errors are relative to the DatasetSpec.
  absl::StatusOr<DatasetInfo> DescribeData(const v1::JobSpec& spec, const DataNames* names) const;
  // Returns PlanJob's plan. Jobs with the same plan, such as most of a sweep's jobs, are planned once.
  absl::StatusOr<JobPlan> Plan(const v1::JobSpec& spec, const DatasetInfo& data) const;
  // Estimates the floating-point operations of `steps` optimizer steps. 0 if no estimate exists.
  double OperationsOf(const v1::JobSpec& spec, int64_t steps) const;

  const DatasetCatalog* const catalog_;
  const WeightsFinder* const weights_;
  const DeviceCheck devices_;
  const ClusterRules cluster_;
  // Keyed by the SHA-256 of PlanKey, or of the model.
  mutable Memo<JobPlan> plans_;
  mutable Memo<double> operations_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_ADMISSION_H_
