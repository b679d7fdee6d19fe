// Reads the box of terms.

/** Returns `{terms, error}` of lines `source = target`; `error` is empty or names the first line that is wrong. */
export function readTerms(text) {
  const terms = new Map();
  for (const [index, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const [source, target] = line.split(/=(.*)/s).map((side) => side.trim());
    if (!source || !target) return { terms: [], error: `Line ${index + 1} needs a word on both sides of “=”.` };
    if (terms.has(source)) return { terms: [], error: `Line ${index + 1} has “${source}” again.` };
    terms.set(source, target);
  }
  return { terms: [...terms].map(([source, target]) => ({ source, target })), error: "" };
}
