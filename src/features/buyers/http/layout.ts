import { hash } from 'node:crypto';
import { Html, html } from './html.ts';
import { otherThan } from './texts/language.ts';
import type { Texts } from './texts/english.ts';

/** `listen.public.buyers`. */
export type PageSettings = {
  readonly title: string | null;
  readonly supportUrl: string | null;
  readonly accent: string;
  readonly askEmail: boolean;
};

/** What a form proves: the license key, and that its page was opened with it (form-token.ts). */
export type FormSession = { licenseKey: string; token: string };

/** The content of a page. `heading`: null for the usual one. `session`: of its forms; null: no license is open. */
export type View = { heading: string | null; session: FormSession | null; body: Html };

/** Where the page is at the public listener. */
export const paths = {
  license: '/license',
  seat: '/license/seat',
  answer: '/license/answer',
  recover: '/license/recover',
} as const;

/** A page of the seller without scripts and cookies, with the headers that it needs. */
export class Layout {
  readonly #settings: PageSettings;
  readonly #style: Html;
  readonly headers: Readonly<Record<string, string>>;

  constructor(settings: PageSettings) {
    this.#settings = settings;
    const style = styleWith(settings.accent);
    this.#style = new Html(`<style>${style}</style>`);
    const policy = [
      "default-src 'none'",
      `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
      'img-src data:',
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; ');
    this.headers = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
      // With no-referrer, browsers send no Origin with a form.
      'Referrer-Policy': 'same-origin',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      Vary: 'Accept-Language',
    };
  }

  page(texts: Texts, { heading, session, body }: View): string {
    const { title, supportUrl } = this.#settings;
    const name = title ?? texts.title;
    const start = `${paths.license}?lang=${texts.language}`;
    return html`<!doctype html>
      <html lang="${texts.language}">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width" />
          <meta name="robots" content="noindex" />
          <title>${heading === null ? name : `${heading} – ${name}`}</title>
          <link rel="icon" href="data:," />
          ${this.#style}
        </head>
        <body>
          ${heading === null && title === null ? null : html`<header><a href="${start}">${name}</a></header>`}
          <main>
            <h1>${heading ?? texts.title}</h1>
            ${body}
          </main>
          <footer>
            ${supportUrl === null ? null : html`<a href="${supportUrl}">${texts.support}</a>`}
            ${languageSwitch(otherThan(texts), session)}
          </footer>
        </body>
      </html>`.markup;
  }
}

function languageSwitch(other: Texts, session: FormSession | null): Html {
  const { language, languageName } = other;
  return session === null
    ? html`<a href="${paths.license}?lang=${language}" lang="${language}" hreflang="${language}"
        >${languageName}</a
      >`
    : form(
        other,
        paths.license,
        session,
        html`<button class="link" lang="${language}">${languageName}</button>`,
      );
}

/** A form of the page in a language. */
export function form({ language }: Texts, action: string, session: FormSession | null, content: Html): Html {
  const encoding = action === paths.answer ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
  return html`<form method="post" action="${action}" enctype="${encoding}">
    <input type="hidden" name="lang" value="${language}" />
    ${
      session === null
        ? null
        : html`<input type="hidden" name="license_key" value="${session.licenseKey}" />
            <input type="hidden" name="token" value="${session.token}" />`
    }
    ${content}
  </form>`;
}

/** Black or white: what can be read on the color. */
function inkOn(color: string): string {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(color.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  // Relative luminance (WCAG 2.2): at this value, both have the same contrast.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

function styleWith(accent: string): string {
  return `
:root { color-scheme: light dark; --ink: #1c2127; --soft: #57606a; --line: #d5dae0; --ground: #f4f5f7; --card: #fff;
  --good: #146c2e; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a8b0ba; --line: #3b424b; --ground: #14171b;
  --card: #1e2228; --good: #7bd88f; --bad: #ff9c94; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
  border-top: 0.375rem solid ${accent}; }
header, main, footer { max-width: 40rem; margin: 0 auto; padding: 0 1rem; overflow-wrap: anywhere; }
header { padding-top: 1.5rem; }
header a { color: inherit; font-weight: 600; text-decoration: none; }
footer { display: flex; gap: 1.5rem; padding-bottom: 2rem; color: var(--soft); }
footer a, .link { color: inherit; text-decoration: underline; }
h1 { margin: 1rem 0; font-size: 1.75rem; line-height: 1.2; }
h2 { margin: 0 0 0.5rem; font-size: 1.125rem; }
p { margin: 0 0 1rem; }
section { margin: 0 0 1.25rem; padding: 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 0.75rem; }
section > :last-child, li > :last-child { margin-bottom: 0; }
label { display: block; font-weight: 600; }
.hint, small { color: var(--soft); font-size: 0.875rem; }
input, textarea { display: block; width: 100%; margin: 0.25rem 0 1rem; padding: 0.625rem 0.75rem; font: inherit;
  color: inherit; background: var(--card); border: 1px solid var(--soft); border-radius: 0.5rem; }
.code { font-family: ui-monospace, monospace; }
button { max-width: 100%; min-height: 2.75rem; margin: 0; padding: 0.5rem 1rem; font: inherit; font-weight: 600; cursor: pointer;
  border: 1px solid var(--soft); border-radius: 0.5rem; background: var(--card); color: inherit; }
button.first { background: ${accent}; border-color: ${accent}; color: ${inkOn(accent)}; }
button.link { min-height: 0; padding: 0; border: 0; background: none; font-weight: 400; }
:focus-visible { outline: 3px solid var(--ink); outline-offset: 2px; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.75rem; }
[role=status], [role=alert] { padding: 0.75rem 1rem; border-left: 0.25rem solid var(--good); background: var(--card); }
[role=alert] { border-color: var(--bad); }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0.5rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
.active { color: var(--good); font-weight: 600; }
.grace, .expired, .disabled { color: var(--bad); font-weight: 600; }
section ul.plain { list-style: none; padding: 0; }
ul.plain li { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between;
  padding: 0.75rem 0; border-top: 1px solid var(--line); }
ul.plain li:first-child { border-top: 0; }
ul.plain strong { display: block; }
ul.plain span { flex: 1 1 12rem; }
section ul { margin: 0 0 1rem; padding-left: 1.25rem; }
figure { margin: 0 0 1rem; }
figure svg { display: block; shape-rendering: crispEdges; width: 100%; max-width: 26rem; height: auto; margin: 0 auto; border-radius: 0.5rem; }
pre { white-space: pre-wrap; font-size: 0.8125rem; }
summary { cursor: pointer; }
`;
}
