"""Stamps of kernels: what their machine code is made from, in a few bytes.

The code of the kernels that a kernel calls, and the constants that they read, become part of its
machine code. A stamp therefore covers the bytecode of all of them and the values of their globals.
It does not change with comments, or with code that the kernel never reaches.
"""

import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numba
import numpy as np
from numba import config
from numba.core.dispatcher import Dispatcher

Kernel: TypeAlias = Any
"""A dispatcher of numba, whose types say too little of it."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype)
_SWITCHES = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT")
_VERSIONS = (sys.version_info[:2], numba.__version__, np.__version__)


def stamp_of(kernel: Kernel) -> str:
    """Return a digest of all that the machine code of a kernel follows from, but its types.

    About 0.1 ms for each kernel that it calls, once in a process.
    """
    parts, left = {}, [kernel]
    while left:
        one = left.pop()
        if one.py_func not in parts:
            parts[one.py_func], called = _described(one)
            left += called
    switches = tuple(getattr(config, name, None) for name in _SWITCHES)
    told = (parts[kernel.py_func], sorted(parts.values()), _VERSIONS, switches)
    return _digest(repr(told))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def _described(kernel: Kernel) -> tuple[str, tuple[Kernel, ...]]:
    """Return a digest of what one kernel says, and the kernels that it calls."""
    function: FunctionType = kernel.py_func
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    names = sorted(_names(function.__code__) & function.__globals__.keys())
    values = [*(function.__globals__[name] for name in names), *cells]
    text = repr(
        (
            function.__module__,
            function.__qualname__,
            sorted(kernel.targetoptions.items()),
            _code(function.__code__),
            _value(function.__defaults__),
            names,
            [_value(value) for value in values],
        )
    )
    return _digest(text), tuple(_kernels(values))


def _kernels(values: list[Any]) -> Iterator[Kernel]:
    for value in values:
        if isinstance(value, Dispatcher):
            yield value
        elif isinstance(value, tuple):
            yield from _kernels(list(value))


def _names(code: CodeType) -> set[str]:
    """Return the names that some code, or code within it, may look up."""
    within = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, within))


def _code(code: CodeType) -> str:
    """Return the instructions, constants and names of a function, without its lines."""
    constants = [_code(c) if isinstance(c, CodeType) else _value(c) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, code.co_argcount, code.co_exceptiontable, names, constants))


def _value(value: Any) -> str:  # noqa: ANN401  globals of any kind
    """Return what a kernel can read of a global or constant; equal in every process."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple | frozenset):
        items = [_value(item) for item in value]
        return repr((type(value).__qualname__, items if type(value) is tuple else sorted(items)))
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, value.tobytes()))
    if isinstance(value, type):
        members = getattr(value, "__members__", None)  # of an enumeration
        fields = getattr(value, "_fields", None)  # of a tuple with names
        named = members and [(name, _value(member.value)) for name, member in members.items()]
        return repr((value.__module__, value.__qualname__, fields, named))
    kind = type(value)
    where = getattr(value, "__module__", kind.__module__)
    return repr((kind.__qualname__, where, getattr(value, "__name__", "")))
