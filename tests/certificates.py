"""Certificates for tests: an authority of our own, and servers that it vouches for."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def made(cls, folder: Path) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Test authority")
        certificate = (
            _builder(name, name, key, datetime.now(UTC) + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "authority.pem").write_bytes(_pem(certificate))
        return cls(folder, certificate, key)

    @property
    def file(self) -> Path:
        """What a client is told to trust."""
        return self.folder / "authority.pem"

    def server(self, host: str, *, expired: bool = False) -> ssl.SSLContext:
        """Of a server that is called `host`."""
        key = ec.generate_private_key(ec.SECP256R1())
        ends = datetime.now(UTC) + (timedelta(hours=-1) if expired else timedelta(hours=1))
        certificate = (
            _builder(_name(host), self.certificate.subject, key, ends)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = self.folder / f"{host}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file.write_bytes(private + _pem(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=2))
        .not_valid_after(ends)
    )
