// What the page says, in plain words, and counting characters.

const TOO_LONG = "The text is too long for this server.";
const DOCUMENT_LOST = "The server has lost this file, perhaps because it was started anew. Try again.";

/** Returns what the user is told of an answer with a status of HTTP and the server's own words. */
export function wordsOf(status, words) {
  switch (status) {
    case 401:
      return "The server does not know this key.";
    case 403:
      return `This key may not do that: ${words}`;
    case 408:
      return "The text took too long to send. Try again.";
    case 404:
      return words.startsWith("Document not found") ? DOCUMENT_LOST : refused(words);
    case 413:
      return TOO_LONG;
    case 503:
      return "The server is starting or stopping. Try again in a moment.";
    case 504:
      return "The server took too long. Try again, or send less text.";
    default:
      return status >= 500 ? `The server failed: ${words}` : refused(words);
  }
}

function refused(words) {
  return `The server refused this: ${words.replace(/^file: /, "The file ")}`;
}

/** Returns what the user should check, one line for each kind of thing, for the sentences of an answer. */
export function notesOf(sentences) {
  const count = (reason) => sentences.filter((each) => each?.finishReason === reason).length;
  const numbers = sentences
    .flatMap((each) => each?.kept ?? [])
    .filter((part) => part.placement === "PLACEMENT_MISSING");
  const missed = sentences
    .flatMap((each) => each?.terms ?? [])
    .filter((term) => term.status === "TERM_STATUS_MISSED");
  const copied = sentences.filter(isCopied).length;
  const notes = [
    [
      count("FINISH_REASON_LENGTH"),
      (n) => `${many(n)} reached the longest translation that is allowed, and may lack an end.`,
    ],
    [count("FINISH_REASON_REPETITION"), (n) => `${many(n)} began to repeat, and the repeats were cut off.`],
    [copied, (n) => `${many(n)} stayed as written, because the model cannot read it.`],
    [numbers.length, () => `Check these numbers: ${[...new Set(numbers.map((part) => part.text))].join(", ")}.`],
    [
      missed.length,
      () => `These terms were not used: ${[...new Set(missed.map((term) => term.source))].join(", ")}.`,
    ],
  ];
  return notes.filter(([n]) => n).map(([n, words]) => words(n));
}

/** Whether a sentence has words, and came back as it was. */
export function isCopied(sentence) {
  return sentence?.finishReason === "FINISH_REASON_COPIED" && /\p{L}{2}/u.test(sentence.sourceText ?? "");
}

/** Whether the first letter of a text is of a script that is written from right to left. */
export function isRightToLeft(text) {
  return /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(text);
}

/** Returns a function that turns positions in code points, as the server counts, into those of JavaScript. */
export function positionsOf(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (position) => Math.min(position, text.length);
  const starts = [];
  for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) starts.push(at);
  return (position) => starts[position] ?? text.length;
}

function many(n) {
  return n === 1 ? "One sentence" : `${n} sentences`;
}
