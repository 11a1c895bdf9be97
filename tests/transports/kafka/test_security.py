"""TLS, passwords and ACLs on a broker, through both clients, and the errors when one is refused."""

from __future__ import annotations

import itertools
import os
import random
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.net.transport import KafkaSSLTransport

from deploy.kafka.broker import Broker, free_port
from streamnb.config import client_settings, load_settings
from streamnb.errors import TransportError
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, describe_topics
from tests.support.commands import forked_streamnb
from tests.transports.kafka.conftest import start_or_skip
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import Pipeline, assert_every_message_is_scored_in_order, pipeline

USER, GUEST = "streamnb", "guest"
PASSWORD, STORE_PASSWORD = "canary-81c2d7", "changeit"
WRONG_PASSWORD = r"Authentication with Kafka at .* failed: Authentication failed"
KAFKA = """
[kafka]
bootstrap_servers = "{address}"
security_protocol = "SASL_SSL"
sasl_mechanism = "{mechanism}"
sasl_plain_username = "{user}"
sasl_plain_password = {{ env = "KAFKA_PASSWORD" }}
ssl_cafile = "{certificate}"
"""
CONFLUENT = """
[confluent]
bootstrap.servers = "{address}"
security.protocol = "SASL_SSL"
sasl.mechanism = "{mechanism}"
sasl.username = "{user}"
sasl.password = {{ env = "KAFKA_PASSWORD" }}
ssl.ca.location = "{certificate}"
"""
TABLES = {"kafka": KAFKA, "confluent": CONFLUENT}


@dataclass
class Secured:
    """A broker with an open listener for the tests and a guarded one for streamnb."""

    broker: Broker
    admin: AdminClient
    proxy: Proxy
    address: str
    certificate: Path


def certified(directory: Path) -> Path:
    """Create a key store for 127.0.0.1 with Java's keytool, and export its certificate beside it."""
    store, certificate = directory / "broker.p12", directory / "broker.pem"
    keytool = ["keytool", "-keystore", str(store), "-storepass", STORE_PASSWORD, "-alias", "broker"]
    key = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-ext", "SAN=ip:127.0.0.1"]
    for command in (key, ["-exportcert", "-rfc", "-file", str(certificate)]):
        subprocess.run([*keytool, *command], check=True, capture_output=True)
    return certificate


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Yield a broker with one user who may do everything, by PLAIN or SCRAM, and a guest without ACLs."""
    directory = tmp_path_factory.mktemp("secured")
    certificate = certified(directory)
    port, guarded, before, controller = free_port(), free_port(), free_port(), free_port()
    own = f"PLAINTEXT://127.0.0.1:{port}"
    listener = "listener.name.guarded"
    users = f'user_{USER}="{PASSWORD}" user_{GUEST}="{PASSWORD}"'
    modules = "org.apache.kafka.common.security"
    settings = {
        "listeners": f"{own},GUARDED://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"{own},GUARDED://127.0.0.1:{before}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_SSL",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        f"{listener}.ssl.keystore.location": str(directory / "broker.p12"),
        f"{listener}.ssl.keystore.password": STORE_PASSWORD,
        f"{listener}.ssl.keystore.type": "PKCS12",
        f"{listener}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{listener}.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required {users};",
        f"{listener}.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER}",
    }
    broker = start_or_skip(Broker(directory, port, settings))
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(USER, scram, PASSWORD.encode())
    admin.alter_user_scram_credentials([user])[USER].result()
    with Proxy(guarded, before) as proxy:
        yield Secured(broker, admin, proxy, f"127.0.0.1:{before}", certificate)
    broker.stop()


def guarded(secured: Secured, tmp_path: Path, client: str, mechanism: str, user: str = USER) -> Pipeline:
    """Return a pipeline whose engine uses the guarded listener; the tests themselves use the open one."""
    pipe = pipeline(secured.broker.address, tmp_path, "mailbox", 1)
    text = pipe.config.read_text()
    table = f'[kafka]\nbootstrap_servers = "{secured.broker.address}"\n'
    assert table in text
    settings = TABLES[client].format(
        address=secured.address, mechanism=mechanism, user=user, certificate=secured.certificate
    )
    pipe.config.write_text(text.replace('kind = "kafka"', f'kind = "{client}"').replace(table, settings))
    return pipe


def run(
    pipe: Pipeline, command: str, *more: str, password: str = PASSWORD
) -> subprocess.CompletedProcess[str]:
    """Run a command with the password in the environment, and check that no output contains it."""
    words = [*forked_streamnb(), command, str(pipe.config), *more]
    environment = {**os.environ, "KAFKA_PASSWORD": password}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert password not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("client", TABLES)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_stream_goes_through_tls_and_a_password(
    secured: Secured, tmp_path: Path, client: str, mechanism: str
) -> None:
    """Every message is scored, as over a listener without security; the listener speaks TLS 1.3."""
    pipe = guarded(secured, tmp_path, client, mechanism)
    done = run(pipe, "run", "--until-end")

    assert done.returncode == 0, done.stderr
    assert_every_message_is_scored_in_order(pipe)
    assert tls_version(secured) == "TLSv1.3"


def tls_version(secured: Secured) -> str | None:
    """Return the version of TLS that the guarded listener and Python's own settings agree on."""
    context = ssl.create_default_context(cafile=str(secured.certificate))
    host, _, port = secured.address.rpartition(":")
    plain = socket.create_connection((host, int(port)))
    with context.wrap_socket(plain, server_hostname=host) as connection:  # which takes the plain one over
        return connection.version()


@pytest.mark.parametrize("client", TABLES)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_said_to_be_wrong(
    secured: Secured, tmp_path: Path, client: str, mechanism: str
) -> None:
    """The error names the authentication, and not a broker that does not answer."""
    done = run(guarded(secured, tmp_path, client, mechanism), "run", password="canary-wrong")

    assert done.returncode == TransportError.exit_code, done.stderr
    assert "Authentication with Kafka at" in done.stderr
    assert "Authentication failed" in done.stderr


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_said_to_be_wrong_to_a_client_that_reads_late(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """The first answer is heard; kafka-python alone drops an answer that it reads together with the end."""
    pipe = guarded(secured, tmp_path, "kafka", mechanism)
    monkeypatch.setenv("KAFKA_PASSWORD", "canary-wrong")
    settings = client_settings(load_settings(pipe.config))
    receive = KafkaSSLTransport._sock_recv

    def late(transport: KafkaSSLTransport) -> tuple[bytes, BaseException | None]:
        time.sleep(0.5)  # the broker closes the connection meanwhile, as it does before a busy machine reads
        data: tuple[bytes, BaseException | None] = receive(transport)
        return data

    monkeypatch.setattr(KafkaSSLTransport, "_sock_recv", late)
    asked = secured.proxy.asked
    with pytest.raises(TransportError, match=WRONG_PASSWORD):
        describe_topics(settings, [f"{pipe.run}-mail"])
    assert secured.proxy.asked == asked + 1


def test_a_broker_that_is_away_does_not_hide_a_wrong_password(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server refuses the password, and the one asked after it is down: the error names the refusal."""
    pipe = guarded(secured, tmp_path, "kafka", "PLAIN")
    monkeypatch.setenv("KAFKA_PASSWORD", "canary-wrong")
    settings = dict(client_settings(load_settings(pipe.config)))
    settings["bootstrap_servers"] = [secured.address, f"127.0.0.1:{free_port()}"]
    turn = itertools.count()  # the client asks its servers at random; here, in turn
    monkeypatch.setattr(random, "choice", lambda servers: servers[next(turn) % len(servers)])
    with pytest.raises(TransportError, match=WRONG_PASSWORD):
        describe_topics(settings, [f"{pipe.run}-mail"])


@pytest.mark.parametrize("client", TABLES)
def test_a_certificate_that_nobody_vouches_for_is_named(
    secured: Secured, tmp_path: Path, client: str
) -> None:
    """The error names the certificate, and not a wrong password or a broker that does not answer."""
    pipe = guarded(secured, tmp_path, client, "PLAIN")
    text = pipe.config.read_text()
    pipe.config.write_text(
        "".join(line for line in text.splitlines(True) if str(secured.certificate) not in line)
    )
    done = run(pipe, "run")

    assert done.returncode == TransportError.exit_code, done.stderr
    assert "certificate verify failed" in done.stderr


def test_a_handshake_that_is_never_answered_is_given_up(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source and sink recover; kafka-python alone waits forever, even after the broker answers again."""
    pipe = guarded(secured, tmp_path, "kafka", "PLAIN")
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    settings = client_settings(load_settings(pipe.config))
    source, sink = KafkaSource([f"{pipe.run}-mail"], settings), KafkaSink(f"{pipe.run}-scores", settings)
    try:
        source.open({}, "latest")
        secured.proxy.ignore(True)
        began_s = time.monotonic()
        while time.monotonic() < began_s + 2:
            source.poll(100, 100)
        secured.proxy.ignore(False)
        direct = KafkaSink(f"{pipe.run}-mail", {"bootstrap_servers": secured.broker.address})
        direct.publish(0, [b"after"], [None], [()])
        direct.flush(10_000)
        direct.close()
        sink.publish(0, [b"after"], [None], [()])
        sink.flush(20_000)
        found: list[bytes | None] = []
        while not found and time.monotonic() < began_s + 25:
            found = [value for batch in source.poll(100, 100) for value in batch.values]
    finally:
        source.close()
        sink.close()

    assert found == [b"after"]


def allow(secured: Secured, operation: AclOperation, topics: str) -> None:
    """Allow the guest an operation on all topics whose names start with `topics`."""
    who, kind, allowed = f"User:{GUEST}", ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
    acl = AclBinding(ResourceType.TOPIC, topics, kind, who, "*", operation, allowed)
    secured.admin.create_acls([acl])[acl].result()


@pytest.mark.parametrize("client", TABLES)
def test_a_right_that_is_missing_is_named_by_its_topic(secured: Secured, tmp_path: Path, client: str) -> None:
    """Without DESCRIBE, READ or WRITE the error names the topic; with all three the stream is scored."""
    pipe = guarded(secured, tmp_path, client, "PLAIN", GUEST)
    rights = (
        (AclOperation.DESCRIBE, pipe.run, "scores"),
        (AclOperation.READ, f"{pipe.run}-mail", "mail"),
        (AclOperation.WRITE, pipe.run, "scores"),
    )
    for operation, topics, named in rights:
        done = run(pipe, "run", "--until-end")

        assert done.returncode == TransportError.exit_code, done.stderr
        assert f"{pipe.run}-{named}" in done.stderr
        assert "uthoriz" in done.stderr
        allow(secured, operation, topics)
    began_s = time.monotonic()
    done = run(pipe, "run", "--until-end", "--set", f"source.group={pipe.run}")

    assert done.returncode == 0, done.stderr
    assert_every_message_is_scored_in_order(pipe)
    assert f"The positions were not committed to group {pipe.run}," in done.stderr
    assert time.monotonic() - began_s < 25, "the run was delayed, or could not close"
