"""What the library never does: unpickle, evaluate text, or hand a line to a shell.

    python tools/security.py [PATH ...]      # Python files and folders; default pde_nb and benchmarks

A line for each call or import that SECURITY.md rules out. The exit status is 1 where there is one.
"""

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNPICKLERS = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "jsonpickle",
    "joblib",
    "marshal",
    "shelve",
}
HARMLESS = {("pickle", "UnpicklingError"), ("pickle", "PicklingError")}
EVALUATORS = {"eval", "exec", "compile", "__import__", "execfile"}
SHELLS = {
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"),
    *("commands.getoutput", "asyncio.create_subprocess_shell"),
}
READERS = {
    *(
        "torch.jit.load",
        "torch.hub.load",
        "torch.package.PackageImporter",
        "pd.read_pickle",
        "pandas.read_pickle",
    ),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "np.core.records.fromfile"),
}
METHODS = {
    "extractall": "extractall() trusts the names in an archive: read member by member",
    "read_pickle": "read_pickle() unpickles",
    "query": "query() evaluates text",
}
FLAGS = {
    "shell": "shell=True hands a line to a shell",
    "trust_remote_code": "trust_remote_code=True runs code of a hub",
    "allow_pickle": "allow_pickle=True unpickles",
}


def dotted(node):
    """The name `a.b.c` that a node spells; '' where it is none."""
    if isinstance(node, ast.Name):
        return node.id
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if inner else ""


def import_faults(node):
    """What is wrong with an import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in UNPICKLERS:
                yield f"import of {alias.name}, which unpickles"
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNPICKLERS:
        for alias in node.names:
            if (node.module, alias.name) not in HARMLESS:
                yield f"import of {alias.name} from {node.module}, which unpickles"


def is_literal(node, value):
    return isinstance(node, ast.Constant) and node.value is value


def call_faults(node):
    """What is wrong with a call."""
    name = dotted(node.func)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in EVALUATORS:
        yield f"{name}() evaluates text"
    if name in SHELLS or name.startswith(("os.spawn", "os.exec")):
        yield f"{name}() starts a program by a line of text, or in place of this one"
    if name in READERS:
        yield f"{name}() can run what a file holds"
    if name == "torch.load" and not is_literal(keywords.get("weights_only"), True):
        yield "torch.load() without weights_only=True unpickles"
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in METHODS:
            yield METHODS[node.func.attr]
        if node.func.attr == "eval" and (node.args or node.keywords):
            yield "eval() with an argument evaluates text"
    for flag, why in FLAGS.items():
        if flag in keywords and not is_literal(keywords[flag], False):
            yield why


def faults(source):
    """(line, what is wrong) of everything in a text of Python that SECURITY.md rules out."""
    for node in ast.walk(ast.parse(source)):
        found = call_faults(node) if isinstance(node, ast.Call) else import_faults(node)
        yield from ((node.lineno, what) for what in found)


# One line for each rule, which must be found, and lines of which none may be.
RULED_OUT = (
    *("import pickle", "from joblib import load", "from pickle import loads", "import torch, dill.source"),
    *("eval(text)", "exec(text)", "compile(a, b, 'exec')", "__import__(name)", "frame.eval('a + b')"),
    *("os.system(line)", "os.popen(line)", "os.execv(a, b)", "subprocess.run(line, shell=True)"),
    *("subprocess.run(line, shell=flag)", "torch.load(path)", "torch.load(path, weights_only=False)"),
    *(
        "torch.load(path, weights_only=flag)",
        "np.load(path, allow_pickle=flag)",
        "np.load(path, allow_pickle=True)",
    ),
    *("torch.hub.load(repo, name)", "pd.read_pickle(path)", "yaml.load(text)", "archive.extractall(folder)"),
    *("AutoModel.from_pretrained(name, trust_remote_code=True)", "frame.query(text)"),
)
ALLOWED = (
    *("from pickle import UnpicklingError", "model.eval()", "re.compile(text)", "subprocess.run([a, b])"),
    *("torch.load(path, weights_only=True)", "np.load(path)", "np.load(path, allow_pickle=False)"),
    *("AutoModel.from_pretrained(name, trust_remote_code=False)", "subprocess.run([a], shell=False)"),
)


def blind_spots():
    """Lines of the two lists above that are judged wrongly: there must be none."""
    missed = [f"not found: {line}" for line in RULED_OUT if not list(faults(line))]
    return missed + [f"found, though allowed: {line}" for line in ALLOWED if list(faults(line))]


def all_faults(places=("pde_nb", "benchmarks")):
    """One line for each fault below some places."""
    lines = blind_spots()
    for place in (ROOT / name for name in places):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found = faults(path.read_text(encoding="utf-8"))
            lines += [f"{path.relative_to(ROOT).as_posix()}:{line}: {what}" for line, what in found]
    return lines


def main(args=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", default=["pde_nb", "benchmarks"])
    lines = all_faults(parser.parse_args(args).places)
    print("\n".join(lines) if lines else "nothing is ruled out")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
