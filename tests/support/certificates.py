"""Certificates made in the test run with the `openssl` command: authorities of our own, and what they sign."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
DAYS = "2"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key (PKCS#8), as files."""

    certificate_file: Path
    key_file: Path

    @property
    def certificate(self) -> str:
        return self.certificate_file.read_text("ascii")

    @property
    def key(self) -> str:
        return self.key_file.read_text("ascii")

    def as_keystore(self) -> Path:
        """Return a file with both, as a Java server wants them in a PEM key store."""
        both = self.key_file.with_suffix(".keystore.pem")
        both.write_text(self.key + self.certificate, "ascii")
        return both


class Authority:
    """Signs certificates; a client that trusts `certificate` trusts them. Skips the test where there is no `openssl`.

    Args:
        folder: where its files go.
        name: its common name, and that of its files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("no `openssl` command here to make certificates with")
        self._folder = folder
        self._own = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl("req", "-x509", *CURVE, "-days", DAYS, "-subj", f"/CN={name}", *_out(self._own))

    @property
    def certificate_file(self) -> Path:
        return self._own.certificate_file

    @property
    def certificate(self) -> str:
        return self._own.certificate

    def issue(self, name: str, alternative_name: str = "", *, expired: bool = False) -> Certificate:
        """Sign a certificate.

        Args:
            name: common name, and that of the files.
            alternative_name: what a client must have connected to, such as ``IP:127.0.0.1``; none for a client's own.
            expired: whether its time is over.
        """
        issued = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative_name}\n" if alternative_name else "", "ascii")
        _openssl("req", "-new", *CURVE, "-subj", f"/CN={name}", "-keyout", str(issued.key_file), "-out", str(request))
        signer = ("-CA", str(self._own.certificate_file), "-CAkey", str(self._own.key_file), "-CAcreateserial")
        signing = ("x509", "-req", "-in", str(request), *signer, "-extfile", str(extensions))
        _openssl(*signing, "-days", "-1" if expired else DAYS, "-out", str(issued.certificate_file))
        return issued


def _out(certificate: Certificate) -> tuple[str, ...]:
    return ("-keyout", str(certificate.key_file), "-out", str(certificate.certificate_file))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}:\n{done.stderr}"
