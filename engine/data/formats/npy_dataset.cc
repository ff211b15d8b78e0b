#include "engine/data/formats/npy_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
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
#include "engine/data/formats/npy_numbers.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

// Stands for an element that is no whole number, or is too large.
constexpr int64_t kNoWholeNumber = std::numeric_limits<int64_t>::max();

int64_t WholeNumber(uint64_t number) {
  return number > static_cast<uint64_t>(kNoWholeNumber) ? kNoWholeNumber : static_cast<int64_t>(number);
}
int64_t WholeNumber(double number) {
  // Comparisons with NaN are false.
  const bool whole = std::abs(number) <= 9007199254740992.0 && std::floor(number) == number;
  return whole ? static_cast<int64_t>(number) : kNoWholeNumber;
}

// Appends the elements as whole numbers.
void AddWholeNumbers(const NpyHeader& header, absl::string_view elements, std::vector<int64_t>* numbers) {
  ForEachNpyNumber(header, elements, [&](auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>) {
      numbers->push_back(WholeNumber(static_cast<double>(number)));
    } else if constexpr (std::is_signed_v<decltype(number)>) {
      numbers->push_back(number);
    } else {
      numbers->push_back(WholeNumber(static_cast<uint64_t>(number)));
    }
  });
}

bool IsInteger(const NpyHeader& header) { return header.kind != 'f'; }

bool IsOneNumber(const Shape& shape) { return shape.rank() == 1 || (shape.rank() == 2 && shape[1] == 1); }

// Returns whether rows [samples, classes] may be one-hot.
bool MayBeOneHot(const Shape& shape) { return shape.rank() == 2 && shape[1] > 1; }

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

absl::Status NoBytes(const NpySplit& split) {
  return FieldError(split.InputsField(), absl::StrCat(Described(split.inputs),
                                                      "; bytes must be uint8: save array.astype('uint8')"));
}

absl::StatusOr<SampleType> SampleTypeOf(const v1::NpySource& source, const NpySplit& train) {
  const NpyHeader& inputs = train.inputs.header;
  const NpyHeader& targets = train.targets.header;
  const bool bytes = inputs.kind == 'u' && inputs.item_bytes == 1;
  switch (source.inputs()) {
    case v1::SAMPLE_KIND_BYTES:
      if (bytes) return SampleType::kBytes;
      return NoBytes(train);
    case v1::SAMPLE_KIND_TOKENS:
      if (IsInteger(inputs)) return SampleType::kTokens;
      return FieldError(
          train.InputsField(),
          absl::StrCat(Described(train.inputs), "; tokens must be integers: save array.astype('int32')"));
    case v1::SAMPLE_KIND_FLOATS:
      return SampleType::kFloats;
    default:
      break;
  }
  if (source.targets() == v1::TARGET_KIND_TOKENS && IsInteger(inputs)) return SampleType::kTokens;
  if (bytes) return SampleType::kBytes;
  const bool next_tokens = source.targets() == v1::TARGET_KIND_UNSPECIFIED && IsInteger(inputs) &&
                           inputs.kind != 'b' && IsInteger(targets) && targets.shape == inputs.shape &&
                           !IsOneNumber(inputs.shape);
  return next_tokens ? SampleType::kTokens : SampleType::kFloats;
}

absl::StatusOr<TargetKind> TargetTypeOf(const v1::NpySource& source, SampleType samples,
                                        const NpySplit& train) {
  const NpyHeader& targets = train.targets.header;
  const Shape& shape = targets.shape;
  const bool tokens =
      samples == SampleType::kTokens && IsInteger(targets) && shape == train.inputs.header.shape;
  switch (source.targets()) {
    case v1::TARGET_KIND_CLASS:
      if (IsOneNumber(shape) || MayBeOneHot(shape)) return TargetKind::kClass;
      return FieldError(
          train.TargetsField(),
          absl::StrCat(Described(train.targets),
                       "; classes must be integers [samples], or one-hot rows [samples, classes]"));
    case v1::TARGET_KIND_TOKENS:
      if (tokens) return TargetKind::kTokens;
      return FieldError(
          train.TargetsField(),
          absl::StrCat(Described(train.targets),
                       "; next tokens must be integers of the shape of inputs that are tokens, but ",
                       Described(train.inputs)));
    case v1::TARGET_KIND_VALUES:
      return TargetKind::kValues;
    default:
      return tokens                                     ? TargetKind::kTokens
             : IsOneNumber(shape) && IsInteger(targets) ? TargetKind::kClass
                                                        : TargetKind::kValues;
  }
}

// Returns the shape of a sample, [channels, height, width] if the array has images.
absl::StatusOr<Shape> SampleShapeOf(const v1::NpySource& source, const NpySplit& train) {
  const Shape& shape = train.inputs.header.shape;
  const Shape sample = shape.From(1);
  if (source.layout() == v1::ARRAY_LAYOUT_UNSPECIFIED) return sample;
  if (shape.rank() == 3) return Shape({1, shape[1], shape[2]});
  if (source.layout() == v1::ARRAY_LAYOUT_NCHW) return sample;
  if (shape.rank() == 4) return Shape({shape[3], shape[1], shape[2]});
  return FieldError(train.InputsField(),
                    absl::StrCat(Described(train.inputs),
                                 "; the layout nhwc is for [samples, height, width, channels] and [samples, "
                                 "height, width]; correct npy.layout"));
}

// Whole numbers of an array, and the rules that they must keep.
struct Numbers {
  const char* noun = "class";           // "class" or "token".
  int64_t classes = 0;                  // Numbers must be below. If 0, becomes the largest plus 1.
  std::optional<int64_t> ignored = {};  // A negative number that is allowed.
  bool may_be_ignored = false;          // Whether a message may offer this.
  std::vector<int32_t>* kept = nullptr;
  bool has_ignored = false;  // Becomes whether an ignored number was found.
  bool all_alike = false;    // Becomes whether all numbers that are not ignored are equal.
};

// Reads an array of classes or tokens, and checks each number.
absl::Status ReadNumbers(const v1::NpyArray& array, const NpyFile& file, const std::string& field,
                         Numbers& numbers) {
  std::vector<int64_t> piece;
  int64_t index = 0;
  int64_t largest = -1, smallest = std::numeric_limits<int64_t>::max();
  const auto fault = [&](int64_t number) {
    const std::string place = PlaceInArray(file.header.shape, index);
    if (number == kNoWholeNumber || number > std::numeric_limits<int32_t>::max()) {
      return absl::StrCat(file.what, " holds a number at ", place,
                          " that is no whole number up to 2^31 - 1; it must be a ", numbers.noun, " from 0");
    }
    if (number < 0) {
      return absl::StrCat(
          file.what, " holds ", number, " at ", place, "; it must be a ", numbers.noun, " from 0",
          numbers.may_be_ignored && !numbers.ignored.has_value()
              ? absl::StrCat("; if such targets are to be ignored, give npy.ignore_index: ", number)
              : "");
    }
    return absl::StrCat(file.what, " holds ", numbers.noun, " ", number, " at ", place, ", outside the ",
                        numbers.classes, " (0 to ", numbers.classes - 1, ")");
  };
  const auto use = [&](absl::string_view elements) -> absl::Status {
    piece.clear();
    AddWholeNumbers(file.header, elements, &piece);
    for (const int64_t number : piece) {
      if (number < 0 && numbers.ignored == number) {
        numbers.has_ignored = true;
      } else if (number < 0 || number > std::numeric_limits<int32_t>::max() ||
                 (numbers.classes > 0 && number >= numbers.classes)) {
        return absl::InvalidArgumentError(fault(number));
      } else {
        largest = std::max(largest, number);
        smallest = std::min(smallest, number);
      }
      if (numbers.kept != nullptr) numbers.kept->push_back(static_cast<int32_t>(number));
      ++index;
    }
    return absl::OkStatus();
  };
  if (numbers.kept != nullptr) numbers.kept->reserve(file.header.shape.elements());
  TANDEM_RETURN_IF_ERROR(UnderField(field, ReadNpyElements(array, file, use)));
  if (largest < 0) {
    return FieldError(field, absl::StrCat(file.what, " holds no ", numbers.noun,
                                          ": every number is ignored; correct npy.ignore_index"));
  }
  if (numbers.classes == 0) numbers.classes = 1 + largest;
  numbers.all_alike = largest == smallest;
  return absl::OkStatus();
}

// Reads one-hot rows [samples, classes] as classes.
absl::Status ReadOneHot(const v1::NpyArray& array, const NpyFile& file, const std::string& field,
                        Numbers& numbers) {
  const Shape& shape = file.header.shape;
  if (numbers.classes != 0 && numbers.classes != shape[1]) {
    return FieldError(field, absl::StrCat(Described(file), ", but npy.classes is ", numbers.classes,
                                          "; leave it out for one-hot rows"));
  }
  numbers.classes = shape[1];
  int64_t index = 0;
  int64_t hot = -1, first = -1;  // The class of this row, and of the first.
  numbers.all_alike = true;
  const auto use = [&](absl::string_view elements) -> absl::Status {
    absl::Status status;
    ForEachNpyNumber(file.header, elements, [&](auto number) {
      if (!status.ok()) return;
      const bool is_hot = number == 1;
      if ((!is_hot && number != 0) || (is_hot && hot >= 0)) {
        status = absl::InvalidArgumentError(absl::StrCat(
            file.what, " holds ", static_cast<double>(number), " at ", PlaceInArray(shape, index),
            "; a one-hot row has a single 1, and 0 elsewhere; if the targets are values, give "
            "npy.targets: values"));
        return;
      }
      if (is_hot) hot = index % shape[1];
      if (++index % shape[1] != 0) return;
      if (hot < 0) {
        status =
            absl::InvalidArgumentError(absl::StrCat(file.what, " holds no 1 in row ", index / shape[1] - 1,
                                                    "; a one-hot row has a single 1, and 0 elsewhere"));
        return;
      }
      if (numbers.kept != nullptr) numbers.kept->push_back(static_cast<int32_t>(hot));
      if (first < 0) first = hot;
      numbers.all_alike = numbers.all_alike && first == hot;
      hot = -1;
    });
    return status;
  };
  if (numbers.kept != nullptr) numbers.kept->reserve(shape[0]);
  return UnderField(field, ReadNpyElements(array, file, use));
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
    if (same_kind && a.header.shape.From(1) == b.header.shape.From(1)) return;
    violations.Add(field, absl::StrCat(Described(b), ", but ", Described(a),
                                       ": they must be alike but for the number of samples"));
  };
  check(train.inputs, validation.inputs, validation.InputsField());
  check(train.targets, validation.targets, validation.TargetsField());
  return violations.ToStatus();
}

// The numbers that are kept after describing.
enum class Kept { kNothing, kTargets, kAll };

// Checks the source's own fields, and reads the headers of its arrays.
absl::Status ReadAllHeaders(const v1::NpySource& source, Arrays* arrays) {
  FieldViolations violations;
  if (source.classes() < 0 || source.classes() > std::numeric_limits<int32_t>::max()) {
    violations.Add("npy.classes",
                   absl::StrCat("is ", source.classes(), "; it must be at least 2, or left out"));
  }
  if (source.has_ignore_index() && source.ignore_index() >= 0) {
    violations.Add(
        "npy.ignore_index",
        absl::StrCat("is ", source.ignore_index(),
                     "; it must be negative; a class or token is ignored by the loss's ignore_index alone"));
  }
  violations.AddAll("", ReadHeaders(source.train_inputs(), source.train_targets(), arrays->train));
  arrays->validates = source.has_validation_inputs() || source.has_validation_targets();
  if (arrays->validates) {
    violations.AddAll(
        "", ReadHeaders(source.validation_inputs(), source.validation_targets(), arrays->validation));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return arrays->validates ? CheckAlike(arrays->train, arrays->validation) : absl::OkStatus();
}

// Describes the samples and targets, as far as the headers tell. `info.classes` is the source's number, or 0.
absl::Status DescribeHeaders(const v1::NpySource& source, Arrays* arrays) {
  DatasetInfo& info = arrays->info;
  const NpySplit& train = arrays->train;
  const NpyHeader& validation = arrays->validation.inputs.header;
  TANDEM_ASSIGN_OR_RETURN(info.sample_type, SampleTypeOf(source, train));
  // Validation inputs of wider integers have the same kind, but their bytes are no samples.
  const bool are_bytes = info.sample_type == SampleType::kBytes;
  if (arrays->validates && are_bytes && validation.item_bytes != 1) return NoBytes(arrays->validation);
  TANDEM_ASSIGN_OR_RETURN(info.target_type, TargetTypeOf(source, info.sample_type, train));
  TANDEM_ASSIGN_OR_RETURN(info.shape, SampleShapeOf(source, train));
  info.train_samples = train.inputs.header.shape[0];
  info.validation_samples = arrays->validates ? validation.shape[0] : 0;
  const bool are_tokens = info.sample_type == SampleType::kTokens;
  if (are_tokens && info.shape.rank() != 1) {
    return FieldError(train.InputsField(),
                      absl::StrCat(Described(train.inputs), "; tokens must be [samples, length]"));
  }
  if (info.target_type == TargetKind::kTokens) info.target_shape = info.shape;
  if (info.target_type == TargetKind::kValues) {
    info.target_shape = train.targets.header.shape.From(1);
    if (info.target_shape.rank() == 0) info.target_shape = Shape({1});
    if (!are_tokens && source.classes() != 0) {
      return FieldError(
          "npy.classes",
          absl::StrCat("is ", source.classes(), ", but the targets are values: ", Described(train.targets)));
    }
  }
  info.classes = source.classes();
  return absl::OkStatus();
}

// Reads the inputs of a split, which are tokens, below `classes`. If that is 0, sets it to the largest token
// plus 1.
absl::Status ReadTokens(const v1::NpyArray& array, bool keeps, NpySplit* split, int64_t* classes) {
  Numbers numbers{.noun = "token", .classes = *classes};
  if (keeps) numbers.kept = &split->input_tokens;
  TANDEM_RETURN_IF_ERROR(ReadNumbers(array, split->inputs, split->InputsField(), numbers));
  *classes = numbers.classes;
  return absl::OkStatus();
}

// Reads the targets of a split, which are classes or tokens, as ReadTokens. Describes them in `info`.
absl::Status ReadTargets(const v1::NpySource& source, bool is_train, bool keeps, NpySplit* split,
                         int64_t* classes, DatasetInfo* info) {
  const v1::NpyArray& array = is_train ? source.train_targets() : source.validation_targets();
  const bool are_classes = info->target_type == TargetKind::kClass;
  Numbers numbers{.noun = are_classes ? "class" : "token", .classes = *classes, .may_be_ignored = true};
  if (source.has_ignore_index()) numbers.ignored = source.ignore_index();
  if (keeps) numbers.kept = &split->target_numbers;
  const auto read = are_classes && MayBeOneHot(split->targets.header.shape) ? ReadOneHot : ReadNumbers;
  TANDEM_RETURN_IF_ERROR(read(array, split->targets, split->TargetsField(), numbers));
  *classes = numbers.classes;
  if (numbers.has_ignored) info->ignored_label = source.ignore_index();
  if (are_classes && is_train) info->one_label = numbers.all_alike;
  return absl::OkStatus();
}

// Reads the data that describing needs.
absl::StatusOr<Arrays> ReadArrays(const v1::NpySource& source, Kept kept) {
  Arrays arrays;
  TANDEM_RETURN_IF_ERROR(ReadAllHeaders(source, &arrays));
  TANDEM_RETURN_IF_ERROR(DescribeHeaders(source, &arrays));
  DatasetInfo& info = arrays.info;
  const bool keeps_inputs = kept == Kept::kAll;
  const bool keeps_targets = kept != Kept::kNothing;
  // Inputs and targets share a vocabulary. A class is no token.
  int64_t vocabulary = info.target_type == TargetKind::kClass ? 0 : info.classes;
  for (NpySplit* split : {&arrays.train, &arrays.validation}) {
    const bool is_train = split == &arrays.train;
    if (!is_train && !arrays.validates) continue;
    const v1::NpyArray& from = is_train ? source.train_inputs() : source.validation_inputs();
    if (info.target_type == TargetKind::kTokens && is_train && info.classes == 0) {
      // The largest token of both.
      int64_t in = 0, out = 0;
      TANDEM_RETURN_IF_ERROR(ReadTokens(from, keeps_inputs, split, &in));
      TANDEM_RETURN_IF_ERROR(ReadTargets(source, is_train, keeps_targets, split, &out, &info));
      vocabulary = info.classes = std::max(in, out);
      continue;
    }
    if (info.sample_type == SampleType::kTokens) {
      TANDEM_RETURN_IF_ERROR(ReadTokens(from, keeps_inputs, split, &vocabulary));
    }
    if (info.target_type != TargetKind::kValues) {
      TANDEM_RETURN_IF_ERROR(ReadTargets(source, is_train, keeps_targets, split, &info.classes, &info));
    }
  }
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
    AddNpyNumbers(file.header, elements, &values);
    for (const float value : values) {
      if (!std::isfinite(value)) {
        return absl::InvalidArgumentError(absl::StrCat(file.what, " holds ", value, " at ",
                                                       PlaceInArray(file.header.shape, index),
                                                       "; all numbers must be finite, and at most 3.4e38; "
                                                       "leave such samples out, or replace the number"));
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

// Brings samples from [height, width, channels] to [channels, height, width] = `shape`.
void MoveChannelsFirst(const Shape& shape, int64_t item_bytes, int64_t samples, uint8_t* data) {
  const int64_t channels = shape[0], area = shape[1] * shape[2];
  if (channels == 1) return;
  std::vector<uint8_t> image(shape.elements() * item_bytes);
  for (int64_t i = 0; i < samples; ++i, data += image.size()) {
    std::memcpy(image.data(), data, image.size());
    const uint8_t* from = image.data();
    for (int64_t pixel = 0; pixel < area; ++pixel) {
      for (int64_t channel = 0; channel < channels; ++channel, from += item_bytes) {
        std::memcpy(data + (channel * area + pixel) * item_bytes, from, item_bytes);
      }
    }
  }
}

// Returns whether the array's samples are [height, width, channels].
bool HasChannelsLast(const v1::NpySource& source, const NpySplit& split) {
  return source.layout() == v1::ARRAY_LAYOUT_NHWC && split.inputs.header.shape.rank() == 4;
}

absl::StatusOr<std::unique_ptr<const Dataset>> Load(const DatasetInfo& info, bool channels_last,
                                                    const v1::NpyArray& inputs, const v1::NpyArray& targets,
                                                    NpySplit& split) {
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
    if (channels_last && violations.empty()) {
      MoveChannelsFirst(info.shape, SizeOf(DTypeOfSamples(info.sample_type)), split.inputs.header.shape[0],
                        samples.data());
    }
  }
  if (info.target_type == TargetKind::kValues) {
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
      info.target_type == TargetKind::kClass ? train.target_numbers.data() : nullptr;
  FieldViolations violations;
  if (info.sample_type == SampleType::kTokens) {
    if (classes != nullptr) use(0, info.train_samples, nullptr, classes);
  } else {
    const int64_t bytes = info.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type));
    const bool channels_last = HasChannelsLast(source, train);
    std::vector<uint8_t> samples;  // Whole samples, and the beginning of the next.
    int64_t first = 0;
    violations.AddAll(
        train.InputsField(),
        ReadSampleBytes(info.sample_type, source.train_inputs(), train.inputs,
                        [&](absl::Span<const uint8_t> piece) {
                          samples.insert(samples.end(), piece.begin(), piece.end());
                          const int64_t count = static_cast<int64_t>(samples.size()) / bytes;
                          if (count == 0) return;
                          if (channels_last) {
                            MoveChannelsFirst(info.shape, SizeOf(DTypeOfSamples(info.sample_type)), count,
                                              samples.data());
                          }
                          use(first, count, samples.data(), classes == nullptr ? nullptr : classes + first);
                          samples.erase(samples.begin(), samples.begin() + count * bytes);
                          first += count;
                        }));
  }
  if (info.target_type == TargetKind::kValues) {
    violations.AddAll(train.TargetsField(),
                      ReadFloats(source.train_targets(), train.targets, [](const std::vector<float>&) {}));
  }
  // The validation's numbers are only checked.
  const auto check = [&](const v1::NpyArray& array, const NpyFile& file, const std::string& field) {
    violations.AddAll(field, ReadFloats(array, file, [](const std::vector<float>&) {}));
  };
  const NpySplit& validation = arrays.validation;
  if (arrays.validates && info.sample_type == SampleType::kFloats) {
    check(source.validation_inputs(), validation.inputs, validation.InputsField());
  }
  if (arrays.validates && info.target_type == TargetKind::kValues) {
    check(source.validation_targets(), validation.targets, validation.TargetsField());
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
  TANDEM_ASSIGN_OR_RETURN(opened.train, Load(arrays.info, HasChannelsLast(source, arrays.train),
                                             source.train_inputs(), source.train_targets(), arrays.train));
  if (arrays.validates) {
    TANDEM_ASSIGN_OR_RETURN(opened.validation,
                            Load(arrays.info, HasChannelsLast(source, arrays.validation),
                                 source.validation_inputs(), source.validation_targets(), arrays.validation));
  }
  opened.info = std::move(arrays.info);
  return opened;
}

}  // namespace tandem
