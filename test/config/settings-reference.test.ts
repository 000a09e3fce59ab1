import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { settings } from '../../src/config/configuration.ts';
import { metaOf, settingsOf } from '../../src/config/schema.ts';
import { settingsTables, writeKey } from '../support/reference/settings-reference.ts';

const book = join(import.meta.dirname, '../../src/config/README.md');
const mark = '<!-- What follows is generated: npm run docs -->';
const written = readFileSync(book, 'utf8');

test('the reference of settings is what their schemas say', async () => {
  const [prose, tables] = written.split(mark);
  expect(tables).toBeDefined();
  const text = `${prose}${mark}\n\n${settingsTables()}\n`;
  const formatted = await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
  await expect(formatted).toMatchFileSnapshot(book);
});

test('every setting is in the reference, with a description in sentences', () => {
  for (const { path, type } of settingsOf(settings)) {
    const isItem = path.at(-1) === '[]';
    // An item that is a single value is described with its list.
    const { description } = isItem ? { description: 'One item.' } : metaOf(type);
    expect(description, path.join('.')).toMatch(/^[A-Z`].*\.$/);
    expect(written).toContain(`| \`${writeKey(isItem ? path.slice(0, -1) : path)}\``);
  }
});

test('every row of the reference names its environment variable, its values and what SIGHUP does, and every number its unit and range', () => {
  const rows = new Map(
    written
      .split('\n')
      .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
      .map(([, key = '', , unit, values, variable, reload]) => [key, { unit, values, variable, reload }]),
  );
  for (const { path, type } of settingsOf(settings)) {
    const key = writeKey(path.at(-1) === '[]' ? path.slice(0, -1) : path);
    const row = rows.get(`\`${key}\``);
    expect(row, key).toMatchObject({
      variable: expect.stringMatching(/^`LATCHKEY_[A-Z_0-9]+`$/),
      reload: expect.stringMatching(/^(?:applies|restart)$/),
      values: expect.stringMatching(/./),
    });
    const { expected = '' } = metaOf(type);
    if (!/^a (?:whole )?(?:number|duration|size)/.test(expected)) continue;
    expect(row, key).toMatchObject({
      unit: expect.stringMatching(/^[A-Za-z]/),
      values: expect.stringMatching(/above/),
    });
  }
});
