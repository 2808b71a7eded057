"""The checks of scikit-learn that a private estimator cannot pass, each with its reason in one line."""

from __future__ import annotations

from typing import Any

#: Of every estimator.
EVERY = {
    "check_dtype_object": "a cell that is a dictionary counts as missing: an error would tell of it",
    "check_supervised_y_no_nan": "a row with an infinite response gets weight 0: an error would tell of it",
}

#: By the name of the estimator; those without an entry fail what every estimator fails.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "DPLogisticRegression": {
        "check_dtype_object": EVERY["check_dtype_object"],
        "check_supervised_y_no_nan": "a label that is no class counts as missing: an error would tell of it",
        "check_classifiers_classes": "classes are public and given beforehand, never read from private labels",
        "check_classifiers_regression_target": "a label that is no class counts as missing: an error would tell of it",
        "check_classifier_not_supporting_multiclass": "how many different labels there are is private: two are fitted",
    },
}

#: Checks of tens of rows, which the noise may drown and must be able to: they fail on some runs.
BY_CHANCE: dict[str, dict[str, str]] = {
    "DPLogisticRegression": {"check_classifiers_one_label": "ten rows of one label: noise may outvote them"},
}


def expected_failures(kind: type[Any]) -> dict[str, str]:
    """The checks that fail, and why."""
    return EXPECTED_FAILURES.get(kind.__name__, EVERY)
