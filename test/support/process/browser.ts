import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const executablePath = '/usr/bin/chromium';

/** Whether Debian's Chromium is installed. */
export const isBrowserInstalled: boolean = existsSync(executablePath);

/** The part of a page's interface that we use. */
export interface Page {
  readonly goto: (url: string) => Promise<{ status: () => number; text: () => Promise<string> } | null>;
  /** Runs a script in the page. */
  readonly evaluate: <Value>(script: string) => Promise<Value>;
  readonly waitForEvent: (name: 'framenavigated') => Promise<unknown>;
  /** Types into the field that a CSS selector finds. */
  readonly fill: (field: string, text: string) => Promise<void>;
  /** Presses a button, and waits for the page that answers a form. */
  readonly click: (button: string) => Promise<void>;
  readonly reload: () => Promise<unknown>;
  /** Where it shares storage with other tabs. */
  readonly context: () => Context;
  readonly keyboard: {
    readonly press: (key: string) => Promise<void>;
    readonly type: (text: string) => Promise<void>;
  };
  readonly emulateMedia: (media: { colorScheme: 'light' | 'dark' }) => Promise<void>;
  readonly setViewportSize: (size: { width: number; height: number }) => Promise<void>;
  readonly on: {
    (name: 'console', hear: (message: { type: () => string; text: () => string }) => void): unknown;
    (name: 'pageerror', hear: (error: Error) => void): unknown;
    (name: 'request', hear: (request: { url: () => string }) => void): unknown;
  };
}

export interface Browser extends AsyncDisposable {
  /** Opens a page that shares no storage with another. */
  readonly newPage: (options?: ContextOptions) => Promise<Page>;
}

type ContextOptions = { javaScriptEnabled?: boolean; locale?: string };

type Context = { readonly newPage: () => Promise<Page>; readonly pages: () => readonly Page[] };

type Playwright = {
  chromium: {
    launch(options: {
      executablePath: string;
      headless: boolean;
      args: readonly string[];
    }): Promise<{ newContext: (options: ContextOptions) => Promise<Context>; close: () => Promise<void> }>;
  };
};

/** Starts a real headless browser. Every name ending in `.example` resolves to this machine. */
export async function startBrowser(): Promise<Browser> {
  // The types of a page must not be visible in other files.
  const { chromium } = createRequire(import.meta.url)('playwright-core') as Playwright;
  const browser = await chromium.launch({
    executablePath,
    headless: true,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP *.example 127.0.0.1',
    ],
  });
  return {
    newPage: async (options = {}) => await (await browser.newContext(options)).newPage(),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
