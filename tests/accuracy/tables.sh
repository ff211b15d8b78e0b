#!/usr/bin/env bash
# Trains on three raw tables with the structure of the Titanic, Ames housing and bank marketing tables, with the real
# daemon and two commands for each. Predicts the raw rows of a test file. The result must be at least 0.98 times the
# better one of scikit-learn's gradient boosting and linear model (tables/compare.py).
#
#   tests/accuracy/tables.sh [--embed] [TABLE...]    these tables, or titanic, houses and bank
#
#   --embed   columns of more than 10 inputs become vectors that are learned (embed_categories). Without TABLE: houses
#             and bank, because titanic has no such column.
cd "$(dirname "$0")"
source ../integration/daemon.bash

# Debian's Python has python3-sklearn.
python=/usr/bin/python3
"$python" -c 'import pandas, sklearn' 2>/dev/null || skip "scikit-learn is not installed (python3-sklearn)"
"$python" tables/make_tables.py "$scratch/tables"
start_daemon --listen 127.0.0.1:0 --cpu-devices 1

changes=()
tables="titanic houses bank"
if [[ ${1:-} == --embed ]]; then
  changes=(--set "model.template.mlp.embed_categories.above=10")
  tables="houses bank"
  shift
fi
declare -A options=(
  [titanic]="--set csv.target_columns=Survived --set csv.targets=class"
  [houses]=""
  [bank]=""
)
below=0
for table in "${@:-$tables}"; do
  for name in $table; do
    # shellcheck disable=SC2086  # Several words.
    logged "$scratch/add.log" "$tandem" datasets add "$name" "$scratch/tables/$name.csv" ${options[$name]} --upload ||
      die "$name was not added"
    logged "$scratch/$name.log" "$tandem" submit "tables/$name.yaml" "${changes[@]}" --follow || die "$name did not train"
    # The model prepares the rows of the data set as in training.
    said=$(sed -nE 's/^succeeded after .*: validation loss ([^ ]+),.*/\1/p' "$scratch/$name.log")
    "$tandem" evaluate "$name" | grep -qF "loss $said," || die "$name: evaluate does not repeat the loss $said"
    "$tandem" predict "$name" "$scratch/tables/$name-test.csv" -o json >"$scratch/$name.json" ||
      die "$name does not predict"
    "$python" tables/compare.py "$scratch/tables" "$name" "$scratch/$name.json" || below=1
  done
done
exit "$below"
