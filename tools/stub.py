"""Write src/moral_entropy/__init__.pyi: the public names, functions that take options with every keyword spelt out.

A wrong keyword is a type error then; the options themselves are declared once, in `moral_entropy/options.py`.

Usage: python tools/stub.py
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import moral_entropy as me

STUB = Path(me.__file__).with_suffix(".pyi")
HEAD = '''"""Written by tools/stub.py: the public names with every keyword, for type checkers and editors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

'''
NAMES = ("Any", "Literal", "Mapping", "Path", "Sequence")
"""What a signature may name besides builtins and public names."""


def type_text(kind: Any) -> str:
    """Spell a type.

    Examples
    --------
    >>> type_text(tuple[str, ...] | None)
    'Sequence[str] | None'
    """
    if isinstance(kind, str):
        return re.sub(r"\b(?:[a-z_]\w*\.)+", "", kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(type_text, typing.get_args(kind))))
    if kind is type(None):
        return "None"
    text = re.sub(r"\b(?:[a-z_]\w*\.)+", "", inspect.formatannotation(kind))
    # A list, a tuple: options convert whatever has elements.
    return re.sub(r"\btuple\[(.*), \.\.\.\]", r"Sequence[\1]", text)


def signature_text(name: str, function: Any) -> str:
    """Spell the signature of a function; what follows its options is optional."""
    signature, parts, starred = inspect.signature(function), [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts, starred = [*parts, "*"], True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else " = ..."
        parts.append(f"{stars}{parameter.name}: {with_public_types(type_text(parameter.annotation))}{default}")
    lines = "".join(f"    {part},\n" for part in parts)
    return f"def {name}(\n{lines}) -> {with_public_types(type_text(signature.return_annotation))}: ...\n"


def with_public_types(text: str) -> str:
    """Replace names that the stub does not import: they are of no use to whoever calls a function."""
    names = {*me.__all__, *NAMES, "None", "True", "False"}
    plain = re.sub(r"'[^']*'", "", text)
    private = {word for word in re.findall(r"\b[A-Z]\w+", plain) if word not in names}
    for word in private:
        text = re.sub(rf"\b{word}\b(\[[^\]]*\])?", "Any", text)
    return text


def stub_text() -> str:
    """Return the stub: classes imported from where they are, functions with their signatures."""
    public = {name: getattr(me, name) for name in me.__all__ if not name.startswith("_")}
    # A package that can be called has a function of its name.
    public |= {name: getattr(value, name) for name, value in public.items() if inspect.ismodule(value)}
    classes = {name: value for name, value in public.items() if inspect.isclass(value)}
    imports = "".join(f"from {value.__module__} import {name} as {name}\n" for name, value in sorted(
        classes.items(), key=lambda pair: (pair[1].__module__, pair[0])))  # fmt: skip
    functions = [signature_text(name, value) for name, value in public.items() if name not in classes]
    return f"{HEAD}{imports}\n__version__: str\n\n" + "\n".join(functions)


if __name__ == "__main__":
    STUB.write_text(stub_text(), encoding="utf-8")
    # Long lines are folded as everywhere else.
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", STUB], check=True)
