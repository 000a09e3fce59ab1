import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

/*
 * Makes the pictures in README.md from the data of `latchkey sandbox --demo-data`, two of the console and one of the
 * terminal:
 *
 *     npm run screenshots
 */

const root = join(import.meta.dirname, '../..');
const size = { width: 1200, height: 900 };

/** The part of playwright-core that is used here: its types need those of a browser. */
type Playwright = {
  chromium: {
    launch(options: { executablePath: string; args: readonly string[] }): Promise<{
      newPage(options: { viewport: typeof size; colorScheme?: string }): Promise<Page>;
      close(): Promise<void>;
    }>;
  };
};

type Page = {
  goto(url: string): Promise<unknown>;
  setContent(html: string): Promise<unknown>;
  locator(selector: string): Pick<Page, 'screenshot'>;
  textContent(selector: string): Promise<string | null>;
  waitForSelector(selector: string): Promise<unknown>;
  screenshot(options: { path: string }): Promise<unknown>;
};

/** Lets a page in that shows its code, as `latchkey console` does. */
async function signIn(page: Page, agent: string, token: string): Promise<void> {
  await page.goto(`${agent}/console`);
  const code = (await page.textContent('.code')) ?? '';
  const answer = await fetch(`${agent}/admin/v1/console/sign-ins/${code}/confirm`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
  });
  if (!answer.ok) throw new Error(`the sign-in was refused: ${await answer.text()}`);
}

/** What a person sees who types these commands of `latchkey`. */
type Terminal = readonly { command: string; output: string }[];

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function terminalPage(terminal: Terminal): string {
  const lines = terminal.map(({ command, output }) => `<b>$ ${escape(command)}</b>\n${escape(output)}`);
  return `<pre style="margin: 0; padding: 16px; width: 102ch; white-space: pre-wrap; font: 15px/1.5 'DejaVu Sans Mono', monospace;
    background: #16181d; color: #d7dae0">${lines.join('\n')}</pre>`;
}

async function takePictures(
  { agent, token, terminal }: { agent: string; token: string; terminal: Terminal },
  folder: string,
): Promise<void> {
  const { chromium } = createRequire(import.meta.url)('playwright-core') as Playwright;
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-lcd-text'],
  });
  try {
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({ viewport: size, colorScheme });
      await signIn(page, agent, token);
      // The last part of the overview that is read.
      await page.waitForSelector('.cards .plot');
      await page.screenshot({ path: join(folder, `console-${colorScheme}.png`) });
    }
    const page = await browser.newPage({ viewport: size });
    await page.setContent(terminalPage(terminal));
    await page.locator('pre').screenshot({ path: join(folder, 'terminal.png') });
  } finally {
    await browser.close();
  }
}

async function makeScreenshots(folder: string): Promise<void> {
  const launcher = join(root, 'src/cli/launcher.js');
  const cwd = mkdtempSync(join(tmpdir(), 'latchkey-'));
  const latchkey = (command: string): string[] => [launcher, ...command.split(' ').slice(1)];
  const run = (command: string): string =>
    execFileSync(process.execPath, latchkey(command), { cwd, encoding: 'utf8' });
  const begin = latchkey('latchkey sandbox --with-agent --demo-data --keep sandbox --json');
  const sandbox = spawn(process.execPath, begin, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(createInterface({ input: sandbox.stdout }), 'line')) as [string];
    const { agent = '', ['license_key']: licenseKey } = JSON.parse(line) as Record<string, string>;
    const token = readFileSync(join(cwd, 'sandbox/agent/admin.token'), 'utf8').trim();
    const commands = [`latchkey verify ${licenseKey}`, 'latchkey status'];
    const terminal = commands.map((command) => ({
      command,
      output: run(`${command} --state-dir sandbox/agent`).replaceAll(`${cwd}/`, ''),
    }));
    mkdirSync(folder, { recursive: true });
    await takePictures({ agent, token, terminal }, folder);
  } finally {
    sandbox.kill();
    if (sandbox.exitCode === null) await once(sandbox, 'exit');
    rmSync(cwd, { recursive: true });
  }
}

const { values } = parseArgs({ options: { output: { type: 'string' } } });
await makeScreenshots(values.output ?? join(root, 'examples'));
