// The page: what is asked when, and what is said about it.

import { Alternatives } from "./alternatives.mjs";
import { Api, sleep } from "./api.mjs";
import { Documents } from "./documents.mjs";
import { copyText, isText, listenForFiles, readFile, saveFile, translatedName } from "./files.mjs";
import { readTerms } from "./glossary.mjs";
import { Languages, nameOf, readFragment, writeFragment } from "./languages.mjs";
import { Pace } from "./pace.mjs";
import { Panes } from "./panes.mjs";
import { notesOf } from "./words.mjs";

// Between the last key and the request. Half, and each word is sent. Twice, and the page seems slow.
const PAUSE_MS = 400;
const MOST_OTHERS = 6; // hypotheses of a sentence

const get = (id) => document.getElementById(id);
const [source, output, from, into] = ["source", "output", "source-language", "target-language"].map(get);
const api = new Api((seconds) => {
  get("countdown").textContent = seconds ? `Next try in ${seconds} s.` : "";
  if (seconds) say("The server is busy. The page waits for its turn.");
});
const panes = new Panes(source, get("backdrop"), output, showOthers);
const others = new Alternatives(get("alternatives"), findOthers, fail);
const documents = new Documents(get("documents"), api, readOptions, say, ({ status }) => status === 401 && askForKey());
let languages = new Languages({});
let running = new AbortController();
let fileName = "translation.txt";
let detected = "";

function say(words) {
  if (get("status").textContent !== words) get("status").textContent = words;
}

function fail(error) {
  say("");
  get("failure").textContent = error.message;
  if (error.status === 401) askForKey();
}

function askForKey() {
  const isFirst = !api.key;
  get("key-form").hidden = false;
  if (isFirst) get("failure").textContent = "";
  get("key").focus();
}

/** Begins a translation after a pause; the one before ends at once. */
async function translate(pauseMs = 0) {
  stop();
  running = new AbortController();
  const { signal } = running;
  panes.follow();
  showState();
  if (!source.value.trim()) return reset();
  try {
    await sleep(pauseMs, signal);
    await run(signal);
  } catch (error) {
    if (signal.aborted) return;
    output.setAttribute("aria-busy", "false");
    fail(error);
  }
}

function stop() {
  running.abort();
  output.setAttribute("aria-busy", "false");
  output.classList.toggle("stale", panes.text !== "");
  say("");
  get("failure").textContent = "";
}

function reset() {
  panes.clear();
  output.classList.remove("stale");
  get("notes").replaceChildren();
  detected = "";
  showState();
}

async function run(signal) {
  const request = makeRequest(source.value);
  if (!request) return;
  output.setAttribute("aria-busy", "true");
  say("Translating …");
  let first = null;
  const pace = new Pace((messages) => panes.write(messages));
  signal.addEventListener("abort", () => pace.stop());
  for await (const messages of api.stream(request, signal)) {
    const isFirst = !first;
    first ??= messages[0];
    if (isFirst) begin(first);
    pace.add(messages);
    detected ||= messages.find((each) => each.detectedLanguageCode)?.detectedLanguageCode ?? "";
    if (isFirst) showState();
  }
  pace.finish();
  panes.finish();
  output.setAttribute("aria-busy", "false");
  source.lang = detected || (from.value === "auto" ? "" : from.value);
  showState();
  get("notes").replaceChildren(...notesOf(panes.sentences).map(item));
  const by = first?.model ? ` by ${first.model} ${first.modelVersion ?? ""}`.trimEnd() : "";
  say(`Translated${by}.${detected ? ` The text seems to be ${nameOf(detected)}.` : ""}`);
}

/** Makes room for an answer. */
function begin(message) {
  performance.mark("answered");
  requestAnimationFrame(() => setTimeout(() => performance.measure("first sentence", "answered")));
  panes.begin(message);
  output.classList.remove("stale");
  output.lang = into.value;
  detected = "";
}

/** Returns the terms; null if a line is wrong, which the page says then. */
function checkedTerms() {
  const { terms, error } = readTerms(get("glossary").value);
  get("glossary-error").textContent = error;
  get("terms").open ||= error !== "";
  return error ? null : terms;
}

/** Returns the request for a text; null if a term is wrong. */
function makeRequest(text) {
  const terms = checkedTerms();
  if (!terms) return null;
  const models = languages.models(from.value, into.value);
  const mimeType = get("format").value;
  const request = {
    contents: [text.toWellFormed?.() ?? text],
    sourceLanguageCode: from.value,
    targetLanguageCode: into.value,
    mimeType,
  };
  if (terms.length) request.glossary = { terms };
  if (mimeType === "text/plain" && models?.every((model) => model.hasAlignment))
    request.output = { includeAlignment: true };
  return request;
}

/** Returns what a file is translated with; null if a term is wrong. */
function readOptions() {
  const terms = checkedTerms();
  if (!terms) return null;
  const fields = terms.map(({ source, target }) => ["term", `${source}=${target}`]);
  if (from.value !== "auto") fields.push(["sourceLanguageCode", from.value]);
  return { target: into.value, fields: [...fields, ["targetLanguageCode", into.value]] };
}

function showOthers(index, word) {
  if (get("format").value !== "text/plain" || output.classList.contains("stale")) return;
  others.open(panes.elementOf(index), panes.sentences[index], word, (text) => panes.replace(index, text));
}

/** Returns translations of a sentence: those that go on otherwise from where a word stands, or the best ones. */
function findOthers(text, word, signal) {
  const canGoOn = word && languages.models(from.value, into.value) && !get("glossary").value.trim();
  const widest = Math.min(
    ...(languages.models(from.value, into.value) ?? [{}]).map((model) => model.maxBeamSize ?? 4),
  );
  const number = Math.min(MOST_OTHERS, widest);
  const request = { ...makeRequest(text), decoding: { numHypotheses: number, beamSize: number } };
  delete request.output;
  if (canGoOn) {
    request.decoding = { numHypotheses: number, returnAlternatives: true };
    if (word.before.trim()) request.targetPrefixes = [word.before.trimEnd()];
  }
  if (detected) request.sourceLanguageCode = detected;
  return api.hypotheses(request, signal);
}

function showState() {
  const has = { text: source.value !== "", translation: panes.text !== "" };
  get("clear").disabled = !has.text;
  get("copy").disabled = get("save").disabled = !has.translation;
  get("hint").hidden = has.translation;
  get("swap").disabled = !languages.has(into.value, from.value === "auto" ? detected : from.value);
}

function offer(select, codes, wanted) {
  select.replaceChildren(
    ...codes.map((code) => new Option(code === "auto" ? "Detect language" : nameOf(code), code)),
  );
  if (codes.includes(wanted)) select.value = wanted;
}

function choose(sourceCode, targetCode) {
  offer(from, [...(languages.canDetect ? ["auto"] : []), ...languages.sources], sourceCode);
  offer(into, languages.targets(from.value), targetCode);
  writeFragment(from.value, into.value);
  detected = "";
  translate();
}

function swap() {
  const [oldSource, text] = [from.value === "auto" ? detected : from.value, panes.text];
  if (text) source.value = text;
  choose(into.value, oldSource);
}

/** Shows the text of a file in the box; sends files that are no text, and those that come together. */
function open(files) {
  const kinds = get("file").accept.split(",");
  if (files.length === 1 && isText(files[0], kinds)) return openText(files[0], kinds);
  for (const file of files) documents.add(file);
}

async function openText(file, kinds) {
  try {
    const { text, format } = await readFile(file, kinds);
    source.value = text;
    get("format").value = format;
    fileName = file.name;
  } catch (error) {
    return fail(error);
  }
  translate();
}

function clear() {
  source.value = "";
  get("format").value = "text/plain";
  fileName = "translation.txt";
  translate();
  source.focus();
}

async function copy() {
  await copyText(panes.text);
  say("Copied.");
}

function item(words) {
  const element = document.createElement("li");
  element.textContent = words;
  return element;
}

async function start() {
  try {
    languages = new Languages(await api.models(new AbortController().signal));
  } catch (error) {
    return fail(error);
  }
  get("key-form").hidden = true;
  get("failure").textContent = "";
  const [sourceCode, targetCode] = readFragment();
  const isServed = languages.has(sourceCode, targetCode);
  choose(...(isServed ? [sourceCode, targetCode] : languages.first));
}

function press(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    translate();
  } else if (event.key === "Escape" && !others.isOpen) {
    const wasRunning = !running.signal.aborted && output.getAttribute("aria-busy") === "true";
    stop();
    if (wasRunning) say("Stopped.");
  }
}

source.addEventListener("input", () => translate(PAUSE_MS));
get("glossary").addEventListener("input", () => translate(2 * PAUSE_MS));
get("format").addEventListener("change", () => translate());
from.addEventListener("change", () => choose(from.value, into.value));
into.addEventListener("change", () => choose(from.value, into.value));
addEventListener("keydown", press);
addEventListener("hashchange", () => choose(...readFragment()));
for (const [id, act] of Object.entries({
  go: () => translate(),
  swap,
  copy,
  clear,
  open: () => get("file").click(),
})) {
  get(id).addEventListener("click", act);
}
get("save").addEventListener("click", () => saveFile(panes.text, translatedName(fileName, into.value)));
get("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!/^[\x21-\x7e]+$/.test(get("key").value))
    return fail(new Error("A key has no blanks, and no letters beyond ASCII."));
  api.key = get("key").value;
  start();
});
listenForFiles(get("file"), get("source-pane"), open);
addEventListener("beforeunload", (event) => documents.areOpen && event.preventDefault());
addEventListener("pagehide", () => documents.stop());
start();
