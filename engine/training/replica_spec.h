#ifndef TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_

#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Stands alone in Replicas.devices for all of a kind; the daemon puts their names in its place.
inline constexpr char kAllDevices[] = "all";

// The least that a measured load is of the largest.
inline constexpr double kLeastMeasuredLoad = 0.25;

// Sets what has a default and is left out: the count, the kind of devices that are named, the way to be
// parallel and its settings. Names of devices become whole ("devices/cpu:0"). What is wrong stays as it is.
void FillReplicasDefaults(v1::Replicas* replicas);

// The loads of the replicas that are made, those of load 0 left out, in the order of ranks: as many as there
// are replicas. `replicas` has its defaults.
std::vector<double> LoadsOf(const v1::Replicas& replicas);

// Puts loads that were measured in place of the wish for them.
void SettleLoads(const std::vector<double>& loads, v1::Replicas* replicas);

// The devices on which there are replicas, where devices are named; empty otherwise. Replica r, of those that
// are made, is on number r modulo their number.
std::vector<std::string> UsedDevices(const v1::Replicas& replicas);

// How many devices the replicas are on: those, or what replicas_per_device makes of their number.
int DeviceCountOf(const v1::Replicas& replicas);

// Loads of which the first is as large, in proportion, as any replica's can become: LoadsOf, the largest
// first, or, where they are measured, what that may find.
std::vector<double> LargestLoads(const v1::Replicas& replicas);

// What is wrong with spec.replicas, for itself and for the batches, by fields relative to the JobSpec. `spec`
// has its defaults.
void CheckReplicas(const v1::JobSpec& spec, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_
