// Reads server-sent events.

/** Yields lists of `{event, data}`, one list for each piece that the network brings; `data` is parsed JSON. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    if (parts.length) yield parts.map(readEvent);
  }
}

function readEvent(block) {
  const fields = { event: "", data: "null" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return { event: fields.event, data: JSON.parse(fields.data) };
}
