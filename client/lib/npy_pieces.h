#ifndef TANDEM_CLIENT_LIB_NPY_PIECES_H_
#define TANDEM_CLIENT_LIB_NPY_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::client {

// A part of the samples of an NPY file, as an NPY file.
struct NpyPiece {
  std::string content;
  // The number of the first sample in the whole file, from 0.
  int64_t first_sample = 0;
};

// Cuts an NPY file (numpy.lib.format, versions 1 to 3) along its first dimension. Each piece has at most
// `samples` samples and about `bytes` bytes, but at least one sample. `sample_elements` is the number of
// elements of a sample. INVALID_ARGUMENT, with the end of a sentence "cannot cut FILE: ", if the file is no
// whole file of numpy.save, if it is in Fortran order, or if its first dimension does not count samples.
absl::StatusOr<std::vector<NpyPiece>> CutNpy(absl::string_view content, int64_t sample_elements, size_t bytes,
                                             int64_t samples);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_NPY_PIECES_H_
