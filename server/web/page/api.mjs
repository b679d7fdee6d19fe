// Calls the server: sends the key, waits as long as it is told to, and gives errors in plain words.

import { readEvents } from "./events.mjs";
import { wordsOf } from "./words.mjs";

const KEY = "babelserve-key";

/** An answer that is an error. `status` is that of HTTP, 0 if nothing answered. */
export class Failure extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export class Api {
  #welcomeAt = 0; // of performance.now(): before, the server wants no request

  /** `onWait(seconds)` is called each second while a request waits for its time, at last with 0. */
  constructor(onWait) {
    this.onWait = onWait;
  }

  get key() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  set key(key) {
    sessionStorage.setItem(KEY, key);
  }

  async models(signal) {
    return (await this.#ask("v1/models", undefined, signal)).json();
  }

  /** Returns the translations of one sentence, the best first. */
  async hypotheses(request, signal) {
    const answer = await (await this.#ask("v1/translate", request, signal)).json();
    return answer.translations[0].hypotheses.map((each) => each.text ?? "");
  }

  /** Yields lists of `TranslateStreamResponse`. Throws Failure, and AbortError when the signal says so. */
  async *stream(request, signal) {
    const response = await this.#ask("v1/translate/stream", request, signal);
    let isWhole = false;
    for await (const events of brokenAsFailure(readEvents(response.body))) {
      const messages = events.filter((each) => each.event === "").map((each) => each.data);
      if (messages.length) yield messages;
      const last = events.at(-1);
      if (last.event === "error") throw failureOf(last.data);
      isWhole = last.event === "end";
    }
    if (isWhole) return;
    throw new Failure(0, "The connection broke before the translation was complete. Try again.");
  }

  /** Begins to translate a file, and returns what the server says of the document. */
  async sendDocument(file, fields, signal) {
    const form = new FormData();
    for (const [name, value] of fields) form.append(name, value);
    form.append("file", file);
    return (await this.#ask("v1/documents", form, signal)).json();
  }

  /** Returns how far a document is. It has an `error` if it has failed. */
  async document(id, signal) {
    return (await this.#ask(`v1/documents/${id}`, undefined, signal)).json();
  }

  /** Returns the translated file, as a Blob that no browser shows as a page of this server. */
  async documentFile(id, signal) {
    const answer = await this.#ask(`v1/documents/${id}/file`, undefined, signal);
    return new Blob([await answer.arrayBuffer()], { type: "application/octet-stream" });
  }

  /** Ends the work for a document. It is sent although the page may be closing, and nobody waits for the answer. */
  forgetDocument(id) {
    const options = { method: "DELETE", headers: this.#headers(), credentials: "omit", keepalive: true };
    fetch(`v1/documents/${id}`, options).catch(() => {});
  }

  #headers() {
    return this.key ? { authorization: `Bearer ${this.key}` } : {};
  }

  async #ask(path, body, signal) {
    for (;;) {
      await this.#waitUntilWelcome(signal);
      const response = await this.#fetch(path, body, signal);
      if (response.ok) return response;
      if (response.status === 401 && !this.key) throw new Failure(401, "The server asks for a key.");
      if (response.status !== 429) throw failureOf(await response.json().catch(() => null), response.status);
      const seconds = Number(response.headers.get("retry-after")) || 1;
      this.#welcomeAt = Math.max(this.#welcomeAt, performance.now() + seconds * 1000);
    }
  }

  async #fetch(path, body, signal) {
    const headers = this.#headers();
    const isForm = body instanceof FormData;
    const options = body && { method: "POST", body: isForm ? body : JSON.stringify(body) };
    if (body && !isForm) headers["content-type"] = "application/json";
    try {
      return await fetch(path, { ...options, headers, signal, credentials: "omit" });
    } catch (error) {
      throw broken(error);
    }
  }

  async #waitUntilWelcome(signal) {
    try {
      for (let ms; (ms = this.#welcomeAt - performance.now()) > 0;) {
        this.onWait(Math.ceil(ms / 1000));
        await sleep(Math.min(ms, 1000), signal);
      }
    } finally {
      this.onWait(0);
    }
  }
}

async function* brokenAsFailure(events) {
  try {
    yield* events;
  } catch (error) {
    throw broken(error);
  }
}

function broken(error) {
  return error.name === "AbortError"
    ? error
    : new Failure(0, "The server cannot be reached. Check the connection, and try again.");
}

/** Returns the failure that a body with an `error` tells of. */
export function failureOf(body, status = body?.error?.code ?? 500) {
  return new Failure(status, wordsOf(status, body?.error?.message ?? "no reason given"));
}

/** Waits. Throws AbortError when the signal says so. */
export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
