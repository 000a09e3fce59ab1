import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { html } from '../../../../src/features/buyers/http/html.ts';
import { Layout } from '../../../../src/features/buyers/http/layout.ts';
import { textsIn } from '../../../../src/features/buyers/http/texts/language.ts';

function pageWith(settings: object): { page: string; headers: Readonly<Record<string, string>> } {
  const layout = new Layout({
    title: null,
    supportUrl: null,
    accent: '#1d4ed8',
    askEmail: true,
    ...settings,
  });
  const view = { heading: 'One', session: null, body: html`` };
  return { page: layout.page(textsIn('en'), view), headers: layout.headers };
}

test('texts are escaped wherever they stand, and markup is not', () => {
  const text = `<b a="1" c='2'>&amp;`;
  const escaped = '&#60;b a=&#34;1&#34; c=&#39;2&#39;&#62;&#38;amp;';
  expect(html`<p title="${text}">${text}${html`<i>${1}</i>`}${null}${[html`<br />`]}</p>`.markup).toBe(
    `<p title="${escaped}">${escaped}<i>1</i><br /></p>`,
  );
});

test('the policy allows the style of the page and no other', () => {
  const { page, headers } = pageWith({});
  const style = /<style>([\s\S]*)<\/style>/.exec(page)?.[1] ?? '';
  expect(headers['Content-Security-Policy']).toContain(`'sha256-${hash('sha256', style, 'base64')}'`);
});

test.each([
  ['#1d4ed8', '#fff'],
  ['#ffd000', '#000'],
  ['#000000', '#fff'],
  ['#ffffff', '#000'],
  ['#777777', '#000'],
])('the text of a button in %s is %s, so that it can be read', (accent, ink) => {
  expect(pageWith({ accent }).page).toContain(
    `background: ${accent}; border-color: ${accent}; color: ${ink};`,
  );
});

test('the focus can be seen in every accent, such as white on white', () => {
  expect(pageWith({ accent: '#ffffff' }).page).toContain(':focus-visible { outline: 3px solid var(--ink);');
});

test('the title is that of the seller, or says what the page is', () => {
  expect(pageWith({ title: 'Shop <3' }).page).toContain('<title>One – Shop &#60;3</title>');
  expect(pageWith({}).page).toContain('<title>One – Your license</title>');
});
