#include "engine/training/small_training.h"

#include "engine/base/testing/from_text.h"

namespace tandem {

v1::JobSpec SmallLenet(int replicas) {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(
    dataset {
      synthetic { shape: [1, 12, 12] classes: 4 train_samples: 61 validation_samples: 27 }
    }
    model {
      input { shape: [1, 12, 12] }
      layers { conv2d { filters: 4 kernel: 3 } }
      layers { max_pool2d { size: 2 } }
      layers { conv2d { filters: 6 kernel: 2 } }
      layers { max_pool2d { size: 2 } }
      layers { dense { units: 16 activation: ACTIVATION_RELU } }
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.05 momentum: 0.9 weight_decay: 0.001 } }
      global_batch_size: 8
      epochs: 3
      seed: 7
      report { every_steps: 1 }
    })");
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

}  // namespace tandem
