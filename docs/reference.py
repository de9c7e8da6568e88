"""What the reference says of a function or class beyond its docstring: parameters, result and errors.

The code writes one parameter per line with a comment behind it, fields of dataclasses too. Sphinx's autodoc
does not see comments, so its hooks here read them from the source. (fastcore's `docments` is not used: it
takes the comment of `**options` for the result's, and the type of a default for the parameter's type.)
"""

import ast
import dataclasses
import inspect
import io
import re
import sys
import textwrap
import tokenize
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

LIB = "pde_nb"
# Internal classes whose fields public functions take as `**options`.
TAKEN = {"sources.data": ("DataOptions",)}
MOST_MESSAGES = 8  # of one function
LONGEST_MESSAGE = 240  # characters

MARKDOWN = re.compile(
    r"(?P<tick>`+)(?P<code>.+?)(?P=tick)|\$(?P<math>[^$]+)\$|(?P<special>[*|\\]|_(?=\W|$))", re.DOTALL
)
RAISES = re.compile(r"\s*Raises `(?P<error>\w+)`(?P<when>,? .*?\.)(?=\s|$)", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or a field of a dataclass, as the source has it."""

    name: str
    type: str = ""
    default: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Source:
    """A module's syntax tree and the comments in it."""

    tree: ast.Module
    comments: dict[int, str]  # by line
    alone: frozenset[int]  # lines that hold a comment only


@cache
def source_of(file):
    """The `Source` of a Python file."""
    text = Path(file).read_text(encoding="utf-8")
    comments, lines = {}, text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("#").strip()
    alone = frozenset(line for line in comments if lines[line - 1].lstrip().startswith("#"))
    return Source(ast.parse(text), comments, alone)


def block(source, line, step):
    """The lines that hold a comment only, from `line` on upwards (step -1) or downwards (1), as one text."""
    found = []
    while line in source.alone and not source.comments[line].startswith("%%"):
        found.append((line, source.comments[line]))
        line += step
    return " ".join(text for _, text in sorted(found)), line


def goes_on(text):
    """Whether a comment behind code is continued on the lines below."""
    return text.endswith((";", ","))


def comment_at(source, line):
    """The comment behind the code of a line; else the one above it, where that belongs to no other line."""
    if line in source.comments and line not in source.alone:
        text = source.comments[line]
        return f"{text} {block(source, line + 1, 1)[0]}" if goes_on(text) else text
    above, before = block(source, line - 1, -1)
    return "" if goes_on(source.comments.get(before, "")) else above


def written(node):
    """The source of an expression; nothing for none."""
    return "" if node is None else ast.unparse(node)


# ---- parameters -----------------------------------------------------------------------------


def function_parameters(node, source):
    """The parameters of a function's syntax tree, without `self` and `cls`."""
    given = node.args
    places = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(places) - len(given.defaults)) + given.defaults
    starred = [(given.vararg, "*")] if given.vararg else []
    named = list(zip(given.kwonlyargs, given.kw_defaults))
    double = [(given.kwarg, "**")] if given.kwarg else []
    found = [(arg, "", default) for arg, default in zip(places, defaults)]
    found += [(arg, stars, None) for arg, stars in starred]
    found += [(arg, "", default) for arg, default in named]
    found += [(arg, stars, None) for arg, stars in double]
    lines = [arg.lineno for arg, _, _ in found]
    out = []
    for arg, stars, default in found:
        if arg.arg in ("self", "cls") and arg is found[0][0]:
            continue
        own_line = lines.count(arg.lineno) == 1 and (arg.lineno != node.lineno or len(found) == 1)
        comment = comment_at(source, (default or arg).end_lineno) if own_line else ""
        out.append(Parameter(stars + arg.arg, written(arg.annotation), written(default), comment))
    return out


def class_fields(node, source):
    """The fields of one dataclass's syntax tree."""
    out = []
    for item in node.body:
        named = isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        if not named or item.target.id.startswith("_"):
            continue
        comment = comment_at(source, item.end_lineno)
        out.append(Parameter(item.target.id, written(item.annotation), written(item.value), comment))
    return out


def function_node(function):
    """The syntax tree of a function and its `Source`; None for what the library does not define."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or f"/{LIB}/" not in Path(code.co_filename).as_posix():
        return None
    source = source_of(code.co_filename)
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno and node.name == code.co_name:
                return node, source
    return None


def class_parameters(cls):
    """What a class is called with: the parameters of its `__init__`, or the fields of a dataclass."""
    if dataclasses.is_dataclass(cls):
        fields = {}
        for base in reversed(cls.__mro__):
            if not dataclasses.is_dataclass(base) or not base.__module__.startswith(LIB):
                continue
            source = source_of(sys.modules[base.__module__].__file__)
            for node in ast.walk(source.tree):
                if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                    fields |= {field.name: field for field in class_fields(node, source)}
        init = {field.name for field in dataclasses.fields(cls) if field.init}
        return [field for name, field in fields.items() if name in init]
    found = function_node(cls.__init__) if "__init__" in vars(cls) else None
    return function_parameters(*found) if found else []


# ---- errors ---------------------------------------------------------------------------------


def message_text(node):
    """The text of an error's message, with what is put into it in braces; "" where it is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = message_text(node.left), message_text(node.right)
        return left + right if left and right else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    parts = []
    for part in node.values:
        inside = isinstance(part, ast.FormattedValue)
        parts.append("{" + written(part.value) + "}" if inside else part.value)
    return "".join(parts)


def raised_by(node, source, seen):
    """(error, message) of each `raise` in a function and in the internal functions of its module it calls."""
    internal = {
        item.name: item
        for item in source.tree.body
        if isinstance(item, ast.FunctionDef) and item.name.startswith("_")
    }
    for inner in ast.walk(node):
        if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call) and inner.exc.args:
            message = message_text(inner.exc.args[0])
            if isinstance(inner.exc.func, ast.Name) and message:
                yield inner.exc.func.id, message
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            called = inner.func.id
            if called in internal and called not in seen:
                seen.add(called)
                yield from raised_by(internal[called], source, seen)


def error_messages(node, source):
    """The messages that a function may fail with, each once, in the order of the code."""
    found = dict.fromkeys(raised_by(node, source, set()))
    return [(error, textwrap.shorten(text, LONGEST_MESSAGE, placeholder=" …")) for error, text in found]


# ---- as reStructuredText --------------------------------------------------------------------


def library_modules(root):
    """Names of all modules of the library in the folder `root`, in order."""
    paths = sorted(Path(root, LIB).rglob("*.py"))
    names = (".".join(path.relative_to(root).with_suffix("").parts) for path in paths)
    return [name for name in names if not name.rpartition(".")[2].startswith("__")]


def import_all(root):
    """Import every module of the library: only then is it known which names there are to link to."""
    for name in library_modules(root):
        import_module(name)


@cache
def public_names():
    """{name: full name} of what exactly one loaded module of the library offers under that name."""
    places = {}
    for module in [*sys.modules.values()]:
        name = getattr(module, "__name__", "")
        if name.startswith(f"{LIB}."):
            taken = TAKEN.get(name.removeprefix(f"{LIB}."), ())
            for public in (*getattr(module, "__all__", ()), *taken):
                own = getattr(getattr(module, public, None), "__module__", name)
                if own == name:
                    places.setdefault(public, set()).add(f"{name}.{public}")
    return {name: full.pop() for name, full in places.items() if len(full) == 1}


def link(name):
    """A name of the library in code letters, as a link to where it is described."""
    return f":py:obj:`{name} <{public_names()[name]}>`" if name in public_names() else f"``{name}``"


def as_rst(match):
    if match["code"]:
        return link(" ".join(match["code"].split()))
    if match["math"]:
        return f":math:`{match['math']}`"
    return "\\" + match["special"]


def rst(markdown):
    """Docstrings and comments are written in Markdown: the little of it that they use as reStructuredText."""
    return MARKDOWN.sub(as_rst, markdown)


def literal(code):
    """Code letters; nothing for nothing."""
    return f"``{code}``" if code else ""


def type_rst(annotation):
    """A type: linked where it is a class of the library, or that or None."""
    name = annotation.removesuffix(" | None")
    if name not in public_names():
        return literal(annotation)
    return link(name) + (" | None" if name != annotation else "")


def parameter_lines(parameters):
    """Fields that say what each parameter is."""
    lines = []
    for one in parameters:
        default = f"default {literal(one.default)}" if one.default else ""
        kind = ", ".join(filter(None, [type_rst(one.type), default]))
        name = one.name.replace("*", "\\*")
        lines.append(f":param {name}: {rst(one.comment)}".rstrip())
        if kind:
            lines.append(f":type {name}: {kind}")
    return lines


def result_lines(node, source):
    """What a function returns, where its source says it."""
    comment = ""
    if node.returns is not None and node.returns.end_lineno != node.lineno:
        comment = comment_at(source, node.returns.end_lineno)
    kind = type_rst(written(node.returns))
    if not kind or kind == "``None``":
        return []
    return [f":returns: {kind}" + (f" – {rst(comment)}" if comment else "")]


def split_raises(text):
    """A docstring without its sentences on errors, and (error, when) of each of those."""
    found = [(match["error"], match["when"].strip().lstrip(",").strip()) for match in RAISES.finditer(text)]
    return RAISES.sub("", text).strip(), found


def error_lines(said, messages):
    """Fields on errors: what the docstring says of them, and the messages in the code."""
    lines = [f":raises {error}: {rst(when)}" for error, when in said]
    lines += [f":raises {error}: “{rst(text)}”" for error, text in messages[:MOST_MESSAGES]]
    return [" ".join(line.split()) for line in lines]


def details(what, thing):
    """The fields below a docstring: parameters, result, and the messages of errors."""
    if what in ("class", "exception"):
        check = "__post_init__" if dataclasses.is_dataclass(thing) else "__init__"
        found = function_node(getattr(thing, check)) if check in vars(thing) else None
        return parameter_lines(class_parameters(thing)), error_messages(*found) if found else []
    if what not in ("function", "method"):
        return [], []
    found = function_node(thing)
    if not found:
        return [], []
    return [*parameter_lines(function_parameters(*found)), *result_lines(*found)], error_messages(*found)


def describe(app, what, name, thing, options, lines):
    """Autodoc's hook: a docstring as reStructuredText; below it parameters, result and errors."""
    if what == "module":  # its page says it already
        lines[:] = [""]
        return
    text, said = split_raises("\n".join(lines).strip())
    fields, messages = details(what, thing)
    fields += error_lines(said, messages)
    lines[:] = [*rst(text).split("\n"), "", *fields, ""]


def signature_text(parameters, node):
    """A call as the source has it, without types: these stand in the list of parameters."""
    parts, named = [], False
    keyword = {arg.arg for arg in node.args.kwonlyargs} if node is not None else set()
    for one in parameters:
        if one.name in keyword and not named and not any(part.startswith("*") for part in parts):
            parts.append("*")
        named = named or one.name in keyword
        parts.append(f"{one.name}={one.default}" if one.default else one.name)
    return f"({', '.join(parts)})"


def class_signature(cls):
    """What a class is called with; nothing where the library does not say."""
    parameters = class_parameters(cls)
    if not parameters:
        return ""
    found = function_node(cls.__init__) if "__init__" in vars(cls) else None
    return signature_text(parameters, found[0] if found else None)


def call_signature(app, what, name, thing, options, signature, returns):
    """Autodoc's hook: the signature as it is written."""
    if what in ("class", "exception"):
        return class_signature(thing) or signature, None
    found = function_node(thing) if what in ("function", "method") else None
    if found:
        signature = signature_text(function_parameters(*found), found[0])
    return signature, None


def skip_fields(app, what, name, thing, skip, options):
    """Autodoc's hook: fields of a dataclass stand in the list of its parameters, and are no members."""
    plain = not callable(thing) and not isinstance(thing, (property, cached_property))
    return True if what == "class" and plain else None


# ---- constants ------------------------------------------------------------------------------


def constants(file, module):
    """Directives for the public constants of a module, which autodoc leaves out without a docstring."""
    source, out = source_of(file), [f".. py:currentmodule:: {module}", ""]
    public = getattr(sys.modules.get(module), "__all__", ())
    for node in source.tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        shown = isinstance(target, ast.Name) and target.id in public
        if shown and not callable(getattr(sys.modules[module], target.id)):
            value = textwrap.shorten(written(node.value), 90, placeholder=" …")
            entry = [f".. py:data:: {target.id}", f"   :value: {value}", ""]
            out += [*entry, f"   {rst(comment_at(source, node.end_lineno))}", ""]
    return "\n".join(out) if len(out) > 2 else ""


def unlisted(site):
    """One line for each parameter of a name for users that its page in the site does not list."""
    lines, library = [], sys.modules[LIB]
    for name in library.__all__:
        thing = getattr(library, name)
        found = function_node(thing) if inspect.isfunction(thing) else None
        parameters = function_parameters(*found) if found else []
        if inspect.isclass(thing):
            parameters = class_parameters(thing)
        if not parameters:
            continue
        page = Path(site, "api", *thing.__module__.split(".")[1:]).with_suffix(".html")
        text = page.read_text(encoding="utf-8")
        entry = text.partition(f'id="{thing.__module__}.{thing.__name__}"')[2].partition('<dl class="py ')[0]
        lines += [
            f"{page.relative_to(site).as_posix()}: {name} does not list its parameter {one.name}"
            for one in parameters
            if f"<strong>{one.name}</strong>" not in entry
        ]
    return lines


def setup(app):
    app.connect("autodoc-process-docstring", describe)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("autodoc-process-signature", call_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
