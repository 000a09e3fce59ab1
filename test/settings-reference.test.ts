import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { settings } from '../src/config/configuration.ts';
import { metaOf, settingsOf } from '../src/config/section.ts';
import { settingsLists, writeKey } from './support/reference/settings-reference.ts';

const book = join(import.meta.dirname, '../src/config/README.md');
const mark = '<!-- What follows is generated: npm run docs -->';
const written = readFileSync(book, 'utf8');

test('the reference of settings is what their schemas say', async () => {
  const [prose, lists] = written.split(mark);
  expect(lists).toBeDefined();
  const text = `${prose}${mark}\n\n${settingsLists()}\n`;
  const formatted = await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
  await expect(formatted).toMatchFileSnapshot(book);
});

test('every setting is in the reference, with a description in sentences', () => {
  for (const { path, type } of settingsOf(settings)) {
    const isItem = path.at(-1) === '[]';
    // An item that is a single value is described with its list.
    const { description } = isItem ? { description: 'One item.' } : metaOf(type);
    expect(description, path.join('.')).toMatch(/^[A-Z`].*\.$/);
    const isListed = written.includes(`\n- \`${writeKey(isItem ? path.slice(0, -1) : path)}\` (`);
    const isFile = written.includes(`; or in \`${path.at(-1)}\``);
    expect([path, isListed || isFile]).toEqual([path, true]);
  }
});

test('every number in the reference has a unit and a range', () => {
  for (const { path, type } of settingsOf(settings)) {
    const { expected = '', unit } = metaOf(type);
    if (!/^a (?:whole )?(?:number|duration|size)/.test(expected)) continue;
    expect([path, unit]).toEqual([path, expect.stringMatching(/^[A-Za-z]/)]);
    expect(expected).toContain('above');
  }
});
