// Every call of deepl-node, DeepL's JavaScript client, that is served; run in its folder, with address and key.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [address, key] = process.argv.slice(2);
const deepl = createRequire(`${process.cwd()}/`)('deepl-node');
const NOBODYS = '96ab91fd-e715-41a1-adeb-5d701f84a483';
const XML = '<doc><par>A <b>red</b> dog runs.</par><raw>x = 1</raw></doc>';

async function translate(client) {
  const one = await client.translateText('A dog runs.', null, 'de', { modelType: 'quality_optimized' });
  assert.deepEqual([one.text, one.detectedSourceLang, one.billedCharacters], ['Ein Hund läuft.', 'en', 11]);
  assert.equal(one.modelTypeUsed, 'quality_optimized');
  const two = await client.translateText(['A dog runs.', 'A dog runs.'], 'en', 'de', {
    formality: 'prefer_less', preserveFormatting: true, context: 'A story.', splitSentences: 'on',
  });
  assert.deepEqual(two.map((each) => each.text), ['Ein Hund läuft.', 'Ein Hund läuft.']);
  const back = await client.translateText('Der Hund läuft.', 'de', 'en-GB');
  assert.match(back.text, /dog/i);
  const joined = await client.translateText('A dog\nruns.', null, 'de', { splitSentences: 'nonewlines' });
  assert.equal(joined.text, 'Ein Hund läuft.');
  const html = await client.translateText('<p>A <b>dog</b> runs.</p>', null, 'de', { tagHandling: 'html' });
  assert.equal(html.text, '<p>Ein <b>Hund</b> läuft.</p>');
  const xml = await client.translateText(XML, null, 'de', {
    tagHandling: 'xml', ignoreTags: ['raw', 'x'], splittingTags: 'par', outlineDetection: false,
  });
  assert.match(xml.text, /Hund.*<\/par><raw>x = 1<\/raw><\/doc>$/);
}

async function translateFurther(client) {
  const told = async (text, target, options, source = null) => (
    (await client.translateText(text, source, target, options)).text
  );
  assert.equal(await told('How are you?', 'de', { formality: 'more' }), 'Wie geht es Ihnen?');
  assert.equal(await told('How are you?', 'de', { formality: 'less' }), 'Wie geht es dir?');
  assert.match(await told('Wie geht es dir?', 'en-GB', { formality: 'prefer_more' }), /^How are you/);
  assert.equal(await told('A dog runs.', 'en-US', {}, 'en'), 'A dog runs.');
  const lines = 'A dog runs.\nA man sits.';
  assert.equal(await told(lines, 'de', { splitSentences: 'off' }), 'Ein Hund läuft. Ein Mann sitzt.');
  assert.equal(await told(lines, 'de', { extraRequestParameters: { debug: '1' } }), 'Ein Hund läuft.\nEin Mann sitzt.');
  const page = '<p translate="no">A dog.</p><p>A dog runs.</p>';
  for (const tagHandlingVersion of ['v1', 'v2']) {
    const html = await told(page, 'de', { tagHandling: 'html', tagHandlingVersion });
    assert.equal(html, '<p translate="no">A dog.</p><p>Ein Hund läuft.</p>');
  }
  for (const modelType of ['latency_optimized', 'quality_optimized', 'prefer_quality_optimized']) {
    assert.match((await client.translateText('A dog.', null, 'de', { modelType })).modelTypeUsed, /optimized$/);
  }
  const glossary = await client.createGlossary('One', 'en', 'de', new deepl.GlossaryEntries({ entries: { dog: 'Dackel' } }));
  const both = await client.translateText(['A dog runs.', 'A man sits.'], 'en', 'de', { glossary });
  assert.match(both[0].text, /Dackel/);
  await client.deleteGlossary(glossary);
}

async function refuse(client) {
  const told = (target, options, source = null) => (
    assert.rejects(client.translateText('A dog.', source, target, options), options.expected)
  );
  await told('xx', { expected: /Value for 'target_lang' not supported\./ });
  await told('en-US', { formality: 'more', expected: /Target language 'en-US' doesn't support formality\./ });
  await told('de', { tagHandling: 'json', expected: /Value for 'tag_handling' not supported\./ });
  await told('de', { customInstructions: ['Be brief.'], expected: /'custom_instructions' not supported/ });
  await told('de', { styleRule: NOBODYS, expected: /'style_id' not supported/ });
  await told('de', { glossary: NOBODYS, expected: /Glossary not found/ }, 'en');
  await assert.rejects(client.rephraseText('A dog.', 'en-US'), /Not found/);
  assert.deepEqual(await client.getAllStyleRules(), []);
  assert.deepEqual(await client.listTranslationMemories(), []);
}

async function describe(client) {
  assert.deepEqual((await client.getSourceLanguages()).map((each) => each.code), ['de', 'en']);
  assert.deepEqual((await client.getTargetLanguages()).map((each) => each.code), ['de', 'en-GB', 'en-US']);
  const pairs = await client.getGlossaryLanguagePairs();
  assert.deepEqual(pairs.map((each) => `${each.sourceLang}-${each.targetLang}`).sort(), ['de-en', 'en-de']);
  const usage = await client.getUsage();
  assert.equal(usage.anyLimitReached(), false);
  assert.equal(usage.character.count, 0);
}

async function translateFiles(client) {
  const folder = mkdtempSync(join(tmpdir(), 'deepl-'));
  try {
    const [page, german] = ['a.html', 'b.html'].map((name) => join(folder, name));
    writeFileSync(page, '<p>A <b>dog</b> runs.</p>');
    const status = await client.translateDocument(page, german, 'en', 'de');
    assert.equal(readFileSync(german, 'utf8'), '<p>Ein <b>Hund</b> läuft.</p>');
    assert.deepEqual([status.done(), status.billedCharacters], [true, 25]);
    await client.translateDocument(Buffer.from('How are you?'), join(folder, 'b.txt'), 'en', 'de', {
      filename: 'a.txt', formality: 'more',
    });
    assert.match(readFileSync(join(folder, 'b.txt'), 'utf8'), /Ihnen/);
    const wrong = Buffer.from('A dog runs.');
    await assert.rejects(client.uploadDocument(wrong, 'en', 'de', { filename: 'a.pdf' }), /Invalid file extension/);
    const handle = await client.uploadDocument(wrong, 'en', 'de', { filename: 'a.txt' });
    await client.isDocumentTranslationComplete(handle);
    const output = join(folder, 'a.txt');
    await client.downloadDocument(handle, output);
    assert.equal(readFileSync(output, 'utf8'), 'Ein Hund läuft.');
    const nobodys = { ...handle, documentId: '0'.repeat(32) };
    await assert.rejects(client.getDocumentStatus(nobodys), /Not found/);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function keepOne(client) {
  const entries = new deepl.GlossaryEntries({ entries: { artist: 'Maler', 'the "prize"': 'Gewinn, groß' } });
  const glossary = await client.createGlossary('One', 'en', 'de', entries);
  const table = await client.createGlossaryWithCsv('Two', 'en', 'de', Buffer.from('prize,Gewinn,en,de\n'));
  assert.deepEqual([glossary.name, glossary.ready, glossary.entryCount, table.entryCount], ['One', true, 2, 1]);
  assert.deepEqual(await client.getGlossary(glossary.glossaryId), glossary);
  assert.equal((await client.getGlossaryEntries(glossary)).toTsv(), entries.toTsv());
  const listed = (await client.listGlossaries()).map((each) => each.glossaryId);
  assert.ok(listed.includes(glossary.glossaryId) && listed.includes(table.glossaryId));
  assert.match((await client.translateText('The artist is here.', 'en', 'de', { glossary })).text, /Maler/);
  const glossaryIds = [glossary, table];
  const both = await client.translateText('The artist was awarded a prize.', 'en', 'de', { glossaryIds });
  assert.match(both.text, /Maler.*Gewinn/);
  await client.deleteGlossary(glossary);
  await client.deleteGlossary(table);
  await assert.rejects(client.getGlossary(glossary.glossaryId), deepl.GlossaryNotFoundError);
  await assert.rejects(client.getGlossary('invalid'), /glossary_id/);
}

async function keepMany(client) {
  const of = (source, target, entries) => (
    { sourceLangCode: source, targetLangCode: target, entries: new deepl.GlossaryEntries({ entries }) }
  );
  const more = of('en', 'de', { prize: 'Gewinn' });
  const dictionaries = [of('en', 'de', { artist: 'Maler' }), of('de', 'en', { Maler: 'artist' })];
  const glossary = await client.createMultilingualGlossary('Many', dictionaries);
  const table = await client.createMultilingualGlossaryWithCsv('Table', 'en', 'de', 'prize,Gewinn\n');
  assert.deepEqual(glossary.dictionaries.map((each) => each.entryCount), [1, 1]);
  assert.equal((await client.updateMultilingualGlossaryName(glossary, 'More')).name, 'More');
  await client.updateMultilingualGlossaryDictionary(glossary, more);
  await client.updateMultilingualGlossaryDictionaryWithCsv(glossary, 'en', 'de', 'cat,Katze\n');
  const found = await client.getMultilingualGlossaryDictionaryEntries(glossary, 'en', 'de');
  assert.deepEqual(found.entries.entries(), { artist: 'Maler', prize: 'Gewinn', cat: 'Katze' });
  assert.match((await client.translateText('The artist is here.', 'en', 'de', { glossary })).text, /Maler/);
  assert.equal((await client.replaceMultilingualGlossaryDictionary(glossary, more)).entryCount, 1);
  const replaced = await client.replaceMultilingualGlossaryDictionaryWithCsv(glossary, 'en', 'de', 'a,b\nc,d');
  assert.equal(replaced.entryCount, 2);
  await client.deleteMultilingualGlossaryDictionary(glossary, 'de', 'en');
  assert.equal((await client.getMultilingualGlossary(glossary.glossaryId)).dictionaries.length, 1);
  assert.ok((await client.listMultilingualGlossaries()).length >= 2);
  for (const each of [glossary, table]) await client.deleteMultilingualGlossary(each);
  await assert.rejects(client.deleteMultilingualGlossary(glossary), deepl.GlossaryNotFoundError);
}

for (const serverUrl of [address, `${address}/deepl`]) {
  const client = new deepl.DeepLClient(key, { serverUrl });
  for (const calls of [translate, translateFurther, refuse, describe, keepOne, keepMany, translateFiles]) await calls(client);
}
await assert.rejects(new deepl.DeepLClient('wrong', { serverUrl: address }).getUsage(), deepl.AuthorizationError);
