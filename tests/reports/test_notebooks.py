"""What notebooks show of results that are tables in print."""

import numpy as np

from dpregress.inference.hypotheses import TermTests, TTest, WaldTest


def test_results_of_tests_are_tables_in_a_notebook() -> None:
    """What print shows, with names that are no markup. Deterministic."""
    one, infinite = np.ones(1), np.array([np.inf])
    shown = TTest(("<b> = 0",), one, np.zeros(1), one, infinite)._repr_html_()
    assert shown.startswith("<pre>hypothesis")
    assert "&lt;b&gt; = 0" in shown
    assert "<b>" not in shown
    assert "chi2" in TermTests(("age",), (WaldTest(4.0, 0.0455, 1, np.inf),))._repr_html_()
