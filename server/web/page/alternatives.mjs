// The list of other translations of a sentence.

/** Shows them below an element. `onChoose(text)` is called with the one that was chosen. */
export class Alternatives {
  #stop = new AbortController();

  constructor(box, fetchOthers, onFailure) {
    Object.assign(this, { box, fetchOthers, onFailure });
    box.addEventListener("keydown", (event) => this.#press(event));
    box.addEventListener("toggle", ({ newState }) => newState === "closed" && this.#close());
  }

  get isOpen() {
    return this.box.matches(":popover-open");
  }

  /** `word` is the one that was chosen in the sentence: those without it come first. */
  async open(anchor, sentence, word, onChoose) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.anchor = anchor;
    this.#show(paragraph("Looking for others …"));
    try {
      const texts = [...new Set(await this.fetchOthers(sentence.sourceText, word, signal))].filter(
        (text) => text && text !== sentence.text,
      );
      if (signal.aborted) return;
      const byWord = [
        ...texts.filter((text) => !wordsOf(text).has(word?.text)),
        ...texts.filter((text) => wordsOf(text).has(word?.text)),
      ];
      const buttons = byWord.map((text) => this.#button(text, wordsOf(sentence.text), onChoose));
      this.#show(...(buttons.length ? buttons : [paragraph("The model has no other translation.")]));
      buttons[0]?.focus();
    } catch (error) {
      if (signal.aborted) return;
      this.box.hidePopover();
      this.onFailure(error);
    }
  }

  #show(...children) {
    this.box.replaceChildren(...children);
    if (!this.isOpen) this.box.showPopover();
    const { left, bottom, top } = this.anchor.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const below = bottom + 6 + height <= innerHeight ? bottom + 6 : Math.max(8, top - 6 - height);
    this.box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    this.box.style.top = `${below}px`;
  }

  #button(text, known, onChoose) {
    const button = document.createElement("button");
    button.type = "button";
    button.dir = "auto";
    button.lang = this.anchor.closest("[lang]")?.lang ?? "";
    for (const part of text.split(/(\s+)/)) {
      const isNew = part.trim() && [...wordsOf(part)].some((word) => !known.has(word));
      const element = document.createElement(isNew ? "strong" : "span");
      element.textContent = part;
      button.append(element);
    }
    button.addEventListener("click", () => {
      onChoose(text);
      this.box.hidePopover();
    });
    return button;
  }

  #press(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const buttons = [...this.box.querySelectorAll("button")];
    buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length]?.focus();
  }

  #close() {
    this.#stop.abort();
    if (document.activeElement === document.body || this.box.contains(document.activeElement)) this.anchor.focus();
  }
}

function wordsOf(text) {
  return new Set(text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []);
}

function paragraph(words) {
  const element = document.createElement("p");
  element.textContent = words;
  return element;
}
