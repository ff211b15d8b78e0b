#ifndef TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_
#define TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_

namespace tandem {

// Lets OpenMP's threads sleep while they wait, unless the environment chooses otherwise: threads that spin
// would slow each other down. Restarts the program with main's `argv`, because OpenMP reads the setting at
// the start of a process.
void WaitPassively(char** argv);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_
