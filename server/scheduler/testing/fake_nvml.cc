// A fake NVML library. Reads its answers from the file TANDEM_FAKE_NVML at each call. For example:
//   driver 580.95.05
//   cuda 13000
//   gpu uuid=GPU-1;name=NVIDIA H200;cc=9.0;memory=1000;used=10;utilization=37;temperature=41;power=126500
//   pair 0 1 path=20;peer=0
//   xid 0 79 first
// A GPU supports only the fields in its line. "lost=1" makes a GPU stop answering.
// "links=switch,00000000:3B:00.0,down" lists a GPU's NVLinks. A line "init 9" makes nvmlInit_v2 return 9. A
// "pair" line has the path between two GPUs and the status of their peer access.
//
// An "xid" line is an error of a GPU. It is reported once to each event set with the GPU, if the GPU's line
// has "events=1". The last word makes lines differ. "refuses=999" in a GPU's line makes its registration
// fail, and a line "events 999" makes the creation of event sets fail. If TANDEM_OLD_NVML is defined, the
// library lacks all newer functions.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/scheduler/nvml_functions.h"

namespace {

using tandem::NvmlHandle;
using tandem::NvmlReturn;

using Gpu = std::map<std::string, std::string>;

struct Machine {
  std::map<std::string, std::string> system;
  std::vector<Gpu> gpus;
  // Keyed by the GPUs' positions, smaller first.
  std::map<std::pair<unsigned, unsigned>, Gpu> pairs;
  // The "xid" lines without their first word.
  std::vector<std::string> xids;
};

Gpu ReadFields(const std::string& text) {
  Gpu gpu;
  std::istringstream fields(text);
  std::string field;
  while (std::getline(fields, field, ';')) {
    gpu[field.substr(0, field.find('='))] = field.substr(field.find('=') + 1);
  }
  return gpu;
}

Machine ReadMachine() {
  Machine machine;
  const char* const path = std::getenv("TANDEM_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string kind = line.substr(0, space);
    const std::string rest = line.substr(space + 1);
    if (kind == "gpu") {
      machine.gpus.push_back(ReadFields(rest));
    } else if (kind == "pair") {
      std::istringstream words(rest);
      std::pair<unsigned, unsigned> pair;
      std::string fields;
      words >> pair.first >> pair.second >> fields;
      machine.pairs[pair] = ReadFields(fields);
    } else if (kind == "xid") {
      machine.xids.push_back(rest);
    } else {
      machine.system[kind] = rest;
    }
  }
  return machine;
}

// Handles are positions plus 1.
NvmlHandle HandleOf(unsigned index) { return reinterpret_cast<NvmlHandle>(std::size_t{index} + 1); }

// Reads a GPU's `field` in the file.
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

#ifndef TANDEM_OLD_NVML

// Reads the `field` of a pair of GPUs in the file.
NvmlReturn FindOfPair(NvmlHandle device, NvmlHandle other, const char* field, int* number) {
  const auto index = [](NvmlHandle handle) {
    return static_cast<unsigned>(reinterpret_cast<std::size_t>(handle) - 1);
  };
  const Machine machine = ReadMachine();
  const auto pair = machine.pairs.find(std::minmax(index(device), index(other)));
  if (pair == machine.pairs.end() || pair->second.count(field) == 0) return tandem::kNvmlNotSupported;
  *number = std::stoi(pair->second.at(field));
  return tandem::kNvmlSuccess;
}

// Reads the other end of an NVLink.
NvmlReturn FindLink(NvmlHandle device, unsigned link, std::string* remote) {
  std::string text;
  const NvmlReturn result = Find(device, "links", &text);
  std::istringstream links(text);
  for (unsigned i = 0; i <= link; ++i) {
    if (!std::getline(links, *remote, ',')) return tandem::kNvmlNotSupported;
  }
  return result;
}

struct EventSet {
  std::set<NvmlHandle> gpus;
};

#endif  // TANDEM_OLD_NVML

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

#ifndef TANDEM_OLD_NVML

NvmlReturn nvmlDeviceGetTopologyCommonAncestor(NvmlHandle device, NvmlHandle other, int* level) {
  return FindOfPair(device, other, "path", level);
}

NvmlReturn nvmlDeviceGetP2PStatus(NvmlHandle device, NvmlHandle other, int capability, int* status) {
  if (capability != tandem::kNvmlReadsOfPeers) return tandem::kNvmlNotSupported;
  return FindOfPair(device, other, "peer", status);
}

NvmlReturn nvmlDeviceGetNvLinkState(NvmlHandle device, unsigned link, int* is_active) {
  std::string remote;
  const NvmlReturn result = FindLink(device, link, &remote);
  *is_active = remote == "down" ? 0 : 1;
  return result;
}

NvmlReturn nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlHandle device, unsigned link, tandem::NvmlPciInfo* info) {
  std::string remote;
  const NvmlReturn result = FindLink(device, link, &remote);
  return Copy(result, remote, info->bus_id, sizeof(info->bus_id));
}

NvmlReturn nvmlDeviceGetNvLinkRemoteDeviceType(NvmlHandle device, unsigned link, int* type) {
  std::string remote;
  const NvmlReturn result = FindLink(device, link, &remote);
  *type = remote == "switch" ? tandem::kNvmlRemoteIsSwitch : 0;
  return result;
}

NvmlReturn nvmlEventSetCreate(tandem::NvmlEventSet* set) {
  const Machine machine = ReadMachine();
  if (const auto fails = machine.system.find("events"); fails != machine.system.end()) {
    return std::stoi(fails->second);
  }
  *set = reinterpret_cast<tandem::NvmlEventSet>(new EventSet);
  return tandem::kNvmlSuccess;
}

NvmlReturn nvmlEventSetFree(tandem::NvmlEventSet set) {
  delete reinterpret_cast<EventSet*>(set);
  return tandem::kNvmlSuccess;
}

NvmlReturn nvmlDeviceRegisterEvents(NvmlHandle device, unsigned long long types, tandem::NvmlEventSet set) {
  int refusal = 0;
  if (FindNumber(device, "refuses", &refusal) == tandem::kNvmlSuccess) return refusal;
  std::string events;
  const NvmlReturn result = Find(device, "events", &events);
  if (result == tandem::kNvmlSuccess && types == tandem::kNvmlXid) {
    reinterpret_cast<EventSet*>(set)->gpus.insert(device);
  }
  return result;
}

NvmlReturn nvmlEventSetWait_v2(tandem::NvmlEventSet set, tandem::NvmlEvent* event, unsigned milliseconds) {
  // Destroyed when the library is closed.
  static std::set<std::string> told;
  const std::set<NvmlHandle>& gpus = reinterpret_cast<EventSet*>(set)->gpus;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (true) {
    const Machine machine = ReadMachine();
    for (const std::string& line : machine.xids) {
      std::istringstream words(line);
      unsigned index = 0;
      unsigned long long xid = 0;
      words >> index >> xid;
      if (gpus.count(HandleOf(index)) == 0 || !told.insert(line).second) continue;
      *event = {HandleOf(index), tandem::kNvmlXid, xid, 0, 0};
      return tandem::kNvmlSuccess;
    }
    for (const NvmlHandle gpu : gpus) {
      std::string uuid;
      if (Find(gpu, "uuid", &uuid) == tandem::kNvmlGpuIsLost) return tandem::kNvmlGpuIsLost;
    }
    if (std::chrono::steady_clock::now() >= end) return tandem::kNvmlTimeout;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

#endif  // TANDEM_OLD_NVML

}  // extern "C"
