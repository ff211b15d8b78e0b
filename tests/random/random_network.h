#ifndef TANDEM_TESTS_RANDOM_RANDOM_NETWORK_H_
#define TANDEM_TESTS_RANDOM_RANDOM_NETWORK_H_

#include <cstdint>

#include "tandem/v1/model.pb.h"

namespace tandem {

// The vocabulary of networks that read tokens.
inline constexpr int64_t kRandomVocabulary = 11;

// Returns a small network of random layers with its defaults. CheckModel accepts it. Its inputs are images,
// rows, sequences or tokens. The same seed gives the same network.
v1::Model RandomNetwork(uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_TESTS_RANDOM_RANDOM_NETWORK_H_
