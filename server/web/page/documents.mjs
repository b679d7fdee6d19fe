// The list of files that the server translates: how far each is, and its translation.

import { failureOf, sleep } from "./api.mjs";
import { translatedName } from "./files.mjs";
import { nameOf } from "./languages.mjs";

const MAX_FILE_BYTES = 16 << 20; // as the server has it
// Half, and a short file waits behind two long ones. Twice, and a page has half of what an address may have.
const MOST_AT_ONCE = 4;
// Between two questions how far a file is. Half, and the server has twice as many. Twice, and the page seems to rest.
const POLL_MS = 1000;

/** Shows them in a list. */
export class Documents {
  #rows = new Set();
  #waiting = [];
  #numRunning = 0;

  /**
   * `readOptions()` returns the languages and terms that are chosen, as `{target, fields}`, or null if a term is wrong.
   * `onEnd(words)` is called when a file is translated, and `onFailure(error)` when it is not.
   */
  constructor(list, api, readOptions, onEnd, onFailure) {
    Object.assign(this, { list, api, readOptions, onEnd, onFailure });
  }

  /** Whether a file would be lost if the page were closed. */
  get areOpen() {
    return [...this.#rows].some((row) => row.isOpen);
  }

  add(file) {
    const options = this.readOptions();
    if (!options) return;
    const row = new Row(file, options);
    this.#rows.add(row);
    row.onRetry = () => {
      row.options = this.readOptions() ?? row.options;
      this.#queue(row);
    };
    row.onRemove = () => {
      row.close();
      this.#rows.delete(row);
      this.list.hidden = !this.#rows.size;
    };
    this.list.append(row.element);
    this.list.hidden = false;
    this.#queue(row);
  }

  /** Ends all work. */
  stop() {
    for (const row of this.#rows) row.stop.abort();
  }

  #queue(row) {
    row.begin();
    this.#waiting.push(row);
    this.#startNext();
  }

  async #startNext() {
    if (this.#numRunning === MOST_AT_ONCE || !this.#waiting.length) return;
    const row = this.#waiting.shift();
    this.#numRunning += 1;
    try {
      await this.#translate(row);
    } catch (error) {
      if (!row.stop.signal.aborted) {
        row.fail(error.message);
        this.onFailure(error);
      }
    }
    this.#numRunning -= 1;
    this.#startNext();
  }

  async #translate(row) {
    const { signal } = row.stop;
    signal.throwIfAborted();
    await check(row.file);
    row.show("Sending …");
    const { id } = await this.api.sendDocument(row.file, row.options.fields, signal);
    try {
      let document;
      do {
        await sleep(document ? POLL_MS : 0, signal);
        document = await this.#ask(row, () => this.api.document(id, signal));
        if (document.error) throw failureOf(document);
        row.show(wordsOf(document, row.options.target), document);
      } while (document.state !== "DONE");
      row.finish(await this.#ask(row, () => this.api.documentFile(id, signal)), document);
      this.onEnd(`${row.file.name} is translated.`);
    } finally {
      this.api.forgetDocument(id);
    }
  }

  /** Asks until the server can be reached. */
  async #ask(row, ask) {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (![0, 503].includes(error.status)) throw error;
        row.show("The server cannot be reached. The page tries again.");
        await sleep(POLL_MS, row.stop.signal);
      }
    }
  }
}

/** One file. Its last elements are what can be done: cancel, or save, try again and remove. */
class Row {
  constructor(file, options) {
    Object.assign(this, { file, options });
    this.stop = new AbortController();
    this.element = document.createElement("li");
    this.name = make("bdi", file.name);
    this.bar = make("progress");
    this.bar.setAttribute("aria-label", file.name);
    this.words = make("p");
    this.tools = make("div");
    this.element.append(this.name, this.bar, this.words, this.tools);
  }

  get isOpen() {
    return !this.bar.hidden || this.isUnsaved;
  }

  begin() {
    this.stop = new AbortController();
    this.isUnsaved = false;
    this.bar.hidden = false;
    this.words.className = "";
    this.words.removeAttribute("role");
    this.show("Waiting …");
    this.#offer(this.#button("Cancel", () => this.onRemove()));
  }

  show(words, { texts = 0, translatedTexts = 0, failedTexts = 0 } = {}) {
    if (this.words.textContent !== words) this.words.textContent = words;
    if (texts) Object.assign(this.bar, { max: texts, value: translatedTexts + failedTexts });
    else this.bar.removeAttribute("value");
  }

  finish(content, document) {
    this.show(finalWords(document, this.options.target));
    this.bar.hidden = this.isUnsaved = true;
    const save = make("a", "Save");
    save.className = "quiet";
    save.download = translatedName(this.file.name, this.options.target);
    save.title = save.download;
    save.href = this.url = URL.createObjectURL(content);
    save.addEventListener("click", () => (this.isUnsaved = false));
    this.#offer(save, this.#button("Remove", () => this.onRemove()));
  }

  fail(words) {
    this.bar.hidden = true;
    this.words.className = "failure";
    this.words.role = "alert";
    this.show(words);
    this.#offer(
      this.#button("Try again", () => this.onRetry()),
      this.#button("Remove", () => this.onRemove()),
    );
  }

  close() {
    this.stop.abort();
    if (this.url) URL.revokeObjectURL(this.url);
    this.element.remove();
  }

  #button(words, act) {
    const button = make("button", words);
    button.type = "button";
    button.className = "quiet";
    button.addEventListener("click", act);
    return button;
  }

  /** Shows what can be done now, and leaves the focus there if it was there. */
  #offer(...elements) {
    const hadFocus = this.tools.contains(document.activeElement);
    for (const each of elements) each.setAttribute("aria-label", `${each.textContent} ${this.file.name}`);
    this.tools.replaceChildren(...elements);
    if (hadFocus) elements[0].focus();
  }
}

/** Throws Error, in words for the user, if a file cannot be sent. */
async function check(file) {
  if (file.size > MAX_FILE_BYTES)
    throw new Error(`The file has ${(file.size / (1 << 20)).toFixed(1)} MiB. It may have 16.`);
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new Error("The browser cannot read this file.");
  }
}

function wordsOf({ state, texts, translatedTexts, failedTexts, secondsRemaining }, target) {
  const done = translatedTexts + failedTexts;
  if (state === "QUEUED") return "Reading …";
  if (done === texts) return "Writing …";
  const left = done ? `, about ${durationOf(secondsRemaining)} left` : "";
  return `Translating into ${nameOf(target)}: ${done} of ${texts} texts${left}.`;
}

function finalWords({ texts, failedTexts }, target) {
  if (!texts) return "The file has no text to translate.";
  const failed = failedTexts ? ` ${failedTexts} of ${texts} texts failed, and stayed as they were.` : "";
  return `Translated into ${nameOf(target)}.${failed}`;
}

function durationOf(seconds) {
  return seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function make(kind, words = "") {
  const element = document.createElement(kind);
  element.textContent = words;
  return element;
}
