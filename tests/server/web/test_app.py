"""The application as a whole: paths, and pages of other origins."""

from tests.server.web.conftest import OpenSite, Site

ORIGIN = "https://a.example"


async def test_unknown_paths_and_methods_are_told_apart(site: Site) -> None:
    assert (await site.call("GET", "/nothing")).status == 404
    assert (await site.call("GET", "/v1/translate")).status == 405


async def test_pages_of_other_origins_may_call_only_if_allowed(opening_http: OpenSite, site: Site) -> None:
    assert "access-control-allow-origin" not in (await site.call("GET", "/v1/models", origin=ORIGIN)).headers
    async with opening_http(origins=(ORIGIN,)) as allowing:
        asked = {"origin": ORIGIN, "access_control_request_method": "POST"}
        before = await allowing.call("OPTIONS", "/v1/translate", **asked, access_control_request_headers="content-type")
        allowed = await allowing.call("GET", "/v1/models", origin=ORIGIN)
        other = await allowing.call("GET", "/v1/models", origin="https://b.example")

    assert (before.status, before.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in allowed.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in other.headers


async def test_nobody_is_sent_to_another_host(site: Site) -> None:
    answer = await site.call("POST", "/v1/translate/", host="evil.example")

    assert (answer.status, answer.headers.get("location")) == (404, None)
