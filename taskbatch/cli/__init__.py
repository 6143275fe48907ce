"""The command line. `main` is the entry point of the program `taskbatch`.

From the outside in: `streams` makes stdout and stderr safe, `program` finds the verb, `session` is what is
set for all of them, one module a verb does the work, `failure` turns what went wrong into an exit code,
`leaving` ends the process. Importing this package costs nothing: each verb is loaded when it is called.
"""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command of `sys.argv` and end the process with its exit code."""
    # First of all: a connection that is opened while descriptor 1 is closed would become our stdout.
    from taskbatch.cli.streams import secure  # noqa: PLC0415 - in this order, here and below

    secure()
    from taskbatch.cli.leaving import INTERRUPTED, leave, obey_as_first_process  # noqa: PLC0415

    obey_as_first_process()
    try:
        import sys  # noqa: PLC0415

        from taskbatch.cli.program import run  # noqa: PLC0415

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # While importing; later it is `run` that has an answer.
        code = INTERRUPTED
    leave(code)
