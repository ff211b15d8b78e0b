#ifndef TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_
#define TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_

namespace tandem {

// Has OpenMP's threads sleep while they wait, unless the environment says how they do: those that spin would
// slow each other down. Starts the program anew with `argv`, main's, for OpenMP reads it when a process
// starts.
void WaitPassively(char** argv);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCH_PASSIVE_WAITS_H_
