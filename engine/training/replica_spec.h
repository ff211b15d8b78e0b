#ifndef TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_

#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The only entry of Replicas.devices that names all devices of a kind. The daemon replaces it by their names.
inline constexpr char kAllDevices[] = "all";

// The most replicas on a device.
inline constexpr int kMaxReplicasPerDevice = 16;

// The least measured load, relative to the largest.
inline constexpr double kLeastMeasuredLoad = 0.25;

// Returns whether replicas with this kind of device take devices of any kind.
bool IsAnyKind(v1::DeviceKind kind);

// Returns the name of a device, such as "devices/cpu:0". `kind` is CPU, GPU or REFERENCE.
std::string DeviceName(v1::DeviceKind kind, int index);

// Sets missing fields with a default: the count, the kind of the named devices, the parallelism and its
// settings. Completes device names ("devices/cpu:0"). Wrong fields stay.
void FillReplicasDefaults(v1::Replicas* replicas);

// Returns the loads of all replicas in the order of ranks, without loads of 0: an entry for each replica.
// `replicas` has its defaults.
std::vector<double> LoadsOf(const v1::Replicas& replicas);

// Writes measured loads into `replicas`, in place of the request to measure.
void SettleLoads(const std::vector<double>& loads, v1::Replicas* replicas);

// Returns the devices that have replicas, if devices are named, else an empty vector. Replica r is on entry r
// modulo the vector's size.
std::vector<std::string> UsedDevices(const v1::Replicas& replicas);

// Returns the number of devices with replicas: UsedDevices, or as replicas_per_device gives it.
int DeviceCountOf(const v1::Replicas& replicas);

// Returns the loads that give rank 0 the largest share that any replica can get, to plan memory. Without
// auto_worker_load these are LoadsOf, the largest load first. With it, all other replicas have the least
// measured load.
std::vector<double> LargestLoads(const v1::Replicas& replicas);

// Adds the mistakes in spec.replicas, alone and with the batch sizes. Fields are relative to the JobSpec.
// `spec` has its defaults.
void CheckReplicas(const v1::JobSpec& spec, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_SPEC_H_
