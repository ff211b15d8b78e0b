#ifndef TANDEM_ENGINE_DATA_FORMATS_SAMPLE_WRITER_H_
#define TANDEM_ENGINE_DATA_FORMATS_SAMPLE_WRITER_H_

#include <cstdint>
#include <vector>

#include "engine/data/formats/image_file.h"
#include "engine/data/formats/image_scale.h"

namespace tandem {

// Makes a sample from an image that comes row by row: converts its channels, scales it, and writes planes.
// Keeps the memory of a few rows for the next image. Not thread-safe.
class SampleWriter {
 public:
  // Sets where and how the next sample is written. `to` has form.channels * form.height * form.width bytes.
  void Reset(const PictureForm& form, uint8_t* to);

  // Begins the image. Uses the sizes and the channels of `image`, and not its pixels.
  void Begin(const Image& image);

  // The columns of the image that the sample needs.
  int64_t first_column() const { return scaler_.first_column(); }
  int64_t columns() const { return scaler_.columns(); }

  // Takes the next `count` rows, as RowScaler::Add.
  void Add(const uint8_t* rows, int64_t count, int64_t stride);

  // Ends the sample, after the last row.
  void Finish();

  // Takes a whole image: Begin, Add and Finish.
  void Write(const Image& image);

  // Returns memory for rows that the caller passes to Add. The memory is valid until the next call.
  uint8_t* RowMemory(int64_t bytes);

  // Frees the memory if the last image was very wide.
  void Trim();

 private:
  PictureForm form_;
  uint8_t* to_ = nullptr;
  bool drops_colours_ = false;  // Three channels become one.
  bool repeats_grey_ = false;   // One channel becomes three.
  int64_t image_width_ = 0;
  RowScaler scaler_;
  std::vector<uint8_t> grey_;    // If drops_colours_: the needed columns of a row.
  std::vector<uint8_t> memory_;  // See RowMemory.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_SAMPLE_WRITER_H_
