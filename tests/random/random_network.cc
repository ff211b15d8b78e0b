#include "tests/random/random_network.h"

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/layers/model.h"
#include "engine/tensor/shape.h"

namespace tandem {
namespace {

// So that the oracle is done soon.
constexpr int64_t kMostElements = 600;
// With fewer numbers, mean and variance leave little but rounding errors.
constexpr int64_t kLeastNormalized = 4;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // Returns a number from 0 to below `bound`.
  int64_t Below(int64_t bound) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(bound)); }
  bool Once(int64_t in) { return Below(in) == 0; }
  int64_t Of(std::initializer_list<int64_t> numbers) {
    return numbers.begin()[Below(static_cast<int64_t>(numbers.size()))];
  }
  // A number that divides `whole`.
  int64_t DivisorOf(int64_t whole) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= whole; ++d) {
      if (whole % d == 0) divisors.push_back(d);
    }
    return divisors[Below(static_cast<int64_t>(divisors.size()))];
  }
  v1::Activation Activation() {
    if (Once(2)) return v1::ACTIVATION_RELU;
    return static_cast<v1::Activation>(Below(v1::Activation_MAX + 1));
  }

 private:
  std::mt19937_64 engine_;
};

void AddConvolution(Dice& dice, int64_t channels, v1::Layer& layer) {
  v1::Conv2d& conv = *layer.mutable_conv2d();
  conv.set_groups(dice.Once(3) ? dice.DivisorOf(channels) : 1);
  conv.set_filters(conv.groups() * dice.Of({1, 2, 3}) * (conv.groups() == 1 ? dice.Of({1, 3, 5, 8}) : 1));
  conv.add_kernel(1 + dice.Below(5));
  if (dice.Once(2)) conv.add_kernel(1 + dice.Below(5));
  if (dice.Once(4)) {
    conv.set_padding_mode(dice.Once(2) ? v1::PADDING_MODE_SAME : v1::PADDING_MODE_VALID);
  } else {
    for (const int64_t padding : {dice.Below(4), dice.Below(3)}) conv.add_padding(padding);
    if (dice.Once(2)) conv.add_stride(1 + dice.Below(4));
  }
  if (dice.Once(4)) conv.add_dilation(2);
  conv.set_use_bias(dice.Once(2));
  if (dice.Once(2)) conv.set_activation(dice.Activation());
}

void AddTransposedConvolution(Dice& dice, int64_t channels, v1::Layer& layer) {
  v1::ConvTranspose2d& conv = *layer.mutable_conv_transpose2d();
  conv.set_groups(dice.Once(3) ? dice.DivisorOf(channels) : 1);
  conv.set_filters(conv.groups() * dice.Of({1, 2, 5}));
  conv.add_kernel(1 + dice.Below(4));
  conv.add_stride(1 + dice.Below(3));
  conv.add_padding(dice.Below(3));
  conv.add_output_padding(dice.Below(conv.stride(0)));
  if (dice.Once(4)) conv.add_dilation(2);
  conv.set_use_bias(dice.Once(2));
  if (dice.Once(2)) conv.set_activation(dice.Activation());
}

template <typename Pool>
void AddPool(Dice& dice, Pool* pool) {
  for (int i = 0; i < 2; ++i) {
    pool->add_size(1 + dice.Below(4));
    pool->add_padding(dice.Below(pool->size(i) / 2 + 1));
  }
  if (dice.Once(2)) {
    for (int i = 0; i < 2; ++i) pool->add_stride(1 + dice.Below(4));
  }
  pool->set_ceil_mode(dice.Once(2));
}

void AddUpsampling(Dice& dice, v1::Layer& layer) {
  v1::Upsample& upsample = *layer.mutable_upsample();
  if (dice.Once(2)) {
    upsample.add_scale(static_cast<double>(dice.Of({5, 10, 17, 20})) / 10);
  } else {
    for (int i = 0; i < 2; ++i) upsample.add_size(1 + dice.Below(7));
  }
  if (dice.Once(2)) {
    upsample.set_mode(v1::UPSAMPLE_MODE_BILINEAR);
    upsample.set_align_corners(dice.Once(2));
  }
}

// Adds a layer that keeps any input's shape.
void AddKeeping(Dice& dice, const Shape& input, v1::Layer& layer) {
  int64_t kind = dice.Below(7);
  const int dimensions = 1 + static_cast<int>(dice.Below(input.rank()));
  const int64_t groups = dice.DivisorOf(input[0]);
  int64_t normalized = 1;
  for (int i = 1; i <= dimensions; ++i) normalized *= input[input.rank() - i];
  if (kind == 1 && input.elements() / groups < kLeastNormalized) kind = 3;
  if (kind == 2 && normalized < kLeastNormalized) kind = 3;
  // A softmax over a single number is constant.
  const int64_t axis = dice.Below(input.rank());
  if ((kind == 4 || kind == 5) && input[axis] == 1) kind = 3;
  switch (kind) {
    case 0:
      layer.mutable_batch_norm()->set_affine(!dice.Once(4));
      layer.mutable_batch_norm()->set_activation(dice.Activation());
      break;
    case 1:
      layer.mutable_group_norm()->set_groups(groups);
      layer.mutable_group_norm()->set_affine(!dice.Once(4));
      break;
    case 2:
      layer.mutable_layer_norm()->set_dimensions(dimensions);
      layer.mutable_layer_norm()->set_affine(!dice.Once(4));
      break;
    case 3:
      layer.mutable_activation()->set_function(
          static_cast<v1::Activation>(1 + dice.Below(v1::Activation_MAX)));
      break;
    case 4:
      layer.mutable_softmax()->set_axis(axis);
      break;
    case 5:
      layer.mutable_log_softmax()->set_axis(axis - input.rank());
      break;
    default:
      layer.mutable_dropout()->set_rate(0.3);
      break;
  }
}

void AddOfImages(Dice& dice, const Shape& input, v1::Layer& layer) {
  switch (dice.Below(9)) {
    case 0:
    case 1:
    case 2:
      return AddConvolution(dice, input[0], layer);
    case 3:
      return AddPool(dice, layer.mutable_max_pool2d());
    case 4:
      layer.mutable_average_pool2d()->set_count_include_pad(dice.Once(2));
      return AddPool(dice, layer.mutable_average_pool2d());
    case 5:
      return AddTransposedConvolution(dice, input[0], layer);
    case 6:
      return AddUpsampling(dice, layer);
    case 7:
      if (dice.Once(2)) {
        layer.mutable_global_max_pool2d();
      } else {
        layer.mutable_global_average_pool2d();
      }
      return;
    default:
      layer.mutable_reshape()->add_shape(input[0] * input[1]);
      layer.mutable_reshape()->add_shape(-1);
      return;
  }
}

void AddOfSequences(Dice& dice, const Shape& input, v1::Layer& layer) {
  switch (dice.Below(5)) {
    case 0: {
      v1::Lstm& lstm = *layer.mutable_lstm();
      lstm.set_units(dice.Of({1, 3, 8}));
      lstm.set_layers(1 + static_cast<int32_t>(dice.Below(2)));
      lstm.set_bidirectional(dice.Once(2));
      lstm.set_use_bias(dice.Once(2));
      if (dice.Once(3)) lstm.set_output(v1::LSTM_OUTPUT_LAST);
      return;
    }
    case 1:
      layer.mutable_multi_head_attention()->set_heads(dice.DivisorOf(input[1]));
      layer.mutable_multi_head_attention()->set_causal(dice.Once(2));
      layer.mutable_multi_head_attention()->set_use_bias(dice.Once(2));
      return;
    case 2:
      if (dice.Once(2)) {
        layer.mutable_positional_embedding()->set_kind(v1::POSITIONAL_EMBEDDING_KIND_SINUSOIDAL);
      } else {
        layer.mutable_positional_embedding();
      }
      return;
    case 3:
      layer.mutable_dense()->set_units(dice.Of({1, 4, 9}));
      layer.mutable_dense()->set_per_position(true);
      layer.mutable_dense()->set_activation(dice.Activation());
      return;
    default:
      for (const int64_t extent : {int64_t{1}, input[0], input[1]})
        layer.mutable_reshape()->add_shape(extent);
      return;
  }
}

void AddOfRows(Dice& dice, const Shape& input, v1::Layer& layer) {
  if (dice.Once(3)) {
    layer.mutable_reshape()->add_shape(dice.DivisorOf(input[0]));
    if (dice.Once(2)) layer.mutable_reshape()->add_shape(1);
    layer.mutable_reshape()->add_shape(-1);
    return;
  }
  layer.mutable_dense()->set_units(dice.Of({1, 2, 7, 16, 33}));
  layer.mutable_dense()->set_use_bias(dice.Once(2));
  layer.mutable_dense()->set_activation(dice.Activation());
}

// Keeps at least half of a dimension.
void AddSlice(Dice& dice, const Shape& input, v1::Layer& layer) {
  const int64_t axis = dice.Below(input.rank());
  layer.mutable_slice()->set_axis(dice.Once(2) ? axis : axis - input.rank());
  layer.mutable_slice()->set_start(dice.Below((input[axis] + 1) / 2));
  if (dice.Once(2)) layer.mutable_slice()->set_size((input[axis] + 1) / 2);
}

void AddPlain(Dice& dice, const Shape& input, v1::Layer& layer) {
  if (dice.Once(12)) return AddSlice(dice, input, layer);
  if (dice.Once(3)) return AddKeeping(dice, input, layer);
  if (input.rank() == 3) return AddOfImages(dice, input, layer);
  if (input.rank() == 2) return AddOfSequences(dice, input, layer);
  AddOfRows(dice, input, layer);
}

// Adds a block whose layers keep the input's shape. CheckModel refuses other blocks.
void AddBlock(Dice& dice, const Shape& input, v1::Layer& layer) {
  auto& layers =
      dice.Once(3) ? *layer.mutable_repeat()->mutable_layers() : *layer.mutable_residual()->mutable_layers();
  if (layer.has_repeat()) layer.mutable_repeat()->set_count(1 + dice.Below(3));
  const auto convolve = [&](v1::Layer& inner) {
    inner.mutable_conv2d()->set_filters(input[0]);
    inner.mutable_conv2d()->add_kernel(dice.Of({1, 3}));
    inner.mutable_conv2d()->set_padding_mode(v1::PADDING_MODE_SAME);
    inner.mutable_conv2d()->set_use_bias(false);  // Whose gradient behind a batch_norm is but roundings.
  };
  for (int64_t i = 1 + dice.Below(3); i > 0; --i) {
    if (input.rank() == 3 && dice.Once(2)) {
      convolve(*layers.Add());
      if (dice.Once(2)) layers.Add()->mutable_batch_norm()->set_activation(dice.Activation());
    } else {
      AddKeeping(dice, input, *layers.Add());
    }
  }
  if (!layer.has_residual()) return;
  layer.mutable_residual()->set_activation(dice.Activation());
  if (input.rank() == 3 && dice.Once(2)) {
    convolve(*layer.mutable_residual()->add_shortcut());
    layer.mutable_residual()->add_shortcut()->mutable_batch_norm();
  }
}

// The last layer's output with an earlier one's, perhaps with itself.
void AddMerge(Dice& dice, const v1::Model& model, v1::Layer& layer) {
  const int64_t other = dice.Below(model.layers_size() + 1);
  layer.add_inputs(model.layers(model.layers_size() - 1).name());
  layer.add_inputs(other == model.layers_size() ? "input" : model.layers(static_cast<int>(other)).name());
  if (dice.Once(3)) layer.add_inputs(layer.inputs(static_cast<int>(dice.Below(2))));
  switch (dice.Below(3)) {
    case 0:
      layer.mutable_add()->set_activation(dice.Activation());
      break;
    case 1:
      layer.mutable_multiply()->set_activation(dice.Activation());
      break;
    default:
      layer.mutable_concat()->set_axis(dice.Below(2));
      break;
  }
}

v1::Model Beginning(Dice& dice) {
  v1::Model model;
  std::vector<int64_t> shape;
  switch (dice.Below(5)) {
    case 0:
      shape = {kLeastNormalized + dice.Below(9)};
      break;
    case 1:
      shape = {1 + dice.Below(6), kLeastNormalized + dice.Below(5)};
      break;
    default:
      shape = {dice.Of({1, 2, 3, 4, 6, 16}), 1 + dice.Below(9), kLeastNormalized + dice.Below(6)};
      break;
  }
  for (const int64_t extent : shape) model.mutable_input()->add_shape(extent);
  if (shape.size() == 1 && dice.Once(2)) {
    v1::Layer& layer = *model.add_layers();
    layer.set_name("tokens");
    layer.mutable_embedding()->set_vocabulary_size(kRandomVocabulary);
    layer.mutable_embedding()->set_dimension(dice.Of({1, 4, 6}));
    if (dice.Once(2)) layer.mutable_embedding()->set_padding_token(dice.Below(kRandomVocabulary));
  } else if (shape.size() == 1 && dice.Once(3)) {
    v1::Layer& layer = *model.add_layers();
    layer.set_name("categories");
    v1::EmbeddedColumn* column = layer.mutable_embed_categories()->add_columns();
    column->set_name("first");
    column->set_first_input(dice.Below(2));
    column->set_inputs(1 + dice.Below(2));
    column->set_dimension(dice.Of({1, 3, 6}));
    if (!dice.Once(3)) {
      // The last column, directly behind the first or with inputs between them.
      column = layer.mutable_embed_categories()->add_columns();
      column->set_name("last");
      column->set_first_input(3);
      column->set_inputs(shape[0] - 3);
      column->set_dimension(dice.Of({1, 2, 5}));
    }
  } else {
    // The first layer learns, so that every network has parameters.
    v1::Layer& layer = *model.add_layers();
    layer.set_name("first");
    layer.mutable_layer_norm()->set_dimensions(static_cast<int32_t>(shape.size()));
  }
  return model;
}

}  // namespace

v1::Model RandomNetwork(uint64_t seed) {
  Dice dice(seed);
  v1::Model model = Beginning(dice);
  FillModelDefaults(&model);
  Shape output = CheckModel(model)->back();
  const int64_t wanted = 2 + dice.Below(7);
  for (int tries = 0; tries < 60 && model.layers_size() < wanted; ++tries) {
    v1::Model longer = model;
    v1::Layer& layer = *longer.add_layers();
    layer.set_name(absl::StrCat("layer", longer.layers_size()));
    if (dice.Once(4)) {
      AddMerge(dice, model, layer);
    } else if (dice.Once(5)) {
      AddBlock(dice, output, layer);
    } else {
      AddPlain(dice, output, layer);
    }
    FillModelDefaults(&longer);
    const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(longer);
    if (!shapes.ok() || shapes->back().elements() > kMostElements) continue;
    model = std::move(longer);
    output = shapes->back();
  }
  return model;
}

}  // namespace tandem
