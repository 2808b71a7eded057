"""Models with a categorical response: the classes, and responses as positions of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpregress.display import plain
from dpregress.errors import InvalidInput, one_line
from dpregress.estimators.base import PrivateLinearModel
from dpregress.estimators.habits import in_own_names
from dpregress.estimators.summary import SummaryNotes
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.names import check_default_target, check_target
from dpregress.inputs.public import check_apart
from dpregress.inputs.response import USUAL, default_classes, type_of_array, type_of_column
from dpregress.inputs.tables import coded, column_names, opened_table, response_name
from dpregress.releases.model_files import Label, is_label
from dpregress.rows import FormulaEncoder
from dpregress.rows.design.encoder import text_of
from dpregress.rows.engines import Progress
from dpregress.rows.readers.files import is_table


class ClassModel(PrivateLinearModel):
    """A model of classes; with ``classes=None`` the schema or the type of the response determines them."""

    classes: Sequence[Any] | None
    _found: Sequence[Any] = USUAL

    @in_own_names
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        unit: ArrayLike | None = None,
        max_rows_per_unit: int | None = None,
        diagnose: float = 0.0,
        progress: bool | Progress = True,
    ) -> Self:
        """Fit within the budget of ``privacy``; a label that is not one of the classes counts as missing."""
        if y is None and self.formula is None:
            raise InvalidInput("this estimator requires y to be passed, but the target y is None")
        given: dict[str, Any] = {"exposure": exposure, "unit": unit, "max_rows_per_unit": max_rows_per_unit}
        given |= {"weights": weights, "diagnose": diagnose, "progress": progress}
        self._checked_parameters()
        check_aligned(X, y=y)  # below, the classes of y are an array
        if self.classes is None:
            target = self._target(response_name(y, X))
            in_table = y is None and is_table(X)
            kind = type_of_column(X, target) if in_table else type_of_array(y)
            return self._fit_to(default_classes(target, kind, self.schema), lambda model: model.fit(X, y, **given))
        return super().fit(X, None if y is None else coded(y, self.target_classes), **given)

    @in_own_names
    def fit_table(
        self,
        table: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        engine: Any = None,
        progress: bool | Progress = True,
        *,
        exposure: str | None = None,
        weights: str | None = None,
        unit: str | None = None,
        max_rows_per_unit: int | None = None,
        diagnose: float = 0.0,
    ) -> Self:
        """Fit a column of any table on its others, as :meth:`DPGLMRegressor.fit_table` has it."""
        given: dict[str, Any] = {"exposure": exposure, "unit": unit, "max_rows_per_unit": max_rows_per_unit}
        given |= {"weights": weights, "diagnose": diagnose}
        self._checked_parameters()
        if self.classes is None:
            name = self._target("y" if target is None else target)
            check_apart(table, self.public)
            rows = opened_table(table)
            if self.formula is None:
                check_default_target(name, column_names(rows))
            classes = default_classes(name, type_of_column(rows, name), self.schema)
            return self._fit_to(
                classes, lambda model: model.fit_table(rows, target, features, engine, progress, **given)
            )
        return super().fit_table(table, target, features, engine, progress, **given)

    @property
    def classes_(self) -> Any:
        """The classes, in the type in which they were given or that the response has."""
        given = list(self._found if self.classes is None else self.classes)
        kinds = {isinstance(value, str) for value in given}
        return np.array(given, dtype=object) if len(kinds) > 1 else np.asarray(given)

    @property
    def target_classes(self) -> tuple[str, ...]:
        """Texts of the classes."""
        classes: Any = self._found if self.classes is None else self.classes
        given = classes if isinstance(classes, list | tuple | range) or np.ndim(classes) == 1 else ()
        texts = tuple("" if value != value else text_of(value) or "" for value in given)  # NaN is no class
        if len(set(texts)) < len(texts) and "" not in texts:
            raise InvalidInput(
                "classes must be at least two different numbers or texts, and one is named more than once"
            )
        if len(texts) < 2 or "" in texts:
            raise InvalidInput(f"classes must be at least two different numbers or texts, not {one_line(classes)}")
        return texts

    @property
    def target_labels(self) -> tuple[Label, ...]:
        """The classes as the response holds them, if these are not all text and an array can hold them; else empty."""
        labels = tuple(self.classes_.tolist())
        if all(isinstance(label, str) for label in labels) or not all(is_label(label) for label in labels):
            return ()
        return labels if tuple(map(text_of, labels)) == self.target_classes else ()

    def _notes(self) -> SummaryNotes:
        """Which classes were modelled."""
        found, classes = super()._notes(), list(map(plain, self.target_classes))
        of = f"{', '.join(classes[:-1])} and {classes[-1]}"
        return found._replace(before=(f"The classes are {of}; any other response counts as missing.", *found.before))

    def _target(self, name: str) -> str:
        """The response's column, which a formula names itself."""
        if self.formula is None:
            check_target(name)
            return name
        (target,) = FormulaEncoder.of(self.formula, self.schema, ("0", "1")).response.columns
        return target

    def _fit_to(self, classes: Sequence[Any], fit: Callable[[Self], object]) -> Self:
        """Fit a copy that has these classes, and take over what it found: a refused fit leaves nothing behind."""
        model = copy(self)
        model.classes = classes
        fit(model)
        self.__dict__ = {**model.__dict__, "classes": None, "_found": classes}
        return self
