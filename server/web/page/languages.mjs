// Which languages can be translated into which, their names, and the pair in the address.

const names = new Intl.DisplayNames("en", { type: "language" });

/** The languages that a server translates, of its `ListModelsResponse`. */
export class Languages {
  #targets = new Map(); // by source: target to the model that translates directly, or null for two over a pivot

  constructor({ models = [], pivotLanguageCodes: pivots = [] }) {
    for (const model of models) for (const [source, target] of pairsOf(model)) this.#add(source, target, model);
    for (const pivot of pivots) {
      for (const [source, targets] of [...this.#targets]) {
        if (!targets.has(pivot)) continue;
        for (const target of this.#targets.get(pivot)?.keys() ?? [])
          if (target !== source) this.#add(source, target, null);
      }
    }
    this.first = beginning(models.flatMap(pairsOf), navigator.languages);
  }

  get sources() {
    return byName([...this.#targets.keys()]);
  }

  /** The languages that `source` translates into; all of them for "auto". */
  targets(source) {
    const maps = source === "auto" ? [...this.#targets.values()] : [this.#targets.get(source) ?? new Map()];
    return byName([...new Set(maps.flatMap((targets) => [...targets.keys()]))]);
  }

  has(source, target) {
    return this.targets(source).includes(target);
  }

  /** Whether any target has several sources, so that detection means something. */
  get canDetect() {
    return this.targets("auto").some((target) => this.#sourcesOf(target).length > 1);
  }

  /** The models that may answer; undefined if two models do, over a pivot. */
  models(source, target) {
    const sources = source === "auto" ? this.#sourcesOf(target) : [source];
    const models = sources.map((each) => this.#targets.get(each)?.get(target));
    return models.every(Boolean) ? models : undefined;
  }

  #sourcesOf(target) {
    return this.sources.filter((source) => this.#targets.get(source).has(target));
  }

  #add(source, target, model) {
    if (!this.#targets.has(source)) this.#targets.set(source, new Map());
    const targets = this.#targets.get(source);
    if (!targets.get(target)) targets.set(target, model);
  }
}

/** Returns the English name of a language, or its code. */
export function nameOf(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Returns [source, target] of the address, such as of "#en/de"; nothing else is ever written there. */
export function readFragment() {
  const [source = "", target = ""] = location.hash.slice(1).split("/");
  return [source, target];
}

export function writeFragment(source, target) {
  history.replaceState(null, "", `#${encodeURIComponent(source)}/${encodeURIComponent(target)}`);
}

function pairsOf({ languagePairs, sourceLanguageCodes = [], targetLanguageCodes = [] }) {
  if (languagePairs?.length) return languagePairs.map((pair) => [pair.sourceLanguageCode, pair.targetLanguageCode]);
  return sourceLanguageCodes.flatMap((source) =>
    targetLanguageCodes.filter((each) => each !== source).map((each) => [source, each]),
  );
}

/** Returns the first pair from a language that the reader prefers, or else the first of all. */
function beginning(pairs, preferred) {
  const primary = (code) => code.split(/[-_]/)[0].toLowerCase();
  const found = preferred.map((each) => pairs.find(([source]) => primary(source) === primary(each)));
  return found.find(Boolean) ?? pairs[0] ?? ["", ""];
}

function byName(codes) {
  return codes.sort((a, b) => nameOf(a).localeCompare(nameOf(b), "en"));
}
