"""Importing what `--jobs` names, a module or a path, with every failure as one line that names its place."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import zlib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from taskbatch.checks import refuse
from taskbatch.errors import ConfigError
from taskbatch.failure import error_text, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_MACHINERY = (f"{Path(__file__).parent}/", f"{Path(importlib.__file__).parent}/", "<frozen importlib")


class ModuleMissingError(ConfigError):
    """There is no module of that name, or nothing at that path."""


def put_current_directory_last() -> None:
    """Let modules of the current directory be found, after everything installed: they replace nothing."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def import_spec(spec: str) -> list[ModuleType]:
    """Return the module `spec` names, then all its submodules. Raises ConfigError, or ModuleMissingError."""
    if _is_path(spec):
        path = Path(spec).expanduser().absolute()
        if path.is_dir():
            return _with_submodules(_directory(path))
        if path.is_file() and path.suffix == ".py":
            return [_file(path)]
        msg = f"no Python file or directory at {spec!r}"
        raise ModuleMissingError(msg)
    return _with_submodules(_named(spec))


def shown_path(place: str) -> str:
    """Return a path, with or without a line number, relative to the current directory if it is below that."""
    return place.removeprefix(f"{Path.cwd()}{os.sep}")


def _is_path(spec: str) -> bool:
    return os.sep in spec or spec.endswith(".py") or spec.startswith((".", "~"))


def _named(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        refuse(f"{name[:100]!r} is neither the name of a module nor a path (write ./{name[:100]} for a path)")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            msg = f"no module {name!r}, neither installed nor in {Path.cwd()}; --jobs says where jobs are"
            raise ModuleMissingError(msg) from error
        raise _failure(name, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failure(name, error) from error


def _with_submodules(module: ModuleType) -> list[ModuleType]:
    return [module, *(_named_below(name) for name in _submodules(module))]


def _submodules(module: ModuleType) -> Iterator[str]:
    # __main__ is a program: importing it would run it.
    for info in pkgutil.iter_modules(getattr(module, "__path__", []), f"{module.__name__}."):
        if not info.name.endswith(".__main__"):
            yield info.name
            if info.ispkg:
                yield from _submodules(_named_below(info.name))


def _named_below(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failure(name, error) from error


def _directory(path: Path) -> ModuleType:
    """Import a directory as a package named after it, with or without an `__init__.py`."""
    name = path.name.replace(".", "_")
    there = sys.modules.get(name)
    if there is not None and str(path) in list(getattr(there, "__path__", [])):
        return there
    if there is not None or _is_elsewhere(name, path):
        refuse(f"a directory of jobs cannot be named {name!r} as an installed module is: rename {path}")
    init = path / "__init__.py"
    if init.is_file():
        return _load(spec_from_file_location(name, init, submodule_search_locations=[str(path)]), init)
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(path)]
    return _load(spec, path)


def _is_elsewhere(name: str, path: Path) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and str(path) not in list(spec.submodule_search_locations or [])


def _file(path: Path) -> ModuleType:
    """Import one file: as part of its package if it is in one, else under a name nothing else can have.

    (A file of jobs may be called `email.py`, and must not become everybody's `email`.)
    """
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    if (path.parent / "__init__.py").is_file() and path.name != "__init__.py":
        return _named_below(f"{_directory(path.parent).__name__}.{path.stem}")
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    return _load(spec_from_file_location(name, path), path)


def _load(spec: ModuleSpec | None, path: Path) -> ModuleType:
    if spec is None:
        refuse(f"{path} cannot be imported")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[spec.name]
        raise _failure(shown_path(str(path)), error) from error
    return module


def _failure(name: str, error: BaseException) -> ConfigError:
    text = one_line(str(error)) if isinstance(error, ConfigError) else error_text(error)[:500]
    return ConfigError(f"cannot import jobs from {name}: {text} ({_place(error)})")


def _place(error: BaseException) -> str:
    """Return `file:line` where it happened, import machinery and our own declarations left out."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{shown_path(error.filename)}:{error.lineno}"
    place, link = "?", error.__traceback__
    while link is not None:
        file = link.tb_frame.f_code.co_filename
        if not file.startswith(_MACHINERY):
            place = f"{shown_path(file)}:{link.tb_lineno}"
        link = link.tb_next
    return place
