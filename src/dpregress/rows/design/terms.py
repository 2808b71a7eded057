"""From the text of a formula to its terms. Only this module uses the formulaic library, which parses formulas."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from dpregress.errors import InvalidInput, type_of

#: A term: the texts of its factors; column names may be in backticks.
Term = tuple[str, ...]

#: Longer formulas are refused as likely errors, which would take too long to compute.
_LONGEST = 10_000
_MOST_TERMS = 2_000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")


def split_terms(text: str) -> tuple[list[Term], list[Term]]:
    """Terms of the left and of the right side, those of fewest factors first; the intercept has none.

    Raises
    ------
    InvalidInput
        For what is not a formula of one left and one right side, or is too long; and without formulaic.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"a formula is text, not {type_of(text)}")
    if len(text) > _LONGEST:
        raise InvalidInput(f"it has more than {_LONGEST:,} characters: name the columns with features= instead")
    if not all(character.isprintable() or character in "\t\n" for character in text):
        raise InvalidInput("it holds characters that cannot be printed")
    if text.count("~") == 0 or not text.split("~")[0].strip():
        raise InvalidInput("name the response on the left side, as in visits ~ age + C(plan)")
    try:
        from formulaic.parser import DefaultFormulaParser
    except ImportError as error:
        raise InvalidInput('formulas are read by formulaic: pip install "dpregress[formulas]"') from error
    parser = DefaultFormulaParser()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if _most_terms(parser.get_ast(text)) > _MOST_TERMS:
                raise InvalidInput(f"it has more than {_MOST_TERMS:,} terms: write them with + and :")
            sides = parser.get_terms(text)
        left, right = list(sides.lhs), list(sides.rhs)
        if any(type(term).__name__ != "Term" for term in (*left, *right)):
            raise InvalidInput("it has several parts: write one right side, without | and [ ]")
    except InvalidInput:
        raise
    except RecursionError as error:
        raise InvalidInput("it is too long or nested too deeply: name the columns with features= instead") from error
    except Exception as error:  # of a parser that is not ours, about a text that is public
        raise InvalidInput(_said(error)) from error
    return _texts(left), sorted(_texts(right), key=len)


def _texts(terms: Iterable[Any]) -> list[Term]:
    return [
        tuple(
            f"`{factor.expr}`" if factor.eval_method.value == "lookup" else str(factor.expr)
            for factor in term.factors
            if not (factor.eval_method.value == "literal" and factor.expr == "1")
        )
        for term in terms
    ]


def _most_terms(tree: Any) -> int:
    """An upper bound on how many terms a parsed formula has; a name is one. Long sums are deep trees: no recursion."""
    counts: dict[int, int] = {}
    waiting = [tree]
    while waiting:
        node = waiting[-1]
        arguments = getattr(node, "args", ())  # formulaic's leaves are tokens and have none
        todo = [argument for argument in arguments if id(argument) not in counts]
        if todo:
            waiting.extend(todo)
        else:
            counts[id(node)] = min(_terms_of(node, [counts[id(argument)] for argument in arguments]), 10**9)
            waiting.pop()
    return counts[id(tree)]


def _terms_of(node: Any, counts: Sequence[int]) -> int:
    """An upper bound on the number of terms, from those of the arguments."""
    if not hasattr(node, "operator"):
        return 1
    symbol = str(node.operator.symbol)
    if symbol == ".":
        raise InvalidInput("'.' does not say which columns: name them")
    if symbol in ("**", "^") and len(counts) == 2:
        power = str(getattr(node.args[1], "token", ""))
        if not power.isdecimal():
            raise InvalidInput("the power of terms is a whole number; the power of a number is written I(x ** 0.5)")
        return int((counts[0] + 1) ** min(int(power), 99))
    if symbol in ("*", ":", "/", "%in%"):
        return math.prod(count + 1 for count in counts)
    return sum(counts)


def _said(error: Exception) -> str:
    """A parser's first sentence without its colours, and the mend."""
    sentence = _COLOURS.sub("", str(error)).strip().split("\n")[0].split(". ")[0].rstrip(".")
    return f"{sentence or type(error).__name__}; write it as in visits ~ age + C(plan)"
