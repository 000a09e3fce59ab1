import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { Agent } from '../harness/agent-harness.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Browser, isBrowserInstalled, startBrowser } from './browser.ts';
import { type ConsoleDaemon, ConsolePage } from './console-page.ts';
import { startDaemonProcess } from './daemon-process.ts';

/** Tests in a real browser, which are skipped where there is none. What is put into `opened` is closed at the end. */
export function describeInBrowser(what: string, tests: (opened: AsyncDisposableStack) => void): void {
  const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';
  describe.skipIf(!isBrowserInstalled)(`${what} in a real browser${missing}`, () => {
    const opened = new AsyncDisposableStack();
    afterAll(() => opened.disposeAsync());
    tests(opened);
  });
}

/** The console of a daemon, in a browser of its own. */
export class OpenConsole implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #daemon: ConsoleDaemon;
  /** A page that is signed in, with what an admin may do. */
  readonly page: ConsolePage;

  private constructor(browser: Browser, daemon: ConsoleDaemon, page: ConsolePage) {
    this.#browser = browser;
    this.#daemon = daemon;
    this.page = page;
  }

  static async of(
    { process, admin }: Agent,
    rights: { admin: boolean } = { admin: true },
  ): Promise<OpenConsole> {
    const browser = await startBrowser();
    const daemon = { tcp: process.tcp, admin };
    const page = new ConsolePage(await browser.newPage(), daemon);
    await page.signIn(rights);
    return new OpenConsole(browser, daemon, page);
  }

  /** A page that shares no session with another. */
  async newPage(): Promise<ConsolePage> {
    return new ConsolePage(await this.#browser.newPage(), this.#daemon);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser[Symbol.asyncDispose]();
  }
}

/** An authority, or another daemon on an empty state directory, which a test asks with its admin token. */
export class AdminDaemon extends Agent {
  readonly stateDir: string;

  private constructor(...[running, directory]: ConstructorParameters<typeof Agent>) {
    super(running, directory);
    this.stateDir = join(directory, 'state');
  }

  static async start(opened: AsyncDisposableStack, configuration: object = {}): Promise<AdminDaemon> {
    const { path } = opened.use(temporaryDirectory());
    const listen = { tcp: '127.0.0.1:0', socket: false };
    const running = await startDaemonProcess(path, { listen, ...configuration });
    return opened.use(new AdminDaemon(running, path));
  }

  /** Returns the data of the response. */
  async post(path: string, json: object): Promise<Record<string, unknown>> {
    const { status, body } = await this.client.post(path, { headers: this.admin, json });
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return (body as { data: Record<string, unknown> }).data;
  }

  async read<Data>(path: string): Promise<Data> {
    const { body } = await this.client.get(path, { headers: this.admin });
    return (body as { data: Data }).data;
  }
}
