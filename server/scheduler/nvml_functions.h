#ifndef TANDEM_SERVER_SCHEDULER_NVML_FUNCTIONS_H_
#define TANDEM_SERVER_SCHEDULER_NVML_FUNCTIONS_H_

// The used parts of NVIDIA's management library (NVML), as its header nvml.h declares them. The header
// belongs to the CUDA toolkit, which a machine with a GPU may not have. These declarations have not changed
// since version 11 of the library.

namespace tandem {

extern "C" {

// nvmlReturn_t; 0 means success.
using NvmlReturn = int;
constexpr NvmlReturn kNvmlSuccess = 0;
constexpr NvmlReturn kNvmlNotSupported = 3;
constexpr NvmlReturn kNvmlNoPermission = 4;
constexpr NvmlReturn kNvmlDriverNotLoaded = 9;
constexpr NvmlReturn kNvmlTimeout = 10;
constexpr NvmlReturn kNvmlGpuIsLost = 15;
constexpr NvmlReturn kNvmlVersionMismatch = 18;
constexpr NvmlReturn kNvmlGpuNotFound = 28;

// The size of text buffers. NVML_DEVICE_NAME_V2_BUFFER_SIZE and the other sizes are not larger.
constexpr unsigned kNvmlTextSize = 96;

// nvmlDevice_t.
using NvmlHandle = struct NvmlDeviceState*;

// nvmlMemory_t, in bytes.
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlUtilization_t, in percent.
struct NvmlUtilization {
  unsigned gpu;
  unsigned memory;
};

// nvmlPciInfo_t.
struct NvmlPciInfo {
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};

constexpr int kNvmlTemperatureOfDie = 0;          // NVML_TEMPERATURE_GPU
constexpr int kNvmlComputeProhibited = 2;         // NVML_COMPUTEMODE_PROHIBITED
constexpr int kNvmlCorrectedErrors = 0;           // NVML_MEMORY_ERROR_TYPE_CORRECTED
constexpr int kNvmlUncorrectedErrors = 1;         // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kNvmlErrorsSinceTheDriverCame = 0;  // NVML_VOLATILE_ECC
constexpr int kNvmlReadsOfPeers = 0;              // NVML_P2P_CAPS_INDEX_READ
constexpr int kNvmlPeerIsReached = 0;             // NVML_P2P_STATUS_OK
constexpr int kNvmlRemoteIsSwitch = 2;            // NVML_NVLINK_DEVICE_TYPE_SWITCH
constexpr unsigned kNvmlMostLinks = 36;           // NVML_NVLINK_MAX_LINKS, of the newest library

// nvmlGpuTopologyLevel_t.
constexpr int kNvmlSameBoard = 0;
constexpr int kNvmlOneSwitch = 10;
constexpr int kNvmlSwitches = 20;
constexpr int kNvmlHostBridge = 30;
constexpr int kNvmlNumaNode = 40;
constexpr int kNvmlSystem = 50;

// nvmlEventSet_t.
using NvmlEventSet = struct NvmlEventSetState*;

constexpr unsigned long long kNvmlXid = 8;  // nvmlEventTypeXidCriticalError

// nvmlEventData_t.
struct NvmlEvent {
  NvmlHandle device;
  unsigned long long type;
  unsigned long long data;  // For an XID, its number.
  unsigned gpu_instance;
  unsigned compute_instance;
};

}  // extern "C"

// NVML's functions with these names, without the prefix "nvml".
struct NvmlFunctions {
  NvmlReturn (*Init_v2)();
  NvmlReturn (*Shutdown)();
  const char* (*ErrorString)(NvmlReturn);
  NvmlReturn (*SystemGetDriverVersion)(char* version, unsigned size);
  NvmlReturn (*SystemGetCudaDriverVersion)(int* version);
  NvmlReturn (*DeviceGetCount_v2)(unsigned* count);
  NvmlReturn (*DeviceGetHandleByIndex_v2)(unsigned index, NvmlHandle* device);
  NvmlReturn (*DeviceGetName)(NvmlHandle device, char* name, unsigned size);
  NvmlReturn (*DeviceGetUUID)(NvmlHandle device, char* uuid, unsigned size);
  NvmlReturn (*DeviceGetPciInfo_v3)(NvmlHandle device, NvmlPciInfo* info);
  NvmlReturn (*DeviceGetMemoryInfo)(NvmlHandle device, NvmlMemory* memory);
  NvmlReturn (*DeviceGetCudaComputeCapability)(NvmlHandle device, int* major, int* minor);

  // Null in older libraries, and NOT_SUPPORTED on GPUs without the feature.
  NvmlReturn (*DeviceGetMigMode)(NvmlHandle device, unsigned* current, unsigned* pending);
  NvmlReturn (*DeviceGetComputeMode)(NvmlHandle device, int* mode);
  NvmlReturn (*DeviceGetUtilizationRates)(NvmlHandle device, NvmlUtilization* utilization);
  NvmlReturn (*DeviceGetTemperature)(NvmlHandle device, int sensor, unsigned* celsius);
  NvmlReturn (*DeviceGetPowerUsage)(NvmlHandle device, unsigned* milliwatts);
  NvmlReturn (*DeviceGetEnforcedPowerLimit)(NvmlHandle device, unsigned* milliwatts);
  NvmlReturn (*DeviceGetTotalEccErrors)(NvmlHandle device, int type, int counter, unsigned long long* errors);
  NvmlReturn (*EventSetCreate)(NvmlEventSet* set);
  NvmlReturn (*EventSetFree)(NvmlEventSet set);
  NvmlReturn (*EventSetWait_v2)(NvmlEventSet set, NvmlEvent* event, unsigned milliseconds);
  NvmlReturn (*DeviceRegisterEvents)(NvmlHandle device, unsigned long long types, NvmlEventSet set);
  NvmlReturn (*DeviceGetTopologyCommonAncestor)(NvmlHandle device, NvmlHandle other, int* level);
  NvmlReturn (*DeviceGetP2PStatus)(NvmlHandle device, NvmlHandle other, int capability, int* status);
  NvmlReturn (*DeviceGetNvLinkState)(NvmlHandle device, unsigned link, int* is_active);
  NvmlReturn (*DeviceGetNvLinkRemotePciInfo_v2)(NvmlHandle device, unsigned link, NvmlPciInfo* info);
  NvmlReturn (*DeviceGetNvLinkRemoteDeviceType)(NvmlHandle device, unsigned link, int* type);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_NVML_FUNCTIONS_H_
