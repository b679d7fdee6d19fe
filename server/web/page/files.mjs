// Reads files that are opened or dropped, and saves translations.

const MAX_TEXT_BYTES = 2 << 20; // of one text, as the server has it
const FORMATS = {
  txt: "text/plain",
  html: "text/html",
  htm: "text/html",
  md: "text/markdown",
  markdown: "text/markdown",
};

/** Calls `take(files)` when some are chosen, or dropped anywhere; `pane` shows where they go. */
export function listenForFiles(input, pane, take) {
  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
  for (const name of ["dragover", "dragleave", "drop"]) {
    addEventListener(name, (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      pane.classList.toggle("dropping", name === "dragover");
      if (name === "drop") take([...event.dataTransfer.files]);
    });
  }
}

/** Whether the page shows a file's text. If not, it sends the file; `kinds` are the ends of names that may be sent. */
export function isText(file, kinds) {
  return file.size <= MAX_TEXT_BYTES && (endOf(file) in FORMATS || !kinds.includes(`.${endOf(file)}`));
}

/** Returns `{text, format}` of a file. Throws Error, in words for the user. */
export async function readFile(file, kinds) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    text = "\0";
  }
  if (text.includes("\0"))
    throw new Error(`${file.name} is no text in UTF-8, and no file of these kinds: ${kinds.join(", ")}.`);
  return { text: text.replace(/\r\n?/g, "\n"), format: FORMATS[endOf(file)] ?? "text/plain" };
}

/** Returns the name for a translation of a file: that of `notes.txt` is `notes.de.txt`. */
export function translatedName(name, language) {
  const dot = name.lastIndexOf(".");
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ".txt"];
  return `${stem}.${language}${end}`;
}

/** Saves a text as a file. */
export function saveFile(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function endOf(file) {
  return file.name.split(".").pop().toLowerCase();
}

/** Copies a text; pages that came without TLS have no clipboard of their own. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}
