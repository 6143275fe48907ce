"""Run one program and print what it took, as one line: seconds, CPU seconds, peak KiB, exit code.

`python -I -S spawn.py OUTPUT COMMAND…`; what the program prints goes to the file OUTPUT. The kernel counts the
memory of the process that starts a program as the program's own, so this one imports next to nothing.
"""

import os
import sys
import time

output, *command = sys.argv[1:]
to_file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
actions = [(os.POSIX_SPAWN_DUP2, to_file, 1)]
begun = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
_, status, usage = os.wait4(pid, 0)
seconds = time.perf_counter() - begun
print(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
