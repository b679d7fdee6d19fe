"""Documents are lost when the server is started anew: what those are told who ask for them then."""

import http.client
import json
from typing import Any

from tests.acceptance.server_process import free_ports, running_server
from tests.server.web.forms import form

WORDS = "Document not found: documents are kept for 30 minutes after their end, and not over a restart of the server"


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> Any:
    """Returns status and JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def send(port: int, path: str, **fields: str) -> Any:
    body, headers = form(fields, "a.txt", b"A dog runs.")
    status, sent = ask(port, "POST", path, body, Authorization="DeepL-Auth-Key any", **headers)
    assert status == 200, sent
    return sent


def test_a_restart_is_told_to_all_who_ask_for_a_document() -> None:
    (port,) = free_ports(1)
    flags = ["--models", "builtin", "--http-port", str(port)]
    with running_server(flags):
        own = send(port, "/v1/documents", targetLanguageCode="de")
        deepl = send(port, "/v2/document", target_lang="DE")
        libretranslate = send(port, "/translate_file", source="en", target="de")
    with running_server(flags):
        of_own = [
            ask(port, method, f"/v1/documents/{own['id']}{end}")
            for method, end in (("GET", ""), ("GET", "/file"), ("DELETE", ""))
        ]
        key = json.dumps({"document_key": deepl["document_key"]}).encode()
        of_deepl = [
            ask(port, "POST", f"/v2/document/{deepl['document_id']}{end}", key, Authorization="DeepL-Auth-Key any")
            for end in ("", "/result")
        ]
        name = libretranslate["translatedFileUrl"].rpartition("/")[2]
        of_libretranslate = ask(port, "GET", f"/download_file/{name}")

    assert of_own == [(404, {"error": {"code": 404, "status": "NOT_FOUND", "message": WORDS}})] * 3
    assert of_deepl == [(404, {"message": WORDS})] * 2
    assert of_libretranslate == (404, {"error": WORDS})
