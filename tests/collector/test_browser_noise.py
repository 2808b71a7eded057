"""The noise and the values of the browser's device, run by node: known answers, laws, and refused studies."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2, norm

from dpregress.accounting import PureDP
from dpregress.mechanisms import UnitVector
from tests.reference.discrete_gaussian import Stream
from tests.support import missing

VECTORS = Path(__file__).parent / "vectors"
SCRIPT = Path(__file__).parents[1] / "browser" / "vectors.mjs"
PAGES = Path(__file__).parents[2] / "src" / "dpregress" / "collector" / "pages"
FIELD = re.compile(r"\{(\w+)\}")
EXAMPLES: list[dict[str, Any]] = json.loads((VECTORS / "values.json").read_text(encoding="utf-8"))


def asked(task: str, more: object) -> Any:
    """What the pages' own modules answer."""
    node = shutil.which("node")
    if node is None:
        missing("node")
    assert node is not None
    found = subprocess.run([node, SCRIPT, PAGES, task, str(more)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_the_discrete_gaussian_is_the_reference() -> None:
    """Draw for draw and byte for byte, at scales from 1 to 2^27."""
    where = VECTORS / "discrete_gaussian.json"
    assert asked("gaussian", where) == json.loads(where.read_text(encoding="utf-8"))


def test_values_are_those_of_the_library() -> None:
    for found, example in zip(asked("values", VECTORS / "values.json"), EXAMPLES, strict=True):
        assert found["kept"], example["name"]
        for case, wanted in zip(found["cases"], example["cases"], strict=True):
            assert [*case["x"], case["y"]] == wanted["row"]
            np.testing.assert_allclose(case["value"], wanted["value"], rtol=1e-12, atol=1e-12)


def test_uniform_numbers_are_the_bits_of_the_wire_format() -> None:
    words = np.frombuffer(Stream("uniforms/")(8000), dtype="<u8") >> np.uint64(12)
    assert asked("uniforms", "uniforms/") == ((words.astype(np.float64) + 0.5) * 2.0**-52).tolist()


def test_quantiles_of_the_normal_law(tmp_path: Path, seed: int) -> None:
    u = np.concatenate([np.random.default_rng(seed).random(2000), np.logspace(-16, -1, 200), [2.0**-53, 1 - 2.0**-53]])
    where = tmp_path / "points.json"
    where.write_text(json.dumps(u.tolist()), encoding="utf-8")
    found = asked("quantiles", where)
    np.testing.assert_allclose(found["quantiles"], ndtri(u), rtol=2e-14, atol=1e-16)
    np.testing.assert_allclose(found["back"], u, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [pytest.param(1.0, marks=pytest.mark.nightly), 4.0])
def test_unit_vectors_have_the_law(tmp_path: Path, seed: int, epsilon: float) -> None:
    """3,000 messages: the share in the cap, the mean along the value, and the direction off it.

    Each of the three fails with probability below 1e-9.
    """
    n, order = 3000, 4
    value = np.array([0.3, -0.4, 0.1, 0.2])
    bound = 2.0
    cap = UnitVector(PureDP(epsilon)).cap(order)
    answer = {"length": order, "bits": 28, "bound": bound, "noise_scale": None}
    study = {"answer": {**answer, "cap": {"epsilon": cap.epsilon, "gamma": cap.gamma}}}
    where = tmp_path / "messages.json"
    told = {"study": study, "value": value.tolist(), "count": n, "label": f"unit/{seed}/"}
    where.write_text(json.dumps(told), encoding="utf-8")
    messages = np.array(asked("messages", where)) * 2.0**-28
    np.testing.assert_allclose(np.linalg.norm(messages, axis=1), 1, atol=order * 2.0**-28)
    along = messages @ value / np.linalg.norm(value)
    share = (1 + np.linalg.norm(value) / bound) / 2
    inside = share * cap.inside + (1 - share) * (1 - cap.inside) * _opposite(cap.share)
    limit = float(norm.isf(2e-10))
    assert abs((along >= cap.gamma).mean() - inside) < limit * math.sqrt(inside * (1 - inside) / n)
    mean = cap.gain * np.linalg.norm(value) / bound
    assert abs(along.mean() - mean) < limit * math.sqrt((cap.along - mean**2) / n)
    basis = np.linalg.svd(value[None, :])[2][1:]
    across = messages @ basis.T
    scale = (1 - cap.along) / (order - 1)
    assert n * float((across.mean(axis=0) ** 2).sum()) / scale < chi2.isf(1e-10, order - 1)


def _opposite(cap_share: float) -> float:
    """The chance of the cap under the law off the opposite cap: uniform there."""
    return cap_share / (1 - cap_share)


def test_integer_messages_have_the_law(tmp_path: Path, seed: int) -> None:
    """2,000 messages of a small grid against the normal law: each comparison fails with probability below 1e-7."""
    n, scale, bits = 2000, 60, 6
    value = np.array([0.9, -0.9, 0.0])
    study = {"answer": {"length": 3, "bits": bits, "bound": 1.5, "noise_scale": scale, "cap": None}}
    where = tmp_path / "messages.json"
    told = {"study": study, "value": value.tolist(), "count": n, "label": f"integer/{seed}/"}
    where.write_text(json.dumps(told), encoding="utf-8")
    noise = (np.array(asked("messages", where)) - np.trunc(value * 2**bits)) / scale
    limit = float(norm.isf(1e-11))
    assert np.abs(noise.mean(axis=0)).max() < limit / math.sqrt(n)
    assert np.abs((noise**2).mean(axis=0) - 1).max() < limit * math.sqrt(2 / n)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < limit / math.sqrt(n)


#: An example, a field, and what it is changed to: noise that is weakened, a price that is understated, a number that
#: makes arithmetic overflow for some answers.
CHANGES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("gaussian", "answer noise_scale", lambda scale: int(0.99 * scale)),
    ("gaussian", "answer noise_scale", lambda scale: scale + 0.5),
    ("gaussian", "answer cap", lambda _: {"epsilon": 50.0, "gamma": 0.9}),
    ("gaussian", "answer bits", lambda bits: bits + 40),
    ("gaussian", "spend mu", lambda mu: 1.01 * mu),
    ("gaussian", "spend mu", lambda mu: -mu),
    ("gaussian", "spend kind", lambda _: "other"),
    ("gaussian", "frame radius", lambda radius: 1.01 * radius),
    ("gaussian", "frame radius", lambda radius: -radius),
    ("gaussian", "frame whitening", lambda whitening: [[1e300] * len(whitening)] * len(whitening)),
    ("gaussian", "frame response scale", lambda _: 1e-300),
    ("gaussian", "question", lambda _: "other"),
    ("gaussian", "terms budget epsilon", lambda epsilon: 0.99 * epsilon),
    ("gaussian", "terms budget delta", lambda delta: 0.9 * delta),
    ("joint", "answer noise_scale", lambda scale: int(0.99 * scale)),
    ("joint", "frame response cross", lambda cross: 1.1 * cross),
    ("unit-vector", "answer cap epsilon", lambda epsilon: 1.01 * epsilon),
    ("unit-vector", "answer cap", lambda _: None),
    ("unit-vector", "answer bound", lambda bound: 0.9 * bound),
    ("unit-vector", "spend epsilon", lambda epsilon: 1.01 * epsilon),
    ("unit-vector", "answer length", lambda length: length + 1),
]


def changed(example: str, where: str, change: Callable[[Any], Any]) -> Any:
    study = json.loads(next(each["study"] for each in EXAMPLES if each["name"] == example))
    *path, last = where.split()
    inner = study
    for name in path:
        inner = inner[name]
    inner[last] = change(inner[last])
    return study


def test_weakened_noise_is_refused(tmp_path: Path) -> None:
    where = tmp_path / "studies.json"
    where.write_text(json.dumps([changed(*each) for each in CHANGES]), encoding="utf-8")
    assert [each for each, kept in zip(CHANGES, asked("promises", where), strict=True) if kept] == []


def test_words_are_complete() -> None:
    """Every language says the same things with the same values, and says all that the page asks for."""
    words: dict[str, dict[str, str]] = asked("words", "")
    values = {
        language: {key: sorted(FIELD.findall(text)) for key, text in each.items()} for language, each in words.items()
    }
    assert values["en"] == values["de"]
    used = set(re.findall(r'data-word="(\w+)"', (PAGES / "study.html").read_text(encoding="utf-8")))
    for path in PAGES.glob("*.js"):
        used |= set(
            re.findall(r'(?:say|#tell|Refusal|refuse)\((?:place, )?"([\w-]+)"', path.read_text(encoding="utf-8"))
        )
    assert used <= set(values["en"])


def test_pages_load_nothing_from_elsewhere_and_draw_no_other_random_numbers() -> None:
    """No address of another host, no markup in text, no Math.random; every file under 400 lines."""
    for path in PAGES.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 400, path.name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
        assert not re.search(r"Math\.random|innerHTML|outerHTML|insertAdjacentHTML|\beval\b|\bstyle=|\son\w+=", text), (
            path.name
        )
