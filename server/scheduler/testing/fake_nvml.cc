// A library in place of NVML. What it answers stands in the file that TANDEM_FAKE_NVML names, read anew at
// each call; lines such as
//   driver 580.95.05
//   cuda 13000
//   gpu uuid=GPU-1;name=NVIDIA H200;cc=9.0;memory=1000;used=10;utilization=37;temperature=41;power=126500
// A line "init 9" lets nvmlInit_v2 fail so, "lost=1" makes a GPU answer no more, and what a GPU's line leaves
// out it does not support.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "server/scheduler/nvml_functions.h"

namespace {

using tandem::NvmlHandle;
using tandem::NvmlReturn;

using Gpu = std::map<std::string, std::string>;

struct Machine {
  std::map<std::string, std::string> system;
  std::vector<Gpu> gpus;
};

Machine ReadMachine() {
  Machine machine;
  const char* const path = std::getenv("TANDEM_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    if (line.substr(0, space) != "gpu") {
      machine.system[line.substr(0, space)] = line.substr(space + 1);
      continue;
    }
    Gpu& gpu = machine.gpus.emplace_back();
    std::istringstream fields(line.substr(space + 1));
    std::string field;
    while (std::getline(fields, field, ';')) {
      gpu[field.substr(0, field.find('='))] = field.substr(field.find('=') + 1);
    }
  }
  return machine;
}

// Handles are positions from 1.
NvmlHandle HandleOf(unsigned index) { return reinterpret_cast<NvmlHandle>(std::size_t{index} + 1); }

// What the file says of `field`.
NvmlReturn Find(NvmlHandle device, const char* field, std::string* text) {
  const Machine machine = ReadMachine();
  const Gpu& gpu = machine.gpus.at(reinterpret_cast<std::size_t>(device) - 1);
  if (gpu.count("lost") > 0) return tandem::kNvmlGpuIsLost;
  const auto found = gpu.find(field);
  if (found == gpu.end()) return tandem::kNvmlNotSupported;
  *text = found->second;
  return tandem::kNvmlSuccess;
}

NvmlReturn Copy(NvmlReturn result, const std::string& text, char* to, unsigned size) {
  if (result == tandem::kNvmlSuccess) {
    std::strncpy(to, text.c_str(), size - 1);
    to[size - 1] = '\0';
  }
  return result;
}

template <typename Number>
NvmlReturn FindNumber(NvmlHandle device, const char* field, Number* number) {
  std::string text;
  const NvmlReturn result = Find(device, field, &text);
  if (result == tandem::kNvmlSuccess) *number = static_cast<Number>(std::stoll(text));
  return result;
}

}  // namespace

extern "C" {

NvmlReturn nvmlInit_v2() {
  const Machine machine = ReadMachine();
  const auto found = machine.system.find("init");
  return found == machine.system.end() ? tandem::kNvmlSuccess : std::stoi(found->second);
}

NvmlReturn nvmlShutdown() { return tandem::kNvmlSuccess; }

const char* nvmlErrorString(NvmlReturn result) {
  switch (result) {
    case tandem::kNvmlDriverNotLoaded:
      return "Driver Not Loaded";
    case tandem::kNvmlGpuIsLost:
      return "GPU is lost";
    case tandem::kNvmlVersionMismatch:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

NvmlReturn nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return Copy(tandem::kNvmlSuccess, ReadMachine().system["driver"], version, size);
}

NvmlReturn nvmlSystemGetCudaDriverVersion(int* version) {
  *version = std::stoi("0" + ReadMachine().system["cuda"]);
  return tandem::kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(ReadMachine().gpus.size());
  return tandem::kNvmlSuccess;
}

NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlHandle* device) {
  std::string uuid;
  *device = HandleOf(index);
  return Find(*device, "uuid", &uuid);
}

NvmlReturn nvmlDeviceGetName(NvmlHandle device, char* name, unsigned size) {
  std::string text;
  const NvmlReturn result = Find(device, "name", &text);
  return Copy(result, text, name, size);
}

NvmlReturn nvmlDeviceGetUUID(NvmlHandle device, char* uuid, unsigned size) {
  std::string text;
  const NvmlReturn result = Find(device, "uuid", &text);
  return Copy(result, text, uuid, size);
}

NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlHandle device, tandem::NvmlPciInfo* info) {
  std::string text;
  const NvmlReturn result = Find(device, "pci", &text);
  return Copy(result, text, info->bus_id, sizeof(info->bus_id));
}

NvmlReturn nvmlDeviceGetMemoryInfo(NvmlHandle device, tandem::NvmlMemory* memory) {
  FindNumber(device, "used", &memory->used);
  return FindNumber(device, "memory", &memory->total);
}

NvmlReturn nvmlDeviceGetCudaComputeCapability(NvmlHandle device, int* major, int* minor) {
  std::string text;
  const NvmlReturn result = Find(device, "cc", &text);
  if (result != tandem::kNvmlSuccess) return result;
  *major = std::stoi(text);
  *minor = std::stoi(text.substr(text.find('.') + 1));
  return result;
}

NvmlReturn nvmlDeviceGetMigMode(NvmlHandle device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return FindNumber(device, "mig", current);
}

NvmlReturn nvmlDeviceGetComputeMode(NvmlHandle device, int* mode) { return FindNumber(device, "mode", mode); }

NvmlReturn nvmlDeviceGetUtilizationRates(NvmlHandle device, tandem::NvmlUtilization* utilization) {
  return FindNumber(device, "utilization", &utilization->gpu);
}

NvmlReturn nvmlDeviceGetTemperature(NvmlHandle device, int, unsigned* celsius) {
  return FindNumber(device, "temperature", celsius);
}

NvmlReturn nvmlDeviceGetPowerUsage(NvmlHandle device, unsigned* milliwatts) {
  return FindNumber(device, "power", milliwatts);
}

NvmlReturn nvmlDeviceGetEnforcedPowerLimit(NvmlHandle device, unsigned* milliwatts) {
  return FindNumber(device, "power limit", milliwatts);
}

NvmlReturn nvmlDeviceGetTotalEccErrors(NvmlHandle device, int type, int, unsigned long long* errors) {
  return FindNumber(device, type == tandem::kNvmlCorrectedErrors ? "corrected" : "uncorrected", errors);
}

}  // extern "C"
