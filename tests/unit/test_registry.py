"""Finding jobs: modules, paths, entry points, and one clear line for everything that is wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from taskbatch.declaration import RateLimit, job
from taskbatch.errors import ConfigError
from taskbatch.registry import Registry, load_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = "from taskbatch import job\n\n\n@job({name!r})\ndef run(payload: dict) -> None: ...\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory; what a test imports and puts on the path goes with it."""
    path, modules = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    sys.path[:] = [entry for entry in path if entry not in {"", "."} and not (Path(entry) / "jobs").is_dir()]
    # Other tests may have imported the jobs of this repository.
    shadowed = {name: sys.modules.pop(name) for name in list(modules) if name == "jobs" or name.startswith("jobs.")}
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith(("taskbatch", "google", "importlib")):
            del sys.modules[name]
    sys.modules.update(shadowed)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(dedent(text))


def write_job(path: str, name: str) -> None:
    write(path, JOB.format(name=name))


def refusal(*specs: str, entry_points: bool = False) -> str:
    with pytest.raises(ConfigError) as caught:
        load_jobs(specs, entry_points=entry_points)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_package_is_loaded_with_everything_in_it() -> None:
    write("jobs/__init__.py", "")
    write_job("jobs/mail.py", "mail")
    write_job("jobs/deep/__init__.py", "deep")
    write_job("jobs/deep/deeper.py", "deeper")

    assert set(load_jobs(["jobs"])) == {"mail", "deep", "deeper"}


def test_a_folder_in_the_current_directory_needs_no_init() -> None:
    write_job("jobs/mail.py", "mail")

    assert set(load_jobs(["jobs"])) == {"mail"}


def test_importing_a_package_does_not_run_it_as_a_program() -> None:
    write_job("jobs/mail.py", "mail")
    write("jobs/__main__.py", "raise SystemExit('ran')")

    assert set(load_jobs(["jobs"])) == {"mail"}


def test_a_module_is_named_with_dots() -> None:
    write("my/pkg/__init__.py", "")
    write_job("my/pkg/work.py", "work")

    assert set(load_jobs(["my.pkg.work"])) == {"work"}


@pytest.mark.parametrize("spec", ["./handlers", "handlers/", "{here}/handlers"])
@pytest.mark.parametrize("init", [True, False])
def test_a_directory_is_a_package_named_after_it(here: Path, spec: str, init: bool) -> None:
    if init:
        write("handlers/__init__.py", "")
    write("handlers/names.py", "NAME = 'mail'")
    write("handlers/mail.py", "from taskbatch import job\nfrom .names import NAME\n@job(NAME)\ndef run(): ...\n")

    registry = load_jobs([spec.format(here=here)])

    assert registry["mail"].function.__module__ == "handlers.mail"


def test_a_file_is_loaded_alone_and_takes_nobody_elses_name() -> None:
    import email  # noqa: PLC0415

    write_job("work/email.py", "mail")
    write("work/broken.py", "1/0")

    assert set(load_jobs(["work/email.py"])) == {"mail"}
    assert sys.modules["email"] is email


def test_a_file_of_a_package_can_use_its_package() -> None:
    write("work/__init__.py", "NAME = 'mail'")
    write("work/mail.py", "from taskbatch import job\nfrom . import NAME\n@job(NAME)\ndef run(): ...\n")
    write("work/broken.py", "1/0")

    assert set(load_jobs(["work/mail.py"])) == {"mail"}


def test_what_is_named_twice_is_loaded_once() -> None:
    write_job("jobs/mail.py", "mail")

    assert set(load_jobs(["jobs", "./jobs", "jobs/mail.py", "jobs"])) == {"mail"}


def test_the_current_directory_comes_last(here: Path) -> None:
    write_job("json.py", "evil")

    assert "no jobs in 'json'" in refusal("json")
    assert sys.path[-1] == str(here)


def test_a_job_that_two_modules_import_is_one_job() -> None:
    write_job("jobs/mail.py", "mail")
    write("jobs/again.py", "from jobs.mail import run\nalias = run\n")

    assert set(load_jobs(["jobs"])) == {"mail"}


def test_two_functions_of_one_name_are_refused_with_both_places() -> None:
    write_job("jobs/a.py", "mail")
    write_job("jobs/b.py", "mail")

    assert refusal("jobs") == "two jobs are named 'mail': jobs/a.py:4 and jobs/b.py:4"


def test_nothing_happens_to_a_registry_after_it_was_made() -> None:
    declared = job("mail")(print_nothing)
    registry = Registry([declared])

    assert (len(registry), list(registry), registry["mail"], registry.get("other")) == (1, ["mail"], declared, None)
    with pytest.raises(TypeError):
        registry["other"] = declared  # type: ignore[index]


def print_nothing() -> None: ...


def test_jobs_that_share_a_limit_must_agree_on_it() -> None:
    first = job("a", rate_limit=RateLimit("10/1s", name="api"))(print_nothing)
    same = job("b", rate_limit=RateLimit("10/s", name="api"))(print_nothing)
    other = job("c", rate_limit=RateLimit("20/1s", name="api"))(print_nothing)

    assert len(Registry([first, same])) == 2
    with pytest.raises(ConfigError, match="jobs 'a' and 'c' share the rate limit 'api' but do not agree"):
        Registry([first, other])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere.at_all", "ModuleNotFoundError: No module named 'nowhere' (jobs/mail.py:1)"),
        ("\n\n1/0", "ZeroDivisionError: division by zero (jobs/mail.py:3)"),
        ("def f(:", "SyntaxError: "),
        ("import sys\nsys.exit(0)", "SystemExit: 0 (jobs/mail.py:2)"),
        ("raise GeneratorExit", "GeneratorExit (jobs/mail.py:1)"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two\\nlines (jobs/mail.py:1)"),
        ("from taskbatch import job\n@job('a b')\ndef run(): ...", "job name 'a b' is not valid"),
        ("class E(Exception):\n    def __str__(self): 1/0\nraise E", "jobs.mail.E: (its text cannot be had)"),
    ],
)
def test_a_module_that_does_not_import_is_one_line_with_its_place(text: str, message: str) -> None:
    write("jobs/mail.py", text)

    for spec in ("jobs", "./jobs", "jobs/mail.py"):
        said = refusal(spec)
        assert said.startswith("cannot import jobs from ")
        assert message.replace("jobs.mail.E", "E") in said.replace("jobs.mail.E", "E").replace("mail_", "")
        assert "jobs/mail.py:" in said


def test_the_cause_is_kept_for_who_wants_the_traceback() -> None:
    write("jobs/mail.py", "1/0")

    with pytest.raises(ConfigError) as caught:
        load_jobs(["jobs"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_signature_that_no_task_can_fill_is_refused_with_its_place() -> None:
    write("jobs/mail.py", "from taskbatch import job\n@job('mail')\ndef run(a, b): ...\n")

    assert refusal("jobs").startswith("jobs/mail.py:2: job 'mail': parameter 'b' gets no value")


def test_a_payload_class_may_be_defined_below_its_job() -> None:
    write(
        "jobs/mail.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from taskbatch import job

        @job("mail")
        def run(mail: Mail) -> None: ...

        @dataclass
        class Mail:
            to: str
        """,
    )

    assert load_jobs(["jobs"])["mail"].binding.decode is not None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jobs", "no module 'jobs', neither installed nor in "),
        ("my.pkg", "no module 'my.pkg', neither installed nor in "),
        ("./jobs", "no Python file or directory at './jobs'"),
        ("missing.py", "no Python file or directory at 'missing.py'"),
        ("send-mail", "'send-mail' is neither the name of a module nor a path (write ./send-mail for a path)"),
        ("", "'' is neither the name of a module nor a path"),
        ("..", "no jobs in '..'"),
    ],
)
def test_a_spec_that_leads_nowhere_is_refused(here: Path, spec: str, message: str) -> None:
    (here / "inside").mkdir()
    os.chdir(here / "inside")

    assert message in refusal(spec)


def test_modules_without_a_job_are_refused_with_where_they_are() -> None:
    write("jobs/__init__.py", "")

    assert refusal("jobs") == "no jobs in 'jobs' (jobs/__init__.py): a job is a function under @job(...)"


def test_a_directory_cannot_take_the_name_of_a_module_that_is_installed(here: Path) -> None:
    write_job("wsgiref/mail.py", "mail")

    assert refusal("./wsgiref") == (
        f"a directory of jobs cannot be named 'wsgiref' as an installed module is: rename {here}/wsgiref"
    )


def install(here: Path, value: str) -> None:
    """Make a package with an entry point, as pip would."""
    write("site/plugin-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    write("site/plugin-1.dist-info/entry_points.txt", f"[taskbatch.jobs]\nplugin = {value}\n")
    write("site/plugin/__init__.py", "")
    write_job("site/plugin/mail.py", "plugin.mail")
    write_job("site/plugin/other.py", "plugin.other")
    sys.path.insert(0, str(here / "site"))


def test_installed_packages_bring_jobs(here: Path) -> None:
    install(here, "plugin")
    write_job("jobs/mail.py", "mail")

    assert set(load_jobs(["jobs"])) == {"mail", "plugin.mail", "plugin.other"}
    assert set(load_jobs(["jobs"], entry_points=False)) == {"mail"}


def test_an_entry_point_may_name_one_job(here: Path) -> None:
    install(here, "plugin.mail:run")

    assert set(load_jobs([])) == {"plugin.mail"}


def test_the_default_may_be_missing_if_installed_packages_bring_jobs(here: Path) -> None:
    install(here, "plugin")

    assert set(load_jobs()) == {"plugin.mail", "plugin.other"}
    assert "no module 'other_jobs'" in refusal("other_jobs", entry_points=True)


def test_a_default_that_is_there_but_broken_is_not_passed_over(here: Path) -> None:
    install(here, "plugin")
    write("jobs/__init__.py", "import jobs.missing")

    assert "No module named 'jobs.missing' (jobs/__init__.py:1)" in refusal("jobs", entry_points=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("plugin.nowhere", "entry point 'plugin' = 'plugin.nowhere': no module 'plugin.nowhere'"),
        ("plugin.mail:nothing", "entry point 'plugin' = 'plugin.mail:nothing': no job there"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_named(here: Path, value: str, message: str) -> None:
    install(here, value)

    assert message in refusal(entry_points=True)


def test_no_jobs_at_all_is_refused() -> None:
    assert refusal(entry_points=True) == (
        "no jobs: name a module or a path with --jobs, or install a package that brings some"
    )
