"""Properties: what must hold for all that can be drawn, tried when its page is run.

A page tries each on a few examples, the same ones every time. PDE_EXAMPLES=100 tries a hundred times as many,
and new ones at every run: `PDE_EXAMPLES=100 nbdev_test --path nbs/02_algorithm/05_properties.ipynb`.
"""

import os
import warnings
from functools import wraps

from hypothesis import HealthCheck, given, settings

TIMES = int(os.environ.get("PDE_EXAMPLES", 0))  # as many examples as usual; 0: the usual ones
COMMON = dict(deadline=None, database=None, print_blob=False, suppress_health_check=list(HealthCheck))


def holds(few: int = 12, **drawn):
    """Decorator: the property holds for all that can be drawn; tried at once on `few` examples."""

    def state(test):
        @wraps(test)
        def quiet(**values):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                test(**values)

        examples = settings(max_examples=few * max(TIMES, 1), derandomize=not TIMES, **COMMON)
        examples(given(**drawn)(quiet))()
        return test

    return state
