// Texts of job and sweep files: some that are read, and some with one fault. The sign » stands before the fault's place.

export const RIGHT = [
  // One value for a list of it, names alone for empty messages, nothing for the only member.
  'model:\n  layers:\n  - conv2d: {filters: 8, kernel: 5, activation: relu}\n  - flatten\n  - softmax:\n  - {}\n',
  'training:\n  loss: softmax_cross_entropy\n  optimizer: adam\n  schedule: constant\n  metrics: accuracy\n',
  'training: {loss: {softmax_cross_entropy: }, optimizer: {sgd: {learning_rate: 1e-2}}}\n',
  'dataset: {}\nmodel: {}\ntraining: {}\n',
  // Names of enum values: short or whole, in letters of either case.
  'training: {precision: BFLOAT16, metrics: [METRIC_MAE, Top_K], batch_norm_statistics: BATCH_NORM_STATISTICS_POPULATION}\n',
  'replicas: {device_kind: cpu}\n',
  'gpu: {data: data_placement_host_memory}\n',
  // Names of fields in camel case.
  'training: {globalBatchSize: 32, earlyStopping: {minDelta: 0.1}}\n',
  'model: {layers: [{maxPool2d: {size: 2}}, maxPool2d, globalAveragePool2d]}\n',
  'training: {loss: softmaxCrossEntropy}\n',
  // Numbers as people and programs write them.
  'training: {global_batch_size: 1e4, epochs: 3.0, seed: 18446744073709551615}\n',
  'training: {global_batch_size: "128", epochs: \'2\', validation_batch_size: "1e3"}\n',
  'time_limit_seconds: 3600\npriority: -5\ndevice_share: "0.5"\nmax_restarts: +2\n',
  'training: {weight_average: {decay: .9}, early_stopping: {target: -1E-3}}\n',
  // Truth.
  'preemptible: true\ntraining: {shuffle: False, deterministic: "TRUE"}\n',
  // Text without quotes.
  'name: 7\ndataset: {class_names: [0, 1, true, 1.5], name: false}\n',
  'dataset: {csv: {train: a.csv, delimiter: ";", target_columns: 4}}\n',
  'dataset: {synthetic: {shape: 4, classes: 2, train_samples: 8}}\n',
  'frozen_layers: block_1.*\n',
  'dataset: {augmentation: [{resized_crop: {min_area: 0.25}}, {saturation: {strength: 0.4}}, {hue: {strength: 0.1}}]}\n',
  'replicas: {devices: all, worker_load: 1, parameter_averaging: {every_iterations: 3}}\n',
  'replicas: {count: 2, all_reduce: }\n',
  'model: {layers: [{residual: {layers: [{residual: {layers: [flatten]}}]}}]}\n',
  'training: {optimizer: {adamw: {}, clip: {norm: 1}, groups: [{names: a, frozen: true}]}}\n',
  'initial_weights: {artifact: {job: jobs/a}, layers: "*"}\n',
  '{"name": "json", "training": {"epochs": 2, "optimizer": {"lion": {}}}}\n',
];

export const WRONG = [
  // Fields that do not exist.
  '»nmae: a\n',
  'dataset: {name: a}\n»datset: {name: a}\n',
  'training:\n  epochs: 1\n  »epoch: 2\n',
  'training:\n  optimizer:\n    »sdg: {}\n',
  'training:\n  optimizer:\n    sgd:\n      »lr: 0.1\n',
  'training: {loss: {»cross_entropy: {}}}\n',
  'model:\n  layers:\n  - conv2d: {filters: 8, kernel: 3}\n  - »max_pol2d: {size: 2}\n',
  'model:\n  layers:\n  - conv2d:\n      filters: 8\n      »kernel_size: 3\n',
  'model:\n  »layer:\n  - flatten\n',
  'model: {input: {»shapes: [1]}}\n',
  'model: {layers: [{residual: {layers: [{dense: {»unit: 3}}]}}]}\n',
  'model: {template: {resnet18: {»depth: 3}}}\n',
  'replicas: {»number: 2}\n',
  'dataset: {idx: {»images: a}}\n',
  'dataset:\n  augmentation:\n  - horizontal_flip: {}\n  - »shear: {}\n',
  'dataset: {augmentation: [{resized_crop: {»area: 0.25}}]}\n',
  'training: {»Epochs: 2}\n',
  'training: {»early-stopping: {patience: 3}}\n',
  'checkpoints:\n  »every: 5\n',
  'model: {layers: [{flatten: {»axis: 1}}]}\n',
  // Values of the wrong type.
  'training:\n  epochs: »ten\n',
  'training: {epochs: »1.5}\n',
  'training: {epochs: »true}\n',
  'training: {epochs: »[1]}\n',
  'training: {epochs: »{value: 1}}\n',
  'training: {optimizer: {sgd: {learning_rate: »fast}}}\n',
  'training: {optimizer: {sgd: {learning_rate: »[0.1]}}}\n',
  'training: {shuffle: »1}\n',
  'training: {shuffle: »yes}\n',
  'preemptible: »maybe\n',
  'name: »[a]\n',
  'name: »{a: b}\n',
  'training: »3\n',
  'training: »[]\n',
  'training: »fast\n',
  'model:\n  layers: »flatten\n',
  'model:\n  layers: »{dense: {units: 1}}\n',
  'model: {layers: [»7]}\n',
  'model: {layers: [flatten, »[dense]]}\n',
  'model: {input: {shape: [1, »x, 28]}}\n',
  'model: {input: {shape: [1, »[28]]}}\n',
  'model:\n  layers:\n  - conv2d: {kernel: »5x5}\n',
  'frozen_layers: [a, »{b: c}]\n',
  'replicas: {worker_load: [1, »half]}\n',
  // Numbers outside the type.
  'training: {seed: »-1}\n',
  'replicas: {count: »3000000000}\n',
  'priority: »-2147483649\n',
  // Names that no value has.
  'training: {precision: »float8}\n',
  'training: {metrics: [accuracy, »acuracy]}\n',
  'model:\n  layers:\n  - dense: {units: 3, activation: »rellu}\n',
  'replicas: {device_kind: »tpu}\n',
  'model: {layers: [flatten, »flaten]}\n',
  'training: {loss: »cross_entropy}\n',
  'training: {optimizer: »adma}\n',
  // Two members of a oneof.
  'training: {optimizer: {sgd: {}, »adam: {}}}\n',
  'model:\n  layers:\n  - name: a\n    dense: {units: 3}\n    »flatten: {}\n',
  'dataset: {idx: {}, »csv: {}}\n',
  'model: {layers: [{maxPool2d: {size: 2}, »averagePool2d: {size: 2}}]}\n',
  // No value, where one is needed.
  'model: {layers: [{dense: {units: »~}}]}\n',
  'frozen_layers: [a, »null]\n',
  'training: {weight_average: »null}\n',
  'model: {layers: [flatten, »~]}\n',
];

export const RIGHT_SWEEPS = [
  'base: {name: a}\ngrid:\n- {field: training.seed, values: [1, 2]}\n- {field: model.input.shape, values: [[1, 2], 3]}\n- {field: training.loss, values: [{mse: {}}, l1]}\n',
  'base: {training: {optimizer: adam}}\nrandom: {samples: 3, fields: [{field: training.seed, integer: {max: 9}}]}\n',
];

export const WRONG_SWEEPS = [
  'base: {»nmae: a}\n',
  'base: {}\ngrid: »{field: a}\n',
  'base: {}\ngrid: [{field: training.seed, values: »3}]\n',
  'base: {}\ngrid: [{field: training.seed, values: [1, »~]}]\n',
  'base: {}\nrandom: {»sample: 3}\n',
  'base: {}\nrandom: {fields: [{field: a, uniform: {}, »choice: {}}]}\n',
];
