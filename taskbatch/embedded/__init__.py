"""A real Valkey server for a laptop, a demo or one machine: `--redis-url embedded:` or `embedded:/directory`.

Successive commands find the same data, commands at the same time share one server. No command owns it:
each says that it is there by holding a lock, and a supervisor ends the server when no such lock is held any
more. So a command may end in any way it likes. Who holds which lock is in `home`.
"""

from taskbatch.embedded.home import directory_of, is_embedded
from taskbatch.embedded.user import EmbeddedServer, open_embedded

__all__ = ["EmbeddedServer", "directory_of", "is_embedded", "open_embedded"]
