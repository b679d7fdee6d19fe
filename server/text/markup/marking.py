"""The sentences of a document, each with the tags that stand in it.

Tags between two sentences, and at the ends of a sentence that their element encloses whole, stay where they are: they
become part of what separates the sentences. So a tag moves only if the element that it begins or ends encloses a part
of a sentence.

A text in a tag that moves is translated beside its sentence (`SplitText.homes`). A text in a tag that stays has
sentences of its own, in the order of the document.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from server.text.markup.document import STAND_IN, Block, Document, Mark, Tag, looking
from server.text.markup.sentence_markup import SentenceMarkup, TagText
from server.text.source import SourceSentence, SplitText


def split_document(
    document: Document, split: Callable[[str, int], SplitText], look: Callable[[], None] = lambda: None
) -> SplitText:
    """Returns the sentences of a document's blocks, with its markup in what leads and separates them.

    Args:
        document: any document.
        split: splits a plain text; it is given the number of sentences before this text, too.
        look: called again and again; may rest, or end the work by raising.
    """
    splitter = _DocumentSplitter(split, look)
    splitter.stay(document.leading)
    for block in document.blocks:
        splitter.add(block)
    return splitter.finish()


class _DocumentSplitter:
    """Goes through the blocks of a document. See `split_document` for its arguments."""

    def __init__(self, split: Callable[[str, int], SplitText], look: Callable[[], None]):
        self._split = split
        self._look = look
        self._leading = ""
        self._sentences: list[SourceSentence] = []
        self._last: tuple[SourceSentence, SentenceMarkup] | None = None  # the last one, whose separator is not known
        self._gap: list[str] = []  # what stands behind it
        self._within: list[SourceSentence] = []
        self._homes: list[int] = []

    @property
    def _num_sentences(self) -> int:
        return len(self._sentences) + (self._last is not None) + len(self._within)

    def finish(self) -> SplitText:
        """Returns the sentences of all that was added."""
        self._end_gap()
        return SplitText(self._leading, (*self._sentences, *self._within), homes=tuple(self._homes))

    def stay(self, markup: str) -> None:
        """Adds what stands between two sentences."""
        self._gap.append(markup)

    def add(self, block: Block) -> None:
        """Adds a block, with what stands behind it."""
        own = self._split(block.text, self._num_sentences)
        gaps, marks = _arrange(block, own, self._look)
        self._add_gap(gaps[0], block.values)
        for sentence, of_sentence, gap in looking(zip(own.sentences, marks, gaps[1:], strict=True), self._look):
            kept = {each: block.kept[each] for each in sentence.text if each in block.kept} if block.kept else {}
            self._end_gap()
            texts = self._add_texts(of_sentence, kept, block.values) if block.values else {}
            self._last = sentence, SentenceMarkup(tuple(of_sentence), kept, block.escape, texts)
            self._add_gap(gap, block.values)
        self.stay(block.behind)

    def _end_gap(self) -> None:
        """Gives what stands behind the last sentence to that sentence, or to the document if there is none yet."""
        gap, self._gap = "".join(self._gap), []
        if self._last is None:
            self._leading = gap
            return
        (sentence, markup), self._last = self._last, None
        self._sentences.append(replace(sentence, separator=gap, markup=markup))

    def _add_gap(self, gap: str, values: Mapping[str, Block]) -> None:
        """Adds what stands between two sentences of a block, and the texts in its tags."""
        position = 0
        for match in STAND_IN.finditer(gap) if values else ():
            if block := values.get(match[0]):
                self.stay(gap[position : match.start()])
                self.add(block)
                position = match.end()
        self.stay(gap[position:])

    def _add_texts(
        self, marks: Iterable[Mark], kept: Mapping[str, str], values: Mapping[str, Block]
    ) -> dict[str, TagText]:
        """Adds the texts in the tags of the next sentence, and returns them by their stand-ins."""
        texts = {}
        tags = [tag for mark in marks for tag in (mark.opening, mark.closing)]
        for stand_in in looking(STAND_IN.findall("".join([*tags, *kept.values()])), self._look):
            if block := values.get(stand_in):
                own = self._split(block.text, self._num_sentences)
                first, markup = len(self._within), SentenceMarkup((), {}, block.escape)
                self._within += [
                    replace(each, separator=block.escape(each.separator), markup=markup) for each in own.sentences
                ]
                self._homes += [len(self._sentences)] * len(own.sentences)
                numbers = range(first, len(self._within))
                texts[stand_in] = TagText(block.escape(block.text), block.escape(own.leading), numbers)
        return texts


def _arrange(block: Block, split: SplitText, look: Callable[[], None]) -> tuple[list[str], list[list[Mark]]]:
    """Returns what stands before, between and behind the sentences of a block, and the marks of each sentence."""
    ends, starts, position = [0], [], len(split.leading)
    for sentence in split.sentences:
        starts.append(position)
        ends.append(position + len(sentence.text))
        position = ends[-1] + len(sentence.separator)
    starts.append(len(block.text))
    tags = _joined(_uncrossed(looking(block.tags, look)), look)
    homes = _homes(tags, ends, starts, look)
    here: list[list[int]] = [[] for _ in range(len(ends) + len(starts))]
    for index, home in enumerate(looking(homes, look)):
        here[home].append(index)
    gaps = []
    for end, start, indices in zip(ends, starts, here[::2], strict=True):
        pieces, position = [], end
        for tag in (tags[index] for index in looking(indices, look)):
            pieces += [block.escape(block.text[position : tag.position]), tag.source]
            position = tag.position
        gaps.append("".join([*pieces, block.escape(block.text[position:start])]))
    of_sentences = zip(starts, ends[1:], here[1::2], strict=False)
    return gaps, [_marks(tags, homes, looking(indices, look), *bounds) for *bounds, indices in of_sentences]


def _homes(tags: Sequence[Tag], ends: Sequence[int], starts: Sequence[int], look: Callable[[], None]) -> list[int]:
    """Returns where each tag belongs: 2 k for what stands before sentence k, 2 k + 1 for the sentence.

    Args:
        tags: of a block.
        ends: where what stands before each sentence begins, and behind the last one.
        starts: where it ends.
        look: see `split_document`.
    """
    places = []
    gap = 0
    for tag in looking(tags, look):
        while tag.position >= (ends[gap + 1] if gap + 1 < len(ends) else tag.position + 1):
            gap += 1
        places.append(2 * gap + (tag.position > starts[gap]))
    homes = list(places)
    for index, (tag, place) in enumerate(looking(zip(tags, places, strict=True), look)):
        other = None if tag.partner is None else places[tag.partner]
        if place % 2 == 0 and other == place + (-1 if tag.is_end else 1):
            homes[index] = other
    # What stands at the end of a sentence, but before a tag that belongs to the sentence, belongs to it too.
    for index in looking(range(len(tags) - 2, -1, -1), look):
        if homes[index] % 2 == 0 and homes[index + 1] == homes[index] - 1:
            homes[index] -= 1
    for index in looking(range(1, len(tags)), look):
        if homes[index] % 2 == 0 and homes[index - 1] == homes[index] + 1:
            homes[index] += 1
    return homes


def _uncrossed(tags: Iterable[Tag]) -> list[Tag]:
    """Makes points of tags without a partner whose element would cross another one, as `<i>` in `<b><i>a</b></i>`."""
    uncrossed = []
    num_open, has_begun = 0, False  # elements round the tag that end in the block; whether one does that ends behind it
    for tag in tags:
        if tag.partner is not None:
            num_open += -1 if tag.is_end else 1
        elif num_open or (tag.is_end and has_begun):
            tag = tag._replace(is_end=False, is_void=True)
        elif not tag.is_void:
            has_begun = True
        uncrossed.append(tag)
    return uncrossed


def _joined(tags: Sequence[Tag], look: Callable[[], None]) -> list[Tag]:
    """Makes void tags at an end of an element, such as a line break in a link, a part of the element's own tag.

    As points of their own they could as well stand outside of it.
    """
    joined: list[Tag] = []
    sources: list[list[str]] = []  # of each in `joined`, what it is joined of
    places: dict[int, int] = {}  # in `joined`, by the places of the same tags in `tags`
    for index, tag in enumerate(looking(tags, look)):
        voids: list[str] = []
        if tag.is_end:
            while joined and joined[-1].is_void and joined[-1].position == tag.position:
                joined.pop()
                voids += sources.pop()
        last = joined[-1] if joined else tag
        if tag.is_void and last.position == tag.position and last.partner is not None and not last.is_end:
            sources[-1].append(tag.source)
        else:
            places[index] = len(joined)
            joined.append(tag)
            sources.append([*reversed(voids), tag.source])
    partners = [None if tag.partner is None else places[tag.partner] for tag in joined]
    return [
        tag._replace(source="".join(own), partner=partner)
        for tag, own, partner in looking(zip(joined, sources, partners, strict=True), look)
    ]


def _marks(tags: Sequence[Tag], homes: Sequence[int], indices: Iterable[int], start: int, end: int) -> list[Mark]:
    """Returns the marks of a sentence that begins and ends there, outer before inner ones."""
    begun_before: list[Mark] = []
    marks: list[Mark] = []
    for index in indices:
        tag = tags[index]
        place = min(max(tag.position, start), end) - start
        partner = tag.partner if tag.partner is not None and homes[tag.partner] == homes[index] else None
        if tag.is_void:
            marks.append(Mark(place, place, tag.source, ""))
        elif tag.is_end:
            if partner is None:
                begun_before.append(Mark(0, place, "", tag.source))
        elif partner is None:
            marks.append(Mark(place, end - start, tag.source, ""))
        else:
            last = min(max(tags[partner].position, start), end) - start
            marks.append(Mark(place, last, tag.source, tags[partner].source))
    return begun_before[::-1] + marks
