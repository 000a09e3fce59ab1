import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { settingsOf } from '../../src/config/description.ts';
import { root } from '../../src/config/settings/root.ts';
import { settingsTables, writeKey } from '../support/reference/settings-reference.ts';

const book = join(import.meta.dirname, '../../src/config/README.md');
const mark = '<!-- What follows is generated: npm run docs -->';
const written = readFileSync(book, 'utf8');

test('the book of settings says what their descriptions say', async () => {
  const [prose, tables] = written.split(mark);
  expect(tables).toBeDefined();
  const text = `${prose}${mark}\n\n${settingsTables()}\n`;
  const formatted = await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
  await expect(formatted).toMatchFileSnapshot(book);
});

test('every setting is in the book, with a sentence', () => {
  for (const { path, setting } of settingsOf(root)) {
    expect(setting.purpose).toMatch(/^[A-Z`].*\.$/);
    // An item that is a single value is told with its list.
    const key = writeKey(path.at(-1) === '[]' ? path.slice(0, -1) : path);
    expect(written).toContain(`| \`${key}\``);
  }
});

test('every number is told with what it counts and its range, every value with its variable and what SIGHUP does', () => {
  const numbers = new Set(['duration', 'wait', 'size', 'count', 'rate', 'rateOrNone']);
  const rows = new Map(
    written
      .split('\n')
      .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
      .map(([, key = '', , unit, values, variable, reload]) => [key, { unit, values, variable, reload }]),
  );
  for (const { path, setting } of settingsOf(root)) {
    const key = writeKey(path.at(-1) === '[]' ? path.slice(0, -1) : path);
    const row = rows.get(`\`${key}\``);
    expect(row, key).toMatchObject({
      variable: expect.stringMatching(/^`LATCHKEY_[A-Z_0-9]+`$/),
      reload: expect.stringMatching(/^(?:applies|restart)$/),
      values: expect.stringMatching(/./),
    });
    if (!numbers.has(setting.kind)) continue;
    expect(row, key).toMatchObject({
      unit: expect.stringMatching(/^[A-Za-z]/),
      values: expect.stringMatching(/above/),
    });
  }
});
