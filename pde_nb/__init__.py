"""Progressive data expansion (PDE) and eight other methods against spurious correlation.

The names below are what a user needs. Each is loaded when it is first used, so that `import pde_nb` is quick and
works without torch. Everything else in the sub-packages is internal and may move.

    table = pde_nb.example_table("loans.csv")  # or a table of yours
    data = pde_nb.from_table(table, label="granted", attribute="district")
    print(pde_nb.diagnose(data))
    fit = pde_nb.robust_fit(None, data)
    print(fit.record)
"""

__version__ = "0.1.0"

import lazy_loader as _lazy

_load, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name):
    try:
        return _load(name)
    except ModuleNotFoundError as e:
        raise ImportError(f"pde_nb.{name}: {e}; install it with: pip install 'pde_nb[train]'") from e
