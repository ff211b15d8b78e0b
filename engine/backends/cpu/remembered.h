#ifndef TANDEM_ENGINE_BACKENDS_CPU_REMEMBERED_H_
#define TANDEM_ENGINE_BACKENDS_CPU_REMEMBERED_H_

#include <string>

#include "engine/backend/algorithm_memory.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Returns the measurements of this process and of earlier processes, in the file TANDEM_CPU_ALGORITHMS.
AlgorithmMemory& Remembered();

// Returns the beginning of a measurement's key: oneDNN, the processor's instructions, threads and type.
std::string MachineText(const Lowering& lowering);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_REMEMBERED_H_
