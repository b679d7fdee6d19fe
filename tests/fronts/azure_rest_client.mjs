// Every call of @azure-rest/ai-translation-text; run with the address, in the folder that has it.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { default: TextTranslationClient, isUnexpected } = require("@azure-rest/ai-translation-text");

const address = process.argv[2];
for (const url of [address, `${address}/azure`]) {
  const client = TextTranslationClient(url, { key: "key" }, { allowInsecureConnection: true });
  const answer = await client.path("/translate").post({
    body: {
      inputs: [
        { text: "A dog runs.", language: "en", targets: [{ language: "de" }, { language: "de-DE" }] },
        { text: "<b>A man sits.</b>", language: "en", textType: "Html", targets: [{ language: "de" }] },
        { text: "Der Hund läuft über das Feld.", targets: [{ language: "en" }] },
      ],
    },
  });
  assert.equal(answer.status, "200");
  const texts = answer.body.value.map((item) => item.translations.map((each) => each.text));
  assert.deepEqual(texts.slice(0, 2), [["Ein Hund läuft.", "Ein Hund läuft."], ["<b>Ein Mann sitzt.</b>"]]);
  assert.equal(answer.body.value[2].detectedLanguage.language, "de");

  const languages = await client.path("/languages").get({ queryParameters: { scope: "translation" } });
  assert.equal(languages.body.translation.de.nativeName, "Deutsch");
  const headers = { "If-None-Match": languages.headers.etag };
  assert.equal((await client.path("/languages").get({ headers, queryParameters: { scope: "translation" } })).status, "304");

  const targets = ["formal", "informal"].map((tone) => ({ language: "de", tone }));
  const tones = await client.path("/translate").post({
    body: { inputs: [{ text: "How are you?", language: "en", textType: "Plain", targets }] },
  });
  assert.deepEqual(
    tones.body.value[0].translations.map((each) => each.text),
    ["Wie geht es Ihnen?", "Wie geht es dir?"],
  );
  const german = await client.path("/translate").post({
    body: { inputs: [{ text: "Ein Hund.", language: "de", targets: [{ language: "en", tone: "formal" }] }] },
  });
  assert.deepEqual([german.status, german.body.error.code], ["400", "400042"]);

  const refused = await client.path("/translate").post({
    body: { inputs: [{ text: "A dog.", targets: [{ language: "zz" }] }] },
  });
  assert.ok(isUnexpected(refused));
  assert.deepEqual([refused.status, refused.body.error.code], ["400", "400036"]);
  const scripts = await client.path("/transliterate").post({
    body: { inputs: [{ text: "a" }] },
    queryParameters: { language: "hi", fromScript: "Deva", toScript: "Latn" },
  });
  assert.deepEqual([scripts.status, scripts.body.error.code], ["400", "400080"]);
}
