#ifndef TANDEM_TESTS_FAULT_FLAGS_H_
#define TANDEM_TESTS_FAULT_FLAGS_H_

#include <cstdint>
#include <initializer_list>

namespace tandem::testing {

// A whole number on the command line, as --name=number.
struct Flag {
  const char* name;
  int64_t* value;
};

// The main function of a test with its own flags besides GoogleTest's. Reads the flags and runs the tests.
// Returns the exit code: 2, after a line on stderr, if an argument is not a flag.
int RunTests(int argc, char** argv, std::initializer_list<Flag> flags);

// Returns the flag's value. If it is 0, returns `whole` if long suites run whole ($TANDEM_WHOLE is 1),
// otherwise `sample`.
int64_t Amount(int64_t flag, int64_t sample, int64_t whole);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_FLAGS_H_
