"""What a document is when each of its texts is translated into itself."""

import re
from collections.abc import Sequence

from server.text.markup.document import STAND_IN, Block, Document


def put_back(block: Block) -> str:
    """Returns a block's text with its tags where they were, as the document would have it."""
    pieces, position = [], 0
    for tag in (*block.tags, None):
        end = len(block.text) if tag is None else tag.position
        plain = block.text[position:end]
        parts = re.split(f"([{''.join(block.kept)}])", plain) if block.kept else [plain]
        pieces += [block.kept[part] if part in block.kept else block.escape(part) for part in parts]
        pieces.append("" if tag is None else tag.source)
        position = end
    return STAND_IN.sub(lambda match: _value(block, match[0]), "".join(pieces))


def _value(block: Block, stand_in: str) -> str:
    value = block.values.get(stand_in)
    return stand_in if value is None else value.escape(value.text)


def identity(document: Document) -> str:
    """Returns the document that has each text in its own place again."""
    return joined(document, [put_back(block) for block in document.blocks])


def joined(document: Document, texts: Sequence[str]) -> str:
    """Returns the document that has one finished text in the place of each block."""
    pairs = zip(texts, document.blocks, strict=True)
    return document.leading + "".join(text + block.behind for text, block in pairs)
