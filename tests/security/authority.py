"""A certificate authority of the tests' own, made with openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as paths of PEM files."""

    cert: str
    key: str


class Authority:
    """Issues certificates into `directory`; its own one is `ca.cert`."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._directory = directory
        self.ca = self.issue(name, extensions="basicConstraints=critical,CA:TRUE", own=True)

    def issue(
        self, name: str, *, hosts: str = "", days: int = 30, extensions: str = "", own: bool = False
    ) -> Certificate:
        """Return a new one for `hosts` (`IP:127.0.0.1,DNS:host`); `own`: signed by itself; `days` < 0: expired."""
        made = Certificate(*(str(self._directory / f"{name}.{kind}") for kind in ("crt", "key")))
        request, extended = str(self._directory / f"{name}.csr"), self._directory / f"{name}.ext"
        extended.write_text("\n".join(filter(None, [hosts and f"subjectAltName={hosts}", extensions])) + "\n")
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                      "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)  # fmt: skip
        signer = ["-signkey", made.key] if own else ["-CA", self.ca.cert, "-CAkey", self.ca.key, "-CAcreateserial"]
        self._openssl("x509", "-req", "-in", request, "-out", made.cert, "-days", f"{days}", *signer,
                      "-extfile", str(extended))  # fmt: skip
        return made

    def lock(self, certificate: Certificate, password: str) -> str:
        """Return the path of the same key, encrypted."""
        path = f"{certificate.key}.locked"
        self._openssl("ec", "-in", certificate.key, "-aes128", "-passout", f"pass:{password}", "-out", path)
        return path

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self._directory)
