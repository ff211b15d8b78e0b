#ifndef TANDEM_ENGINE_DATA_FORMATS_NPY_NUMBERS_H_
#define TANDEM_ENGINE_DATA_FORMATS_NPY_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/data/formats/npy_array.h"
#include "engine/tensor/half.h"

namespace tandem {

// Calls `use` with each element of `elements`, in its own type. A float16 becomes a float. `elements` are in
// C order and little-endian.
template <typename Use>
void ForEachNpyNumber(const NpyHeader& header, absl::string_view elements, const Use& use) {
  const auto each = [&]<typename From>(From from) {
    for (size_t at = 0; at + sizeof(From) <= elements.size(); at += sizeof(From)) {
      std::memcpy(&from, elements.data() + at, sizeof(From));
      if constexpr (std::is_same_v<From, Float16>) {
        use(static_cast<float>(from));
      } else {
        use(from);
      }
    }
  };
  if (header.kind == 'f') {
    if (header.item_bytes == 2) each(Float16());
    if (header.item_bytes == 4) each(float());
    if (header.item_bytes == 8) each(double());
  } else if (header.kind == 'i') {
    if (header.item_bytes == 1) each(int8_t());
    if (header.item_bytes == 2) each(int16_t());
    if (header.item_bytes == 4) each(int32_t());
    if (header.item_bytes == 8) each(int64_t());
  } else {
    if (header.item_bytes == 1) each(uint8_t());
    if (header.item_bytes == 2) each(uint16_t());
    if (header.item_bytes == 4) each(uint32_t());
    if (header.item_bytes == 8) each(uint64_t());
  }
}

// Appends the elements as To, rounded to the nearest.
template <typename To>
void AddNpyNumbers(const NpyHeader& header, absl::string_view elements, std::vector<To>* numbers) {
  ForEachNpyNumber(header, elements, [&](auto number) { numbers->push_back(static_cast<To>(number)); });
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_NPY_NUMBERS_H_
