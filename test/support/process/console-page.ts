import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { vi } from 'vitest';
import { httpClient, type RequestOptions } from '../network/raw-http.ts';
import { patienceMs } from '../patience.ts';
import type { Page } from './browser.ts';

/** A daemon, and the headers with its admin token. */
export interface ConsoleDaemon {
  readonly tcp: string;
  readonly admin: NonNullable<RequestOptions['headers']>;
}

const maxTabs = 200;

/** The name by which a screen reader says the element with the focus. */
const focusedName = `(() => {
  const element = document.activeElement;
  const text = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
  return text.trim().replaceAll(/\\s+/g, ' ');
})()`;

/** The console in a browser, used as a person does who has no mouse. */
export class ConsolePage {
  readonly page: Page;
  /** The errors that the page wrote to the console of the browser, without failed requests. */
  readonly errors: string[] = [];
  #daemon: ConsoleDaemon;

  constructor(page: Page, daemon: ConsoleDaemon) {
    this.page = page;
    this.#daemon = daemon;
    page.on('pageerror', (error) => this.errors.push(error.message));
    page.on('console', (message) => {
      const isOwn = message.type() === 'error' && !message.text().startsWith('Failed to load resource');
      if (isOwn) this.errors.push(message.text());
    });
  }

  /** The text of the page as a person sees it. */
  text(): Promise<string> {
    return this.page.evaluate<string>('document.body.innerText');
  }

  async shows(text: string): Promise<void> {
    await until(
      `the page shows ${text}`,
      () => this.text(),
      (shown) => shown.includes(text),
    );
  }

  /** Waits until no part of the page is being read. */
  async settled(): Promise<void> {
    await until(
      'the page has been read',
      () => this.text(),
      (shown) => !/Reading …|Examining …/.test(shown),
    );
  }

  /** Opens a page, such as `outbox?state=dead`, and waits for its heading. */
  async open(hash: string, heading: string): Promise<void> {
    await this.page.goto(`${this.#daemon.tcp}/console#/${hash}`);
    await this.headed(heading);
  }

  async headed(heading: string): Promise<void> {
    const read = (): Promise<string> => this.page.evaluate(`document.querySelector('h1')?.innerText ?? ''`);
    await until(`the page ${heading} opens`, read, (shown) => shown === heading);
  }

  /** Opens the console, and confirms its code with the admin token, as `latchkey console` does. */
  async signIn({ admin }: { admin: boolean }): Promise<void> {
    await this.page.goto(`${this.#daemon.tcp}/console`);
    await this.confirm({ admin });
  }

  /** Confirms the code that the page shows, at this daemon. */
  async confirm({ admin, daemon = this.#daemon }: { admin: boolean; daemon?: ConsoleDaemon }): Promise<void> {
    this.#daemon = daemon;
    await using http = httpClient({ tcp: daemon.tcp });
    const confirmShown = async (): Promise<number> => {
      const code = await this.page.evaluate<string>(`document.querySelector('.code')?.textContent ?? ''`);
      const path = `/admin/v1/console/sign-ins/${encodeURIComponent(code)}/confirm`;
      return (await http.post(path, { headers: daemon.admin, json: { admin } })).status;
    };
    await until('the code is confirmed', confirmShown, (status) => status === 204);
    const isIn = (): Promise<boolean> => this.page.evaluate(`document.querySelector('.sign-in') === null`);
    await until('the page has a session', isIn, (is) => is);
  }

  /** Presses Tab until the element with this name has the focus. */
  async focus(name: string | RegExp): Promise<void> {
    const names = new Set<string>();
    for (let tabs = 0; tabs < maxTabs; tabs += 1) {
      const focused = await this.focused();
      names.add(focused.slice(0, 40));
      if (typeof name === 'string' ? focused === name : name.test(focused)) return;
      await this.page.keyboard.press('Tab');
    }
    throw new Error(`no Tab leads to ${String(name)}, only to ${[...names].join(', ')}`);
  }

  focused(): Promise<string> {
    return this.page.evaluate<string>(focusedName);
  }

  /** Goes to a link or a button by Tab, and presses Enter. */
  async press(name: string | RegExp): Promise<void> {
    await this.focus(name);
    await this.page.keyboard.press('Enter');
  }

  /** Goes to a field by Tab, and replaces its text. */
  async fill(name: string, text: string): Promise<void> {
    await this.focus(name);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.type(text);
  }

  /** The rules of axe-core that the page breaks seriously, in both color schemes. */
  async seriousProblems(): Promise<readonly string[]> {
    await this.page.evaluate(`${axe};0`);
    const found: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await this.page.emulateMedia({ colorScheme });
      // Colors are compared after the animation of a dialog.
      await this.page.evaluate(
        `Promise.all(document.getAnimations().map(({ finished }) => finished)).then(() => 0)`,
      );
      const { violations } = await this.page.evaluate<AxeResult>('axe.run()');
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      found.push(
        ...serious.map(({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' ')}`),
      );
    }
    return found;
  }
}

async function until<Value>(
  what: string,
  read: () => Promise<Value>,
  isGood: (value: Value) => boolean,
): Promise<void> {
  const check = async (): Promise<void> => {
    const value = await read();
    if (!isGood(value)) throw new Error(`waited in vain until ${what}: ${String(value)}`);
  };
  await vi.waitFor(check, { timeout: patienceMs, interval: 50 });
}

type AxeResult = {
  violations: readonly { id: string; impact: string; nodes: readonly { html: string }[] }[];
};

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
