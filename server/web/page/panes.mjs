// The two sides of a translation: writes sentences as they come, and lights what belongs together.

import { isCopied, isRightToLeft, positionsOf } from "./words.mjs";

// A run of letters and digits, or a mark, as the server has it.
const WORD = /[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu;

/**
 * The text that was sent lies behind the box that it was typed into, letter for letter, so that its sentences and words
 * can be lit there.
 */
export class Panes {
  #pairs = []; // by index: {sentence, source, target}, the elements on both sides
  #before = new Text(); // what stands before the first sentence
  #entry = null; // the sentence by which the keyboard enters the translation
  #lit = []; // the elements that are lit
  #words = { index: -1, at: -1 }; // the word of a translation that the keyboard has reached

  /** `onPick(index, word)` is called with the word that was chosen and what stands before it; without a word null. */
  constructor(source, backdrop, output, onPick) {
    Object.assign(this, { source, backdrop, output, onPick });
    source.addEventListener("pointermove", (event) => this.#pointAtSource(event));
    source.addEventListener("pointerleave", () => this.#light(-1));
    for (const name of ["keyup", "focus", "pointerup"]) source.addEventListener(name, () => this.#followCaret());
    source.addEventListener("blur", () => this.#light(-1));
    output.addEventListener("pointermove", (event) => this.#pointAtTarget(event));
    output.addEventListener("pointerleave", () => this.#light(-1));
    output.addEventListener("focusin", (event) => this.#reach(indexOf(event.target), -1));
    output.addEventListener("focusout", () => this.#light(-1));
    output.addEventListener("keydown", (event) => this.#press(event));
    output.addEventListener("click", (event) => this.#pick(event.target));
  }

  get sentences() {
    return this.#pairs.map((pair) => pair.sentence);
  }

  /** The translation, as far as it has come. */
  get text() {
    const parts = this.#pairs.map(({ sentence }) =>
      sentence ? (sentence.text ?? "") + (sentence.separator ?? "") : "",
    );
    return this.#before.data + parts.join("");
  }

  /** Writes the text of the box behind it; its sentences are not known then. */
  follow() {
    this.#light(-1);
    for (const pair of this.#pairs) pair.source = null;
    this.backdrop.dir = getComputedStyle(this.source).direction; // "auto" would look through all of it at each change
    this.backdrop.replaceChildren(`${this.source.value}\n`);
  }

  clear() {
    this.#pairs = [];
    this.#entry = null;
    this.#before = new Text();
    this.output.replaceChildren();
  }

  /** Replaces the translation by room for that which begins with a `TranslateStreamResponse`. */
  begin({ sentenceCount = 0 }) {
    this.clear();
    this.#pairs = Array.from({ length: sentenceCount }, (_, index) => ({ target: sentenceElement(index) }));
    this.output.append(this.#before, ...this.#pairs.map((pair) => pair.target));
  }

  /** Writes messages, and takes as long as the browser does to lay them out. */
  write(messages) {
    for (const message of messages) this.#write(message);
    return this.output.offsetHeight;
  }

  /** Marks the sentences of the text behind the box, when all of them have come. */
  finish() {
    this.output.dir = isRightToLeft(this.text) ? "rtl" : "ltr";
    const text = this.source.value;
    const unitOf = positionsOf(text);
    const parts = [];
    let end = 0;
    for (const [index, pair] of this.#pairs.entries()) {
      const { sourceBegin = 0, sourceEnd = 0 } = pair.sentence ?? {};
      const begin = unitOf(sourceBegin);
      if (sourceEnd <= sourceBegin || begin < end) continue; // of text with markup nobody knows the place
      pair.source = sentenceElement(index);
      parts.push(text.slice(end, begin), pair.source);
      end = unitOf(sourceEnd);
      pair.source.textContent = text.slice(begin, end);
    }
    this.backdrop.replaceChildren(...parts, `${text.slice(end)}\n`);
  }

  /** Puts another translation of a sentence in its place. Which words belong together is not known then. */
  replace(index, text) {
    const pair = this.#pairs[index];
    pair.sentence = { ...pair.sentence, text, links: [], finishReason: undefined };
    pair.target.textContent = text;
    delete pair.target.dataset.split;
  }

  elementOf(index) {
    return this.#pairs[index].target;
  }

  #write(message) {
    const { sentence, sentenceIndex: index = 0 } = message;
    if (message.leading) this.#before.data = message.leading; // it comes with the sentence of index 0
    const pair = this.#pairs[index];
    if (!pair || !sentence) return;
    pair.sentence = sentence;
    pair.target.textContent = sentence.text ?? "";
    pair.target.className = `sentence${isCut(sentence) ? " doubtful" : ""}${isCopied(sentence) ? " copied" : ""}`;
    pair.target.setAttribute("role", "button");
    pair.target.setAttribute("aria-haspopup", "dialog");
    pair.target.after(sentence.separator ?? "");
    pair.target.tabIndex = -1;
    if (sentence.text && this.#isBeforeEntry(index)) this.#enter(index);
  }

  /** Whether the keyboard should rather enter the translation by this sentence, because it stands before the other. */
  #isBeforeEntry(index) {
    return !this.#entry || (index < indexOf(this.#entry) && !this.output.contains(document.activeElement));
  }

  /** Lets the keyboard enter the translation by one sentence: the first one, or the one reached last. */
  #enter(index) {
    if (this.#entry) this.#entry.tabIndex = -1;
    this.#entry = this.#pairs[index].target;
    this.#entry.tabIndex = 0;
  }

  #pointAtSource({ clientX, clientY }) {
    const under = document
      .elementsFromPoint(clientX, clientY)
      .find((each) => this.backdrop.contains(each) && each !== this.backdrop);
    const index = under ? indexOf(under) : -1;
    this.#light(index, "source", under);
    if (index >= 0 && !under.dataset.at)
      this.#light(
        index,
        "source",
        document.elementsFromPoint(clientX, clientY).find((each) => each.dataset.at),
      );
  }

  #pointAtTarget({ target }) {
    this.#light(indexOf(target), "target", target);
  }

  #followCaret() {
    const at = this.source.selectionStart;
    let end = 0;
    for (const node of this.backdrop.childNodes) {
      const begin = end;
      end += node.textContent.length;
      if (at <= end && node.dataset) return this.#light(indexOf(node), "source", wordAt(node, at - begin));
      if (at < end) break;
    }
    this.#light(-1);
  }

  #reach(index, at) {
    this.#words = { index, at };
    if (index < 0) return;
    this.#enter(index);
    this.#light(index, "target", this.#pairs[index].target.querySelectorAll("[data-at]")[at]);
  }

  #press(event) {
    const { index, at } = this.#words;
    if (index < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = isRightToLeft(this.#pairs[index].sentence.text) ? "ArrowLeft" : "ArrowRight";
    const backward = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const words = this.#pairs[index].target.querySelectorAll("[data-at]");
    if (event.key === forward && at + 1 < words.length) this.#reach(index, at + 1);
    else if (event.key === backward && at > 0) this.#reach(index, at - 1);
    else if (event.key === forward || event.key === "ArrowDown") this.#step(index, 1);
    else if (event.key === backward || event.key === "ArrowUp") this.#step(index, -1);
    else if (event.key === "Enter" || event.key === " ") this.#pick(words[at] ?? this.#pairs[index].target);
    else return;
    event.preventDefault();
  }

  #step(index, by) {
    while (this.#pairs[(index += by)])
      if (this.#pairs[index].sentence?.text) return this.#pairs[index].target.focus();
  }

  #pick(element) {
    const index = indexOf(element);
    if (index >= 0 && this.#pairs[index].sentence) this.onPick(index, wordOf(element));
  }

  /** Lights a sentence on both sides, and the words that belong to one of its words; index -1 puts the lights out. */
  #light(index, side, word) {
    for (const each of this.#lit) each.classList.remove("lit");
    this.#lit = [];
    const pair = this.#pairs[index];
    if (!pair?.sentence) return;
    for (const each of ["source", "target"]) {
      if (!pair[each]) continue;
      splitIntoWords(pair[each]);
      this.#lit.push(pair[each]);
    }
    if (word?.dataset.at) this.#lit.push(...partnersOf(pair, side, word));
    for (const each of this.#lit) each.classList.add("lit");
  }
}

/** Returns the words on both sides that belong to one, with that one. */
function partnersOf({ sentence, source, target }, side, word) {
  const places = {
    source: rangesOf(sentence.links, "source", sentence.sourceText),
    target: rangesOf(sentence.links, "target", sentence.text),
  };
  const isMeant = places[side].map((range) => overlaps(word, range));
  const partners = (element, ranges) =>
    element
      ? [...element.querySelectorAll("[data-at]")].filter((each) =>
          ranges.some((range, link) => isMeant[link] && overlaps(each, range)),
        )
      : [];
  return [word, ...partners(source, places.source), ...partners(target, places.target)];
}

function rangesOf(links = [], side, text = "") {
  const unitOf = positionsOf(text);
  return links.map((link) => [unitOf(link[`${side}Begin`] ?? 0), unitOf(link[`${side}End`] ?? 0)]);
}

function overlaps(word, [begin, end]) {
  const at = Number(word.dataset.at);
  return at < end && begin < at + word.textContent.length;
}

/** Makes elements of the words of a sentence; only of one that somebody looks at, because a long text has many. */
function splitIntoWords(element) {
  if (element.dataset.split) return;
  element.dataset.split = "yes";
  const text = element.textContent;
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(WORD)) {
    const word = document.createElement("span");
    word.dataset.at = match.index;
    word.textContent = match[0];
    parts.push(text.slice(end, match.index), word);
    end = match.index + match[0].length;
  }
  element.replaceChildren(...parts, text.slice(end));
}

function wordAt(sentence, at) {
  splitIntoWords(sentence);
  return [...sentence.querySelectorAll("[data-at]")].find((word) => overlaps(word, [at, at + 1]));
}

function sentenceElement(index) {
  const element = document.createElement("span");
  element.className = "waiting";
  element.dataset.index = index;
  return element;
}

function wordOf(element) {
  const sentence = element.parentElement.textContent;
  return element.dataset.at ? { text: element.textContent, before: sentence.slice(0, element.dataset.at) } : null;
}

function indexOf(element) {
  return Number(element.closest?.("[data-index]")?.dataset.index ?? -1);
}

function isCut({ finishReason }) {
  return finishReason === "FINISH_REASON_LENGTH" || finishReason === "FINISH_REASON_REPETITION";
}
