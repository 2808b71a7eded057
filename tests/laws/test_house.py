"""The house stays readable: no long module, no long function, one name for one thing, objects shown in short."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpregress import estimators, inference, releases
from dpregress.display import ShownInShort
from tests.laws.test_layers import parsed, sources
from tests.registry import FITS, FitEntry

LONGEST_MODULE, LONGEST_FUNCTION = 430, 50
ESTIMATORS = [getattr(estimators, name) for name in estimators.__all__]
#: Every word that a constructor of an estimator may take, in the order in which it takes them (docs/api.md).
VOCABULARY = (
    "privacy", "family", "link", "classes", "cuts", "public", "schema", "bounds", "row_bound", "response_bounds",
    "alpha", "bins", "rows", "fit_intercept", "formula", "recipe", "cov_type", "ledger", "random_state",
)  # fmt: skip
#: The words that no estimator is without.
EVERYWHERE = {"privacy", "schema", "ledger", "random_state"}


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the number of lines of its statements, without its signature and docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_module_is_long() -> None:
    assert not {name: text.count("\n") for name, text in sources().items() if text.count("\n") > LONGEST_MODULE}


def test_no_function_is_long() -> None:
    lengths = {f"{name}.{label}": lines for name, text in sources().items() for label, lines in functions(parsed(text))}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}


def test_public_names_are_defined_once() -> None:
    """A class or function of a module that begins with no underscore has a name of its own in the package."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, text in sources().items():
        for node in parsed(text).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}


def parameters_of(call: Any) -> list[inspect.Parameter]:
    """The parameters of a constructor or method, without self."""
    return [parameter for name, parameter in inspect.signature(call).parameters.items() if name != "self"]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_constructors_share_one_vocabulary(kind: type[Any]) -> None:
    """The budget comes first and may be given by position; all other words are keywords, in one order."""
    first, *others = parameters_of(kind)
    assert (first.name, first.kind) == ("privacy", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert {parameter.kind for parameter in others} == {inspect.Parameter.KEYWORD_ONLY}
    names = [first.name, *(parameter.name for parameter in others)]
    assert names == [word for word in VOCABULARY if word in names]
    assert set(names) >= EVERYWHERE


def test_every_word_is_used() -> None:
    assert {parameter.name for kind in ESTIMATORS for parameter in parameters_of(kind)} == set(VOCABULARY)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fits_begin_alike(kind: type[Any]) -> None:
    for method, words in (("fit", ["X", "y"]), ("fit_table", ["table", "target", "features"]), ("predict", ["X"])):
        assert [parameter.name for parameter in parameters_of(getattr(kind, method))][: len(words)] == words


def test_the_base_of_the_linear_models_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        estimators.base.PrivateLinearModel()


def with_arrays(room: Any) -> Iterator[type[Any]]:
    """Dataclasses of a room that hold arrays, or what holds them."""
    for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == found.name and dataclasses.is_dataclass(kind):
                words = " ".join(str(field.type) for field in dataclasses.fields(kind))
                if any(
                    word in words for word in ("Vector", "Matrix", "NDArray", "Estimates", "Moments", "Coefficients")
                ):
                    yield kind


@pytest.mark.parametrize("kind", [*with_arrays(releases), *with_arrays(inference)], ids=lambda kind: kind.__name__)
def test_what_is_released_is_shown_in_short(kind: type[Any]) -> None:
    """By itself, and not by the representation that dataclasses have."""
    assert issubclass(kind, ShownInShort)
    assert not vars(kind)["__dataclass_params__"].repr


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("entry", FITS, ids=str)
def test_what_a_fit_holds_is_shown_in_one_line(entry: FitEntry) -> None:
    model = entry.fit(np.random.default_rng(3), random_state=1)
    for name, value in vars(model).items():
        if name.endswith("_") and not isinstance(value, np.ndarray | tuple):
            assert len(repr(value)) <= 200, name
            assert "\n" not in repr(value), name
