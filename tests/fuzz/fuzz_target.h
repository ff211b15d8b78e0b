#ifndef TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_
#define TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The functions of each fuzz target. README.md says how to run the targets.

namespace tandem {

// Returns correct inputs, which the fuzzer changes.
std::vector<std::string> Seeds();

}  // namespace tandem

// Takes any bytes. Returns 0. An error ends the program.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#endif  // TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_
