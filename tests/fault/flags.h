#ifndef TANDEM_TESTS_FAULT_FLAGS_H_
#define TANDEM_TESTS_FAULT_FLAGS_H_

#include <cstdint>
#include <initializer_list>

namespace tandem::testing {

// A whole number that the command line may give, as --name=number.
struct Flag {
  const char* name;
  int64_t* value;
};

// The main of a test that has flags of its own beside GoogleTest's: reads them and runs the tests. The exit
// code, which is 2, after a line on stderr, where an argument is none of the flags.
int RunTests(int argc, char** argv, std::initializer_list<Flag> flags);

// What a flag says; where it is 0, `whole` where long suites run whole ($TANDEM_WHOLE is 1), else `sample`.
int64_t Amount(int64_t flag, int64_t sample, int64_t whole);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_FLAGS_H_
