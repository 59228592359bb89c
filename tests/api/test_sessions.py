"""Browser sessions: the cookie, its permissions, and the accepted host names."""

import httpx
import pytest

from engine.http import incoming_requests, sessions
from engine.http.app import create_app
from engine.http.kube import app as kube_app
from engine.http.services import Services
from tests.api.servers import NOW_MS, TOKEN, client, serving

KEY = "a-login-code-for-tests"


def browser(services: Services, url: str = "http://localhost:8080") -> httpx.AsyncClient:
    """Return a browser at the server's own address."""
    app = create_app(services)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=url, headers={"accept": "text/html"}
    )


async def test_cookie_is_a_random_id_and_not_the_token() -> None:
    async with serving(login=KEY) as services, browser(services) as http:
        jars = [
            (await http.get(path)).cookies for path in (f"/?token={TOKEN}", f"/?login={KEY}") for _ in "ab"
        ]

    values = [cookies["reballast-8080"] for cookies in jars]
    assert len(set(values)) == 4
    assert not any(TOKEN in value or KEY in value for value in values)


async def test_cookie_authorises_reads_and_no_writes() -> None:
    async with serving(login=KEY) as services, browser(services) as http:
        cookie = (await http.get(f"/?login={KEY}")).cookies["reballast-8080"]
        read = await http.get("/api/v1/bindings")
        writes = [
            await http.request(method, path, content=b"{}")
            for method in ("POST", "PUT", "PATCH", "DELETE")
            for path in ("/api/v1/agents/member1/reports", "/api/v1/agents/member1/token")
        ]
        as_token = await http.post(
            "/api/v1/agents/member1/reports", headers={"authorization": f"Bearer {cookie}"}
        )
        introduced = await http.get(f"/?token={cookie}")

    assert read.status_code == 200
    assert {answer.status_code for answer in writes} <= {401, 405}
    assert (as_token.status_code, introduced.status_code) == (401, 400)
    assert "set-cookie" not in introduced.headers


async def test_cookie_is_bound_to_its_port_and_with_tls_to_its_host() -> None:
    async with serving(login=KEY) as services:
        async with browser(services) as http:
            plain = (await http.get(f"/?login={KEY}")).headers["set-cookie"]
        async with browser(services, "https://localhost:8443") as http:
            secured = (await http.get(f"/?login={KEY}")).headers["set-cookie"]
            assert (await http.get("/")).status_code == 200
        async with browser(services, "http://localhost:9090") as http:
            elsewhere = await http.get("/", headers={"cookie": plain.partition(";")[0]})

    assert plain.startswith("reballast-8080=")
    assert "Secure" not in plain
    assert secured.startswith("__Host-reballast-8443=")
    for part in ("Secure", "HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={sessions.SESSION_SECONDS}"):
        assert part in secured, part
    assert "Domain" not in secured
    assert elsewhere.status_code == 401


def test_session_expires_and_cannot_be_forged() -> None:
    now = [1_000.0]
    own_sessions = sessions.Sessions(TOKEN, sessions.Login(), lambda: now[0])
    session = own_sessions.new()
    assert own_sessions.is_open(session)
    assert sessions.Sessions(TOKEN, sessions.Login(), lambda: now[0]).is_open(
        session
    )  # the session of another replica, or from before a restart
    assert not sessions.Sessions("another token", sessions.Login(), lambda: now[0]).is_open(session)
    name, expires, signature = session.split(".")
    later = f"{name}.{int(expires) + 1}.{signature}"
    forged = ("", ".", "..", "a.b.c", f"{name}.{expires}.", later, f"x{session}", session + "é", "9" * 10_000)
    assert not any(map(own_sessions.is_open, forged))
    now[0] += sessions.SESSION_SECONDS
    assert not own_sessions.is_open(session)


def test_login_code_expires() -> None:
    now = [0.0]
    own_sessions = sessions.Sessions(TOKEN, sessions.Login(KEY, 900.0), lambda: now[0])
    assert own_sessions.is_login(KEY)
    assert not own_sessions.is_token(KEY)
    now[0] = 900.0
    assert not own_sessions.is_login(KEY)


async def test_page_of_an_outdated_login_address_says_how_to_get_another() -> None:
    async with serving(login=KEY) as services, browser(services) as http:
        page = await http.get("/?login=outdated", headers={"accept": "text/html"})
    assert page.status_code == 401
    assert "the login code is wrong or has expired" in page.text
    assert "restart the server, which prints a new address" in page.text
    assert "/live.js" not in page.text, "without a session the script is refused too"


def test_empty_login_code_is_refused() -> None:
    assert not sessions.Sessions(TOKEN, sessions.Login(), lambda: 0.0).is_login("")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "10.1.2.3", "[::2]"]
)
async def test_foreign_host_is_refused_by_both_apis(host: str) -> None:
    async with serving() as services:
        headers = {"host": host, "authorization": f"Bearer {TOKEN}"}
        async with browser(services) as http:
            page = await http.get("/", headers=headers)
            answer = await http.get("/api/v1/bindings", headers={**headers, "accept": "*/*"})
        transport = httpx.ASGITransport(kube_app.create_app(services, lambda: NOW_MS))
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost:6443") as http:
            status = await http.get("/api/v1/namespaces", headers=headers)

    assert [response.status_code for response in (page, answer, status)] == [421, 421, 421]
    assert "is not allowed" in page.text
    name = incoming_requests.normal_host(host)
    assert f"--allowed-host {name}" in answer.json()["error"]["remedy"]
    assert f"--allowed-host {name}" in status.json()["message"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "a.localhost", "127.0.0.1:80", "127.9.9.9", "[::1]:80", "Reballast.LAN."],
)
async def test_loopback_and_configured_hosts_are_accepted(host: str) -> None:
    async with serving(hosts=["reballast.lan"]) as services, client(services) as http:
        assert (await http.get("/api/v1/bindings", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "remedy"),
    [
        ("/nowhere", 404, "There is no page at /nowhere."),
        ("/api/v1/bindings/default/nothing", 404, "What to do"),
        ("/?asOf=banana", 400, "1234, or decisions/3/41"),
        ("/api/v1/live?topic=banana", 400, "use one of: specs, policies, clusters"),
    ],
)
async def test_browser_gets_refusals_as_pages_with_a_remedy(path: str, status: int, remedy: str) -> None:
    async with serving() as services, client(services) as http:
        page = await http.get(path, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        data = await http.get(path, headers={"accept": "*/*"})

    assert (page.status_code, data.status_code) == (status, status)
    assert page.headers["content-type"].startswith("text/html")
    assert '<link rel="stylesheet" href="/style.css">' in page.text
    assert remedy in page.text
    assert set(data.json()["error"]) == {"field", "reason", "remedy"}


async def test_refusal_page_is_escaped() -> None:
    async with serving() as services, browser(services) as http:
        page = await http.get("/<script>alert(1)</script>", headers={"authorization": f"Bearer {TOKEN}"})

    assert page.status_code == 404
    assert "<script>alert" not in page.text


async def test_live_feed_of_an_unknown_topic_is_refused_with_the_known_ones() -> None:
    async with serving() as services, client(services) as http:
        refused = await http.get("/api/v1/live?topic=banana")

    assert refused.status_code == 400
    problem = refused.json()["error"]
    assert (problem["field"], problem["reason"]) == ("topic", "unknown topic 'banana'")
    assert all(name in problem["remedy"] for name in ("specs", "decisions", "rejections"))
