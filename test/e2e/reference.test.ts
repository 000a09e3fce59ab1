import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserInstalled, startBrowser, type Browser, type Page } from '../support/process/browser.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';

/** Opens some operations and the schemas, with their parameters, bodies and responses. */
const openSome = `{
  const closed = document.querySelectorAll('.opblock:not(.is-open) .opblock-summary-control');
  for (const control of [...closed].slice(0, 5)) control.click();
  document.querySelector('.models-control[aria-expanded="false"]')?.click();
}`;

describe.skipIf(!isBrowserInstalled)(`the reference in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  let daemon: DaemonProcess;
  let browser: Browser;

  beforeAll(async () => {
    const listen = { tcp: '127.0.0.1:0', socket: false };
    daemon = opened.use(await startDaemonProcess(directory.path, { listen }));
    browser = opened.use(await startBrowser());
  });
  afterAll(() => opened.disposeAsync());

  /** Records a page's console messages, errors, and requested addresses. */
  function watch(page: Page): { complaints: string[]; asked: string[] } {
    const complaints: string[] = [];
    const asked: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => void complaints.push(error.message));
    page.on('request', (request) => void asked.push(request.url()));
    return { complaints, asked };
  }

  test('the reference page shows every operation, and loads nothing from other hosts', async () => {
    const page = await browser.newPage();
    const { complaints, asked } = watch(page);
    const answer = await page.goto(`${daemon.tcp}/`);
    expect(answer?.status()).toBe(200);
    const description = (await (await fetch(`${daemon.tcp}/openapi.json`)).json()) as { paths: object };
    const operations = Object.values(description.paths).flatMap((methods: object) => Object.keys(methods));
    const count = 'document.querySelectorAll(".opblock").length';
    await expect.poll(() => page.evaluate<number>(count)).toBe(operations.length);
    await page.evaluate(openSome);
    const open = 'document.querySelectorAll(".opblock.is-open .responses-wrapper").length';
    await expect.poll(() => page.evaluate<number>(open)).toBe(5);
    expect(await page.evaluate<string>('document.body.innerText')).toContain('/api/v2/license/verify');
    // The page has no field for a credential, because it sends no requests.
    const controls = '.authorize, .authorization__btn, .try-out, .servers';
    expect(await page.evaluate<number>(`document.querySelectorAll('${controls}').length`)).toBe(0);
    expect(complaints).toEqual([]);
    expect(asked.filter((url) => !url.startsWith(`${daemon.tcp}/`) && !url.startsWith('data:'))).toEqual([]);
  });

  test('a script that is injected into the reference page does not run', async () => {
    const page = await browser.newPage();
    const { complaints } = watch(page);
    await page.goto(`${daemon.tcp}/docs`);
    await page.evaluate(`{
      const script = document.createElement('script');
      script.textContent = 'window.reached = true';
      document.body.append(script);
    }`);
    expect(await page.evaluate<boolean>('window.reached === undefined')).toBe(true);
    // Console messages arrive independently of the page's responses.
    await expect.poll(() => complaints.join('\n')).toContain('Content Security Policy');
  });

  test('the daemon does not keep the files of the reference page in memory', async () => {
    // Swagger UI is 1.7 MB: a hundred simultaneous readers must not need a hundred copies.
    const rss = (): number =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]);
    await (await fetch(`${daemon.tcp}/docs/swagger-ui-bundle.js`)).arrayBuffer();
    const before = rss();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => fetch(`${daemon.tcp}/docs/swagger-ui-bundle.js`)),
    );
    expect(rss() - before).toBeLessThan(100_000);
    for (const answer of answers) expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(1_000_000);
  });
});
