// Writes what comes in pieces, so that a long text leaves time for its reader.

const PAUSE = 4; // as many times as the last writing took. Half, and long texts stutter. Twice, and they come in jumps.

/** Calls `write` with lists of items: at once, but with a pause after each time. It must leave no work for later. */
export class Pace {
  #items = [];
  #timer = 0;

  constructor(write) {
    this.write = write;
  }

  add(items) {
    this.#items.push(...items);
    if (!this.#timer) this.#writeAndPause();
  }

  /** Writes the rest. */
  finish() {
    this.stop();
    this.#write();
  }

  /** Ends it; what has not been written will not be. */
  stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #writeAndPause() {
    const begin = performance.now();
    this.#write();
    this.#timer = setTimeout(() => this.#goOn(), PAUSE * (performance.now() - begin));
  }

  #goOn() {
    this.#timer = 0;
    if (this.#items.length) this.#writeAndPause();
  }

  #write() {
    const items = this.#items;
    this.#items = [];
    if (items.length) this.write(items);
  }
}
