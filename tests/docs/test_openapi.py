"""The description of the API over HTTP has all routes, messages and fields, and the page shows all of it."""

import re
from typing import Any, cast

from babelserve.v1 import translation_pb2
from docs.generate.openapi import description, documentation_file
from server.documents.documents import Documents
from server.documents.formats import FORMATS
from server.fronts.backend import Backend
from server.translation.long_messages import LongMessages
from server.web.bodies import Bodies
from server.web.documents import DocumentsApi
from server.web.exchange import Site
from server.web.own import OwnApi

OWN_SCHEMAS = {"Document", "DocumentRequest", "Error", "ErrorDetail", "Number"}


def schemas() -> dict[str, Any]:
    return cast("dict[str, Any]", description()["components"]["schemas"])


def test_it_has_the_routes_that_are_served_and_no_other() -> None:
    backend = cast("Backend", None)  # which no route asks for when it is made
    site = Site(backend, Bodies(LongMessages()))
    fronts = (OwnApi(site), DocumentsApi(site, cast("Documents", None)))
    routes = [route for front in fronts for route in front.routes()]
    served = {(route.path, method) for route in routes for method in (route.methods or set()) - {"HEAD"}}

    paths = description()["paths"].items()
    assert {(path, method.upper()) for path, operations in paths for method in operations} == served


def test_schemas_have_the_fields_and_values_of_the_protos() -> None:
    file = translation_pb2.DESCRIPTOR
    for name, schema in schemas().items():
        if name in OWN_SCHEMAS:
            continue
        if "enum" in schema:
            assert schema["enum"] == [value.name for value in file.enum_types_by_name[name].values], name
        else:
            assert list(schema["properties"]) == [each.json_name for each in file.message_types_by_name[name].fields], (
                name
            )


def test_every_message_over_http_has_a_schema() -> None:
    of_grpc_alone = (
        "TranslateBulk",
        "BulkText",
        "TranslateStreamRequest",
        "ListModelsRequest",
        "ListGlossariesRequest",
    )
    messages = {each for each in translation_pb2.DESCRIPTOR.message_types_by_name if not each.startswith(of_grpc_alone)}

    assert messages <= schemas().keys()


def test_a_document_has_the_formats_that_are_served() -> None:
    said = schemas()["DocumentRequest"]["properties"]["file"]["description"]

    assert f"{', '.join(FORMATS)}.".replace(", json", " or json") in said


def test_comments_name_fields_as_json_has_them() -> None:
    said = schemas()["TranslateRequest"]["properties"]["mimeType"]["description"]

    assert "DecodingOptions.numHypotheses" in said
    assert "`" not in said
    of_family = schemas()["ModelInfo"]["properties"]["family"]["description"]
    assert '"one_pass"' in of_family  # a value
    assert "numHypotheses" in of_family


def test_the_page_shows_every_operation_and_schema_and_its_links_lead_somewhere() -> None:
    page = documentation_file()
    shown = set(re.findall(r'<section id="(\w+)">', page))
    operations = {each["operationId"] for path in description()["paths"].values() for each in path.values()}

    assert operations | schemas().keys() == shown
    assert set(re.findall(r'href="#(\w+)"', page)) <= shown
    assert "&lt;meta&gt;" in page  # a comment's text is no markup
