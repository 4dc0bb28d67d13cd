"""A throw-away certificate authority for the control plane of one test run."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=2)
_NEW = timedelta(0)


class Authority:
    """Issues certificates; a client's common name is its user, each organization a group."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "foreslice e2e")])
        signing = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(signing, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """The authority's own certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def client(self, user: str, groups: Sequence[str] = (), *, age: timedelta = _NEW) -> tuple[bytes, bytes]:
        """Certificate and key of a user, issued so long ago."""
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        names += [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        return self._issue(names, ExtendedKeyUsageOID.CLIENT_AUTH, age=age)

    def server(self, *, age: timedelta = _NEW) -> tuple[bytes, bytes]:
        """Certificate and key that the components serve on loopback, issued so long ago."""
        names = [x509.NameAttribute(NameOID.COMMON_NAME, "control-plane")]
        return self._issue(names, ExtendedKeyUsageOID.SERVER_AUTH, age=age)

    def _issue(
        self, names: list[x509.NameAttribute[str]], usage: x509.ObjectIdentifier, *, age: timedelta
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name(names), key, age).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if usage == ExtendedKeyUsageOID.SERVER_AUTH:
            alternatives = x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            )
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, age: timedelta = _NEW
    ) -> x509.CertificateBuilder:
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=self._now - age - timedelta(minutes=5),
            not_valid_after=self._now - age + LIFE,
        )


def now() -> datetime:
    """The real time: certificates are checked by real processes."""
    from autoscaler.clock import SystemClock

    return SystemClock().now().astimezone(UTC)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PKCS#8."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
