#ifndef TANDEM_ENGINE_LAYERS_EMBED_CATEGORIES_H_
#define TANDEM_ENGINE_LAYERS_EMBED_CATEGORIES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/layers/layer_kind.h"
#include "tandem/v1/layer.pb.h"

namespace tandem {

const LayerKind& EmbedCategoriesKind();

// Chooses the columns to embed: appends each of `columns` with more than embed->above inputs to
// embed->columns, and sets its dimension. `columns` are a table's columns of categories, in the order of
// their inputs. INVALID_ARGUMENT, without a field, if no column has enough inputs.
absl::Status TakeColumns(absl::Span<const v1::EmbeddedColumn> columns, v1::EmbedCategories* embed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_EMBED_CATEGORIES_H_
