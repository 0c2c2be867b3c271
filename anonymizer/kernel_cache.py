"""Machine code of kernels on disk, for processes that know nothing of each other.

numba's own cache has an index for each kernel, which processes read, change and write without a
lock. Two that compile at one moment can leave an index in which one signature names the code of
another, and numba runs it without comparing. Here each signature has a file of its own, named after
all that its content follows from. There is no index, and no file is ever changed: it is there as a
whole or not at all.

numba also numbers the functions that it compiles from 1 on, in every process, and tells functions
of one name apart by that number alone. Where code of several processes meets, two functions may
have one name, and LLVM then takes one for the other: `np.sort` left values as they were because a
kernel of another process had `np.argsort` under that name (numba issue 10486). Here every process
begins its numbers elsewhere.
"""

import fcntl
import os
import pickle
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache, cached_property
from hashlib import blake2b
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from numba import config, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.codegen import get_host_cpu_features
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from anonymizer.kernel_stamps import Kernel, stamp_of
from anonymizer.kernel_waits import compiling_here

_KEPT_S = 7 * 86400.0
"""Of files: a process of another version may still want them."""
_CHECK_BYTES = 16
_NOT_IN_NAMES = str.maketrans("", "", "<>")
SHIPPED = Path(__file__).parent / "machine_code"
"""Machine code that came with the package, for any processor of x86-64-v3; only read."""
_OF_LEVEL = frozenset(["+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe"])
_Types: TypeAlias = tuple[Any, ...]
"""Types of the arguments of a kernel, as numba has them."""
_Folders: TypeAlias = Callable[[Path], Iterable[Path]]


class CompilesElsewhere(Protocol):
    """What compiles kernels of this process in other processes, see `kernel_background`."""

    @property
    def n_kernels_waiting(self) -> int:
        """The number of kernels that run as plain Python at present."""

    def stand_in(self, kernel: Kernel, types: _Types) -> Callable[..., Any] | None:
        """Return what runs in place of a kernel, or None if it is to be compiled or loaded here."""

    def submit(self, job: Callable[..., None], *args: object) -> object:
        """Let another process do what compiles kernels."""


_background: CompilesElsewhere | None = None


def current_background() -> CompilesElsewhere | None:
    """Return what compiles kernels of this process elsewhere; None: each caller does."""
    return _background


def compile_in(background: CompilesElsewhere | None) -> None:
    """Let this process compile kernels elsewhere from now on; None: where they are called."""
    global _background  # noqa: PLW0603  kernels are of the process, and so is how they run
    _background = background


class _Here(threading.local):
    """Whether this thread compiles a kernel, and with it those that the kernel calls."""

    compiles = 0

    def __enter__(self) -> None:
        self.compiles += 1

    def __exit__(self, *_: object) -> None:
        self.compiles -= 1


_here = _Here()


def number_functions_apart() -> None:
    """Let this process begin its numbers of functions where no other does."""
    FunctionIdentity._unique_ids = count(secrets.randbits(62))  # noqa: SLF001  numba has no public way


number_functions_apart()
os.register_at_fork(after_in_child=number_functions_apart)
_chosen = config.CPU_NAME  # type: ignore[attr-defined]  # NUMBA_CPU_NAME, which an operator may set
if (
    SHIPPED.exists() and _chosen is None and _OF_LEVEL.issubset(get_host_cpu_features().split(","))  # type: ignore[no-untyped-call]
):
    config.CPU_NAME, config.CPU_FEATURES = "x86-64-v3", ""  # type: ignore[attr-defined]  # at run time


def folders_for(source: Path) -> Iterator[Path]:
    """Yield where the machine code of a source may lie, in the order in which it is looked for.

    They are NUMBA_CACHE_DIR alone, or `__pycache__` beside the source and the user's caches.
    """
    packages = takewhile(lambda each: (each / "__init__.py").exists(), source.parents)
    shared = ".".join(reversed([each.name for each in packages])) or source.parent.name
    given = config.CACHE_DIR  # type: ignore[attr-defined]  # numba sets it at run time
    if given:
        yield Path(given) / shared
        return
    if source.exists():
        yield source.parent / "__pycache__"
    with suppress(RuntimeError):  # nobody's home
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(home) / "anonymizer" / shared


def keep_on_disk(
    kernel: Kernel, *, folders: _Folders = folders_for, longest_wait_s: float = 60.0
) -> None:
    """Let a kernel load what any process has compiled, and be compiled by one process alone.

    Kernels that call it with a constant get the code for any value.

    Parameters
    ----------
    kernel
        Compiled by numba without a cache of its own.
    folders
        Returns folders for the path of a source.
    longest_wait_s
        Seconds for which another process is waited for that compiles the same; it may be stopped.
    """
    kernel._cache = cached = KernelCache(kernel, folders)  # noqa: SLF001  numba has no public way
    compile_, template = kernel.compile, kernel.get_call_template

    def compile_once(sig: _Types) -> Any:  # noqa: ANN401  the entry point
        stand_in = None
        if _background and not _here.compiles and not cached.has(sig):
            stand_in = _background.stand_in(kernel, tuple(sig))
        if stand_in is not None:
            return stand_in
        is_waited_for = not _here.compiles and not cached.has(sig)
        # The lock of numba comes first: each process waits for one file at a time.
        with (
            compiling_here() if is_waited_for else nullcontext(),
            global_compiler_lock,
            cached.compiled_once(sig, longest_wait_s=longest_wait_s),
            _here,
        ):
            return compile_(sig)

    def template_of_types(args: _Types, kws: dict[str, Any]) -> Any:  # noqa: ANN401  numba's own
        # A kernel that is called with 0 and later with n is one kernel, not two: a quarter of the
        # time to compile went into copies for constants, most of which were never called. So is
        # one that is called with an item of an int32 array, and later with a count.
        return template(tuple(map(_widened, args)), kws)

    kernel.compile, kernel.get_call_template = compile_once, template_of_types


class KernelCache(_Cache):
    """The machine code of one kernel, a file for each signature.

    Files are read wherever they are found, and written to the first folder that can be written.
    Where none can be, each process compiles for itself.

    `kernel`, `folders`: as of `keep_on_disk`.
    """

    def __init__(self, kernel: Kernel, folders: _Folders = folders_for) -> None:
        self._kernel = kernel
        self._folders_for = folders
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder where files are looked for first."""
        return str(next(iter(self._folders()), ""))

    def enable(self) -> None:
        """Read and write files from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write files."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all machine code of the kernel as it is now."""
        for path in self._files_in(self._folders()):
            path.unlink(missing_ok=True)

    def is_filled(self) -> bool:
        """Return whether there is machine code of this machine for any signature."""
        return any(self._files_in(self._readable()))

    def load_overload(self, sig: _Types, target_context: Any) -> Any:  # noqa: ANN401  numba's own
        """Return the compiled kernel for these types; None if no file has it whole."""
        target_context.refresh()
        for folder in self._readable() if self._enabled else ():
            made_for, parts = _read(folder / self._file(sig)) or (None, ())
            # Other code would run on these arguments, and numba would not notice.
            if made_for == tuple(sig):
                return CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]  # noqa: SLF001
        return None

    def save_overload(self, sig: _Types, data: Any) -> None:  # noqa: ANN401  numba's own
        """Write a compiled kernel to the first folder that can be written, if any can."""
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        parts = (tuple(data.signature.args), data._reduce())  # noqa: SLF001
        content = dumps(parts)  # type: ignore[no-untyped-call]
        for folder in self._folders():
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / self._file(sig), content)
                self._remove_old(folder)
                return

    def has(self, sig: _Types) -> bool:
        """Return whether the code for these types is loaded, or can be."""
        places = [folder / self._file(sig) for folder in self._readable()]
        return tuple(sig) in self._kernel.overloads or any(map(Path.exists, places))

    @contextmanager
    def compiled_once(self, sig: _Types, *, longest_wait_s: float) -> Iterator[None]:
        """Wait while another process compiles the same, which is loaded then and not made twice."""
        if not self._enabled or self.has(sig):
            yield
            return
        places = [folder / self._file(sig) for folder in self._folders()]
        with ExitStack() as held:
            for place in places:
                with suppress(OSError):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    held.enter_context(_turn_at(place, longest_wait_s))
                    break
            yield

    def _remove_old(self, folder: Path) -> None:
        """Remove what the kernel was before, and what was left half written, after a while."""
        for path in folder.glob(f"{self._base}.*"):
            with suppress(FileNotFoundError):
                is_current = path.match(f"{self._base}.{self._stamp}.*.nbc")
                if not is_current and path.stat().st_mtime < time.time() - _KEPT_S:
                    path.unlink()

    def _files_in(self, folders: Iterable[Path]) -> Iterator[Path]:
        for folder in folders:
            yield from folder.glob(f"{self._base}.{self._stamp}.*.nbc")

    def _file(self, sig: _Types) -> str:
        signature = blake2b(" ".join(map(str, sig)).encode(), digest_size=8).hexdigest()
        return f"{self._base}.{self._stamp}.{signature}.nbc"

    @cached_property
    def _base(self) -> str:
        """What files of the kernel are named on this kind of machine, whatever its code."""
        function = self._kernel.py_func
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        return f"{name.translate(_NOT_IN_NAMES)}.{_machine()}"

    @cached_property
    def _stamp(self) -> str:
        return stamp_of(self._kernel)

    def _folders(self) -> Iterable[Path]:
        return self._folders_for(Path(self._kernel.py_func.__code__.co_filename))

    def _readable(self) -> Iterable[Path]:
        return (*self._folders(), SHIPPED)


def _widened(kind: Any) -> Any:  # noqa: ANN401  types of numba
    """Return the type with which kernels call each other: no constants, and whole numbers wide."""
    plain: Any = types.unliteral(kind)  # type: ignore[no-untyped-call]
    return types.int64 if getattr(plain, "signed", False) else plain


@cache
def _machine() -> str:
    """Return a digest of the processor for which this process compiles."""
    kind = cpu_target.target_context.codegen().magic_tuple()
    return blake2b(repr(kind).encode(), digest_size=4).hexdigest()


def _check(content: bytes) -> bytes:
    return blake2b(content, digest_size=_CHECK_BYTES).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        aside.write_bytes(_check(content) + content)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _read(path: Path) -> tuple[_Types, tuple[Any, ...]] | None:
    """Return the types of a compiled kernel, and its parts; None if the file is not whole."""
    try:
        found = path.read_bytes()
    except OSError:
        return None
    content = found[_CHECK_BYTES:]
    if found[:_CHECK_BYTES] != _check(content):
        return None
    try:
        read: tuple[_Types, tuple[Any, ...]] = pickle.loads(content)  # noqa: S301  as numba's own
    except (AttributeError, ImportError):  # it names a class that is now named otherwise
        return None
    return read


@contextmanager
def _turn_at(place: Path, longest_wait_s: float) -> Iterator[None]:
    """Hold the lock of a file, unless another process writes the file or takes too long."""
    lock = place.with_name(f"{place.name}.lock")
    until = time.monotonic() + longest_wait_s
    with lock.open("wb") as file:
        while not place.exists() and time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return
        yield
