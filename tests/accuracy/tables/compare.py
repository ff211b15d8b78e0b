#!/usr/bin/env python3
"""Compares predictions of a table's test rows with scikit-learn's.

    compare.py FOLDER TABLE PREDICTIONS

PREDICTIONS is the output of `tandem predict -o json`. The measure is the accuracy for titanic, the area under the curve
for bank, and R2 for houses. It must be at least 0.98 times the better one of gradient boosting and a linear model.
Exit code 1 if it is not.
"""

import json
import pathlib
import sys

import numpy as np
import pandas
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

TABLES = {
    "titanic": ("Survived", "accuracy", ["PassengerId", "Name", "Ticket", "Cabin"], ","),
    "houses": ("SalePrice", "r2", ["Id", "Sold"], ","),
    "bank": ("y", "auc", [], ";"),
}
SHARE = 0.98


def read_predictions(path, measure):
    """Returns a number for each row: the class, the probability of the second class, or the value."""
    values = []
    for prediction in json.loads(pathlib.Path(path).read_text()):
        if measure == "r2":
            values.append(prediction["outputs"][0])
            continue
        classes = {entry["name"] or entry["index"]: entry["probability"] for entry in prediction["classes"]}
        values.append(classes.get("1", classes.get("yes", 0)))
    return np.array(values)


def score(measure, truth, values):
    if measure == "r2":
        return r2_score(truth, values)
    if measure == "auc":
        return roc_auc_score(truth, values)
    return accuracy_score(truth, values > 0.5)


def main():
    folder, table, predictions = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    target, measure, dropped, delimiter = TABLES[table]
    train = pandas.read_csv(folder / f"{table}.csv", sep=delimiter)
    test = pandas.read_csv(folder / f"{table}-test.csv", sep=delimiter)
    features = train.drop(columns=[target] + dropped)
    answers, truth = train[target], test[target]
    if measure == "auc":
        answers, truth = answers == "yes", truth == "yes"
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
         make_column_selector(dtype_include="number")),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"),
                       OneHotEncoder(handle_unknown="ignore", sparse_output=False)),
         make_column_selector(dtype_exclude="number")))
    if measure == "r2":
        models = {"gradient boosting": HistGradientBoostingRegressor(random_state=0), "linear": Ridge()}
    else:
        models = {"gradient boosting": HistGradientBoostingClassifier(random_state=0),
                  "linear": LogisticRegression(max_iter=2000)}
    scores = {}
    for name, model in models.items():
        fitted = make_pipeline(prepare, model).fit(features, answers)
        rows = test[features.columns]
        values = fitted.predict(rows) if measure == "r2" else fitted.predict_proba(rows)[:, 1]
        scores[name] = score(measure, truth, values)
    values = read_predictions(predictions, measure)
    if len(values) != len(truth):
        sys.exit(f"{table}: {len(values)} predictions for {len(truth)} rows")
    ours = score(measure, truth, values)
    best = max(scores.values())
    others = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    print(f"{table}: {measure} {ours:.4f}; scikit-learn: {others}; share {ours / best:.4f}")
    if ours < SHARE * best:
        sys.exit(f"{table}: {measure} {ours:.4f} is below {SHARE} times {best:.4f}")


if __name__ == "__main__":
    main()
