#include "engine/data/formats/npy_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/npy_array.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

// Converts an IEEE 754 binary16.
float HalfToFloat(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  float value = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                : exponent == 31 ? (fraction == 0 ? std::numeric_limits<float>::infinity()
                                                  : std::numeric_limits<float>::quiet_NaN())
                                 : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half >> 15 ? -value : value;
}

template <typename From, typename To, typename Convert>
void ConvertAll(absl::string_view elements, const Convert& convert, std::vector<To>* values) {
  for (size_t at = 0; at < elements.size(); at += sizeof(From)) {
    From from;
    std::memcpy(&from, elements.data() + at, sizeof(From));
    values->push_back(convert(from));
  }
}

// Appends elements as To. Integers that do not fit into int32_t become -1.
template <typename To>
void AddConverted(const NpyHeader& header, absl::string_view elements, std::vector<To>* values) {
  const auto convert = [](auto from) -> To {
    if constexpr (std::is_same_v<To, int32_t>) {
      return from < 0 || static_cast<double>(from) > 2147483647.0 ? -1 : static_cast<int32_t>(from);
    } else {
      return static_cast<To>(from);
    }
  };
  if (header.kind == 'f') {
    if (header.item_bytes == 2)
      ConvertAll<uint16_t>(
          elements, [&](uint16_t half) { return convert(HalfToFloat(half)); }, values);
    if (header.item_bytes == 4) ConvertAll<float>(elements, convert, values);
    if (header.item_bytes == 8) ConvertAll<double>(elements, convert, values);
  } else if (header.kind == 'i') {
    if (header.item_bytes == 1) ConvertAll<int8_t>(elements, convert, values);
    if (header.item_bytes == 2) ConvertAll<int16_t>(elements, convert, values);
    if (header.item_bytes == 4) ConvertAll<int32_t>(elements, convert, values);
    if (header.item_bytes == 8) ConvertAll<int64_t>(elements, convert, values);
  } else {
    if (header.item_bytes == 1) ConvertAll<uint8_t>(elements, convert, values);
    if (header.item_bytes == 2) ConvertAll<uint16_t>(elements, convert, values);
    if (header.item_bytes == 4) ConvertAll<uint32_t>(elements, convert, values);
    if (header.item_bytes == 8) ConvertAll<uint64_t>(elements, convert, values);
  }
}

bool IsInteger(const NpyHeader& header) { return header.kind != 'f'; }

// Returns the shape of a sample, without the first extent.
Shape ShapeOfArraySample(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
}

SampleType SampleTypeOf(const NpyHeader& header) {
  if (header.kind == 'f' || header.kind == 'b') return SampleType::kFloats;
  return header.kind == 'u' && header.item_bytes == 1 ? SampleType::kBytes : SampleType::kTokens;
}

// The arrays of a split.
struct NpySplit {
  std::string name;  // "train"
  NpyFile inputs;
  NpyFile targets;
  // Targets that are classes or tokens, and inputs that are tokens, if they are kept.
  std::vector<int32_t> target_numbers;
  std::vector<int32_t> input_tokens;
  std::string InputsField() const { return absl::StrCat("npy.", name, "_inputs"); }
  std::string TargetsField() const { return absl::StrCat("npy.", name, "_targets"); }
};

std::string Described(const NpyFile& file) {
  return absl::StrCat(file.what, " has dtype '", file.header.descr, "' and shape ",
                      file.header.shape.ToString());
}

absl::Status ReadHeaders(const v1::NpyArray& inputs, const v1::NpyArray& targets, NpySplit& split) {
  FieldViolations violations;
  const auto read = [&](const v1::NpyArray& array, const std::string& field, NpyFile& file) {
    if (array.path().empty()) {
      violations.Add(field + ".path", "is required: the path of an NPY file or an NPZ archive");
      return;
    }
    absl::StatusOr<NpyFile> header = ReadNpyHeader(array);
    violations.AddAll(field, header.status());
    if (header.ok()) file = *std::move(header);
  };
  read(inputs, split.InputsField(), split.inputs);
  read(targets, split.TargetsField(), split.targets);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  const Shape& in = split.inputs.header.shape;
  const Shape& out = split.targets.header.shape;
  if (in.rank() < 2 || in.elements() == 0) {
    violations.Add(
        split.InputsField(),
        absl::StrCat(Described(split.inputs), "; it must be [samples, ...], with at least one sample"));
  } else if (in.rank() > 5) {
    violations.Add(split.InputsField(),
                   absl::StrCat(Described(split.inputs), "; it has too many dimensions"));
  } else if (out.rank() < 1 || out[0] != in[0]) {
    violations.Add(split.TargetsField(), absl::StrCat(Described(split.targets), ", but ", split.inputs.what,
                                                      " has ", in[0], " samples"));
  }
  if (in.rank() >= 1 && in[0] > kMaxSamples) {
    violations.Add(split.InputsField(),
                   absl::StrCat("holds ", in[0], " samples; at most ", kMaxSamples, " can be read"));
  }
  return violations.ToStatus();
}

absl::StatusOr<TargetType> TargetTypeOf(const v1::NpySource& source, const NpySplit& train) {
  const NpyHeader& targets = train.targets.header;
  const Shape& shape = targets.shape;
  const bool one = shape.rank() == 1 || (shape.rank() == 2 && shape[1] == 1);
  const bool tokens = SampleTypeOf(train.inputs.header) == SampleType::kTokens && IsInteger(targets) &&
                      shape == train.inputs.header.shape;
  switch (source.targets()) {
    case v1::TARGET_KIND_CLASS:
      if (one && IsInteger(targets)) return TargetType::kClass;
      return FieldError(train.TargetsField(),
                        absl::StrCat(Described(train.targets), "; classes must be integers [samples]"));
    case v1::TARGET_KIND_TOKENS:
      if (tokens) return TargetType::kTokens;
      return FieldError(
          train.TargetsField(),
          absl::StrCat(Described(train.targets),
                       "; next tokens must be integers of the shape of inputs that are tokens, but ",
                       Described(train.inputs)));
    case v1::TARGET_KIND_VALUES:
      return TargetType::kValues;
    default:
      return tokens                      ? TargetType::kTokens
             : one && IsInteger(targets) ? TargetType::kClass
                                         : TargetType::kValues;
  }
}

// Reads an array of classes or tokens, and checks that all are below `classes`. If `classes` is 0, sets it to
// the largest plus 1. Stores the numbers in `kept` unless it is null. Returns whether all numbers are equal.
absl::StatusOr<bool> ReadNumbers(const v1::NpyArray& array, const NpyFile& file, const std::string& field,
                                 const char* noun, int64_t& classes, std::vector<int32_t>* kept) {
  std::vector<int32_t> numbers;  // Of a piece.
  int64_t index = 0;
  int32_t largest = 0, smallest = std::numeric_limits<int32_t>::max();
  const auto use = [&](absl::string_view elements) -> absl::Status {
    numbers.clear();
    AddConverted(file.header, elements, &numbers);
    for (const int32_t number : numbers) {
      if (number < 0) {
        return absl::InvalidArgumentError(absl::StrCat(file.what, " holds a number at index ", index,
                                                       " that is negative or above 2^31 - 1; it must be a ",
                                                       noun, " from 0"));
      }
      if (classes > 0 && number >= classes) {
        return absl::InvalidArgumentError(absl::StrCat(file.what, " holds ", noun, " ", number, " at index ",
                                                       index, ", outside the ", classes, " (0 to ",
                                                       classes - 1, ")"));
      }
      largest = std::max(largest, number);
      smallest = std::min(smallest, number);
      ++index;
    }
    if (kept != nullptr) kept->insert(kept->end(), numbers.begin(), numbers.end());
    return absl::OkStatus();
  };
  if (kept != nullptr) kept->reserve(file.header.shape.elements());
  FieldViolations violations;
  violations.AddAll(field, ReadNpyElements(array, file, use));
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  if (classes == 0) classes = int64_t{1} + largest;
  return largest == smallest;
}

struct Arrays {
  DatasetInfo info;
  NpySplit train{.name = "train", .inputs = {}, .targets = {}, .target_numbers = {}, .input_tokens = {}};
  NpySplit validation{
      .name = "validation", .inputs = {}, .targets = {}, .target_numbers = {}, .input_tokens = {}};
  bool validates = false;
};

// Checks that the validation arrays have the form of the training arrays.
absl::Status CheckAlike(const NpySplit& train, const NpySplit& validation) {
  FieldViolations violations;
  const auto check = [&](const NpyFile& a, const NpyFile& b, const std::string& field) {
    const bool same_kind = a.header.kind == b.header.kind ||
                           (IsInteger(a.header) && IsInteger(b.header) && field == validation.TargetsField());
    if (same_kind && ShapeOfArraySample(a.header.shape) == ShapeOfArraySample(b.header.shape)) return;
    violations.Add(field, absl::StrCat(Described(b), ", but ", Described(a),
                                       ": they must be alike but for the number of samples"));
  };
  check(train.inputs, validation.inputs, validation.InputsField());
  check(train.targets, validation.targets, validation.TargetsField());
  return violations.ToStatus();
}

// The numbers that are kept after describing.
enum class Kept { kNothing, kTargets, kAll };

// Reads the data that describing needs.
absl::StatusOr<Arrays> ReadArrays(const v1::NpySource& source, Kept kept) {
  Arrays arrays;
  DatasetInfo& info = arrays.info;
  FieldViolations violations;
  if (source.classes() < 0 || source.classes() > std::numeric_limits<int32_t>::max()) {
    violations.Add("npy.classes",
                   absl::StrCat("is ", source.classes(), "; it must be at least 2, or left out"));
  }
  violations.AddAll("", ReadHeaders(source.train_inputs(), source.train_targets(), arrays.train));
  arrays.validates = source.has_validation_inputs() || source.has_validation_targets();
  if (arrays.validates) {
    violations.AddAll(
        "", ReadHeaders(source.validation_inputs(), source.validation_targets(), arrays.validation));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  NpySplit& train = arrays.train;
  NpySplit& validation = arrays.validation;
  if (arrays.validates) TANDEM_RETURN_IF_ERROR(CheckAlike(train, validation));
  const NpyHeader& inputs = train.inputs.header;
  info.shape = ShapeOfArraySample(inputs.shape);
  info.sample_type = SampleTypeOf(inputs);
  TANDEM_ASSIGN_OR_RETURN(info.target_type, TargetTypeOf(source, train));
  info.train_samples = inputs.shape[0];
  info.validation_samples = arrays.validates ? validation.inputs.header.shape[0] : 0;
  info.classes = info.target_type == TargetType::kValues && info.sample_type != SampleType::kTokens
                     ? 0
                     : source.classes();
  if (info.sample_type == SampleType::kTokens && info.shape.rank() != 1) {
    return FieldError(
        train.InputsField(),
        absl::StrCat(Described(train.inputs),
                     "; integers other than uint8 are tokens, which must be [samples, length]"));
  }
  if (info.target_type == TargetType::kValues) {
    if (source.classes() != 0 && info.sample_type != SampleType::kTokens) {
      return FieldError(
          "npy.classes",
          absl::StrCat("is ", source.classes(), ", but the targets are values: ", Described(train.targets)));
    }
    info.target_shape = ShapeOfArraySample(train.targets.header.shape);
    if (info.target_shape.rank() == 0) info.target_shape = Shape({1});
  }
  // Inputs and targets share a vocabulary. A class is no token.
  int64_t vocabulary = info.target_type == TargetType::kClass ? 0 : info.classes;
  for (NpySplit* split : {&train, &validation}) {
    if (split == &validation && !arrays.validates) continue;
    const bool is_train = split == &train;
    const v1::NpyArray& from = is_train ? source.train_inputs() : source.validation_inputs();
    const v1::NpyArray& to = is_train ? source.train_targets() : source.validation_targets();
    const auto read_inputs = [&](int64_t& classes) {
      return ReadNumbers(from, split->inputs, split->InputsField(), "token", classes,
                         kept == Kept::kAll ? &split->input_tokens : nullptr);
    };
    const auto read_targets = [&](const char* noun, int64_t& classes) {
      return ReadNumbers(to, split->targets, split->TargetsField(), noun, classes,
                         kept != Kept::kNothing ? &split->target_numbers : nullptr);
    };
    if (info.target_type == TargetType::kTokens && is_train && info.classes == 0) {
      // The largest token of both.
      int64_t in = 0, out = 0;
      TANDEM_RETURN_IF_ERROR(read_inputs(in).status());
      TANDEM_RETURN_IF_ERROR(read_targets("token", out).status());
      vocabulary = info.classes = std::max(in, out);
      continue;
    }
    if (info.sample_type == SampleType::kTokens) TANDEM_RETURN_IF_ERROR(read_inputs(vocabulary).status());
    if (info.target_type == TargetType::kClass) {
      TANDEM_ASSIGN_OR_RETURN(const bool alike, read_targets("class", info.classes));
      if (is_train) info.one_label = alike;
    }
    if (info.target_type == TargetType::kTokens) {
      TANDEM_RETURN_IF_ERROR(read_targets("token", info.classes).status());
    }
  }
  if (info.target_type == TargetType::kTokens) info.target_shape = info.shape;
  const int64_t sample_bytes = info.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type)) +
                               info.target_shape.elements() * static_cast<int64_t>(sizeof(float));
  info.memory_bytes = (info.train_samples + info.validation_samples) * sample_bytes;
  return arrays;
}

// Reads an array of numbers in pieces. INVALID_ARGUMENT if a number is not finite.
absl::Status ReadFloats(const v1::NpyArray& array, const NpyFile& file,
                        absl::FunctionRef<void(const std::vector<float>&)> use) {
  std::vector<float> values;  // Of a piece.
  int64_t index = 0;
  return ReadNpyElements(array, file, [&](absl::string_view elements) -> absl::Status {
    values.clear();
    AddConverted(file.header, elements, &values);
    for (const float value : values) {
      if (!std::isfinite(value)) {
        return absl::InvalidArgumentError(
            absl::StrCat(file.what, " holds ", value, " at index ", index, "; all numbers must be finite"));
      }
      ++index;
    }
    use(values);
    return absl::OkStatus();
  });
}

// Reads an array of bytes or floats in pieces, as bytes.
absl::Status ReadSampleBytes(SampleType type, const v1::NpyArray& array, const NpyFile& file,
                             absl::FunctionRef<void(absl::Span<const uint8_t>)> use) {
  if (type == SampleType::kFloats) {
    return ReadFloats(array, file, [&](const std::vector<float>& values) { use(BytesOf(values)); });
  }
  return ReadNpyElements(array, file, [&](absl::string_view elements) {
    use(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(elements.data()), elements.size()));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<const Dataset>> Load(const DatasetInfo& info, const v1::NpyArray& inputs,
                                                    const v1::NpyArray& targets, NpySplit& split) {
  FieldViolations violations;
  std::vector<uint8_t> samples, outputs;
  if (info.sample_type == SampleType::kTokens) {
    samples = BytesOf(split.input_tokens);
  } else {
    samples.reserve(split.inputs.header.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type)));
    violations.AddAll(
        split.InputsField(),
        ReadSampleBytes(info.sample_type, inputs, split.inputs, [&](absl::Span<const uint8_t> piece) {
          samples.insert(samples.end(), piece.begin(), piece.end());
        }));
  }
  if (info.target_type == TargetType::kValues) {
    outputs.reserve(split.targets.header.shape.elements() * sizeof(float));
    violations.AddAll(split.TargetsField(),
                      ReadFloats(targets, split.targets, [&](const std::vector<float>& values) {
                        const std::vector<uint8_t> piece = BytesOf(values);
                        outputs.insert(outputs.end(), piece.begin(), piece.end());
                      }));
  } else {
    outputs = BytesOf(split.target_numbers);
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return std::make_unique<MemoryDataset>(
      info.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type)), std::move(samples),
      info.target_shape.elements() * SizeOf(DTypeOfTargets(info.target_type)), std::move(outputs));
}

}  // namespace

absl::Status StreamNpy(const v1::NpySource& source, UseSamples use) {
  TANDEM_ASSIGN_OR_RETURN(const Arrays arrays, ReadArrays(source, Kept::kTargets));
  const DatasetInfo& info = arrays.info;
  const NpySplit& train = arrays.train;
  const int32_t* const classes =
      info.target_type == TargetType::kClass ? train.target_numbers.data() : nullptr;
  FieldViolations violations;
  if (info.sample_type == SampleType::kTokens) {
    if (classes != nullptr) use(0, info.train_samples, nullptr, classes);
  } else {
    const int64_t bytes = info.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type));
    std::vector<uint8_t> samples;  // Whole samples, and the beginning of the next.
    int64_t first = 0;
    violations.AddAll(train.InputsField(),
                      ReadSampleBytes(info.sample_type, source.train_inputs(), train.inputs,
                                      [&](absl::Span<const uint8_t> piece) {
                                        samples.insert(samples.end(), piece.begin(), piece.end());
                                        const int64_t count = static_cast<int64_t>(samples.size()) / bytes;
                                        if (count == 0) return;
                                        use(first, count, samples.data(),
                                            classes == nullptr ? nullptr : classes + first);
                                        samples.erase(samples.begin(), samples.begin() + count * bytes);
                                        first += count;
                                      }));
  }
  if (info.target_type == TargetType::kValues) {
    violations.AddAll(train.TargetsField(),
                      ReadFloats(source.train_targets(), train.targets, [](const std::vector<float>&) {}));
  }
  return violations.ToStatus();
}

absl::StatusOr<DatasetInfo> DescribeNpy(const v1::NpySource& source) {
  TANDEM_ASSIGN_OR_RETURN(Arrays arrays, ReadArrays(source, Kept::kNothing));
  return std::move(arrays.info);
}

absl::StatusOr<OpenedDataset> OpenNpy(const v1::NpySource& source) {
  TANDEM_ASSIGN_OR_RETURN(Arrays arrays, ReadArrays(source, Kept::kAll));
  OpenedDataset opened;
  TANDEM_ASSIGN_OR_RETURN(opened.train,
                          Load(arrays.info, source.train_inputs(), source.train_targets(), arrays.train));
  if (arrays.validates) {
    TANDEM_ASSIGN_OR_RETURN(opened.validation, Load(arrays.info, source.validation_inputs(),
                                                    source.validation_targets(), arrays.validation));
  }
  opened.info = std::move(arrays.info);
  return opened;
}

}  // namespace tandem
