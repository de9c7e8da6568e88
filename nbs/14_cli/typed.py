"""What a line typed at a terminal does: for the tests of the commands."""

import os
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from pde_nb.cli.app import pde


def typed(line, errors=True):
    """The status of a line of `pde`, and what it says: with `errors`, also on the standard error."""
    out, status = StringIO(), 0
    with redirect_stdout(out), redirect_stderr(out if errors else StringIO()):
        try:
            pde(shlex.split(line))
        except SystemExit as e:
            status = int(e.code or 0)
    return status, out.getvalue()


def refused(*lines):
    """Print what lines that are refused say last; each has to end with status 2 or 3."""
    for status, said in map(typed, lines):
        print(said.strip().splitlines()[-1].replace(f"{os.getcwd()}/", ""))
        assert status in (2, 3), (status, said)
