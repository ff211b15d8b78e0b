#ifndef TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_
#define TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What each fuzz target has. README.md says how they are run.

namespace tandem {

// Inputs that are right, from which wrong ones are made.
std::vector<std::string> Seeds();

}  // namespace tandem

// Takes any bytes. Returns 0; what is wrong ends the program.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#endif  // TANDEM_TESTS_FUZZ_FUZZ_TARGET_H_
