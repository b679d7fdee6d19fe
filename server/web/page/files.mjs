// Reads files that are opened or dropped, and saves translations.

const MAX_BYTES = 2 << 20; // of one text, as the server has it
const FORMATS = {
  html: "text/html",
  htm: "text/html",
  md: "text/markdown",
  markdown: "text/markdown",
  xlf: "application/xliff+xml",
  xliff: "application/xliff+xml",
};

/** Returns `{text, format}` of a file. Throws Error, in words for the user. */
export async function readFile(file) {
  if (file.size > MAX_BYTES)
    throw new Error(`${file.name} has ${(file.size / (1 << 20)).toFixed(1)} MiB. A text may have 2.`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    text = "\0";
  }
  if (text.includes("\0"))
    throw new Error(`${file.name} is not text in UTF-8. The page reads text, HTML, Markdown and XLIFF.`);
  return {
    text: text.replace(/\r\n?/g, "\n"),
    format: FORMATS[file.name.split(".").pop().toLowerCase()] ?? "text/plain",
  };
}

/** Saves a translation beside the file that it was made of: `notes.txt` becomes `notes.de.txt`. */
export function saveFile(text, name, language) {
  const dot = name.lastIndexOf(".");
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ".txt"];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = `${stem}.${language}${end}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
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
