import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { settingsOf } from '../../src/config/description.ts';
import { root } from '../../src/config/settings/root.ts';
import { settingsTables, writeKey } from '../support/settings-book.ts';

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
