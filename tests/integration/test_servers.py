"""The fixtures themselves: what other tests take for granted about their servers."""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
import redis

from tests.daemon import wait_until
from tests.servers import Server, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import StartPushgateway, StartServer
    from tests.monitoring import Prometheus, Pushgateway


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_server_is_of_the_kind_asked_for(server: Server, server_kind: str) -> None:
    info = server.client().info("server")

    assert ("valkey_version" in info) == (server_kind == "valkey")


@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_server_is_empty_at_the_start_of_each_test(server: Server, turn: str) -> None:
    client = server.client()

    assert client.dbsize() == 0
    client.set("left over", turn)


def test_a_leftover_waiter_does_not_outlive_the_flush(server: Server) -> None:
    outcome: list[object] = []

    def wait() -> None:
        try:
            outcome.append(server.client().blpop(["queue"], 5))
        except redis.ConnectionError:
            outcome.append("dropped")

    waiter = threading.Thread(target=wait)
    waiter.start()
    client = server.client()
    while not client.info("clients")["blocked_clients"]:
        pass

    server.flush()
    waiter.join(5)

    assert outcome == ["dropped"]


def test_data_survive_a_crash_and_a_shutdown_with_appendonly(own_server: StartServer) -> None:
    server = own_server(appendonly=True)
    url = server.url
    server.client().lpush("list", "one")

    server.restart(crash=True)
    server.client().lpush("list", "two")
    server.restart()

    assert server.client().lrange("list", 0, -1) == [b"two", b"one"]
    assert server.url == url


def test_a_password_is_part_of_the_url(own_server: StartServer) -> None:
    server = own_server(requirepass="secret")

    assert redis.Redis.from_url(server.url).ping()
    with pytest.raises(redis.AuthenticationError):
        connect("", 1.0, port=server.port).ping()


def test_options_reach_the_server(own_server: StartServer) -> None:
    server = own_server(extra=["--maxmemory", "3mb"])

    assert server.client().config_get("maxmemory") == {"maxmemory": "3145728"}


def test_a_frozen_server_answers_nothing_until_it_goes_on(own_server: StartServer) -> None:
    server = own_server()

    server.pause()
    with pytest.raises(redis.TimeoutError):
        server.client(timeout=0.2).ping()
    server.resume()

    assert server.client().ping()


@pytest.mark.skipif(os.environ.get("TASKBATCH_TEST_SERVERS") == "containers", reason="is about programs")
def test_closing_ends_the_process_and_removes_its_directory(server_kind: str) -> None:
    server = Server(server_kind)
    server.start()
    pid, directory = server.pid, server.directory
    assert redis.Redis.from_url(server.socket_url).ping()

    server.pause()
    server.close()

    assert gone(pid)
    assert not directory.exists()


PUSHED = "taskbatch_test_total 5\n"


def push(gateway: Pushgateway, text: str) -> None:
    request = urllib.request.Request(f"{gateway.url}/metrics/job/test", text.encode(), method="PUT")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()


def test_prometheus_scrapes_what_was_pushed(pushgateway: Pushgateway, prometheus: Callable[[str], Prometheus]) -> None:
    push(pushgateway, PUSHED)
    target = pushgateway.url.removeprefix("http://")

    one = prometheus(
        "global: {scrape_interval: 100ms}\n"
        "scrape_configs:\n"
        f"  - {{job_name: gateway, honor_labels: true, static_configs: [{{targets: ['{target}']}}]}}\n"
    )

    wait_until(lambda: one.value("taskbatch_test_total") == 5.0, seconds=20, what="a scrape")


def test_a_gateway_is_empty_at_the_start_of_each_test(pushgateway: Pushgateway) -> None:
    assert pushgateway.groups() == []
    push(pushgateway, PUSHED)

    assert 'taskbatch_test_total{instance="",job="test"} 5' in pushgateway.metrics()


def test_a_gateway_can_ask_for_a_login(own_pushgateway: StartPushgateway) -> None:
    hashed = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
    gateway = own_pushgateway(web_config=f"basic_auth_users: {{user: {hashed}}}\n")

    with pytest.raises(urllib.error.HTTPError, match="401"):
        gateway.metrics()
