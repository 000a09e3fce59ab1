import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

/*
 * Makes the two pictures of the console in README.md, from the data of `latchkey sandbox --demo-data`:
 *
 *     npm run screenshots
 */

const root = join(import.meta.dirname, '../..');
const size = { width: 1200, height: 900 };

/** The part of playwright-core that is used here: its types need those of a browser. */
type Playwright = {
  chromium: {
    launch(options: { executablePath: string; args: readonly string[] }): Promise<{
      newPage(options: { viewport: typeof size; colorScheme: string }): Promise<Page>;
      close(): Promise<void>;
    }>;
  };
};

type Page = {
  goto(url: string): Promise<unknown>;
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

async function takePictures(agent: string, token: string, folder: string): Promise<void> {
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
      await page.waitForSelector('.grid .plot');
      await page.screenshot({ path: join(folder, `console-${colorScheme}.png`) });
    }
  } finally {
    await browser.close();
  }
}

async function makeScreenshots(folder: string): Promise<void> {
  const command = [join(root, 'src/cli/launcher.js'), 'sandbox', '--with-agent', '--demo-data', '--json'];
  const sandbox = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(createInterface({ input: sandbox.stdout }), 'line')) as [string];
    const { agent = '', ['agent_state']: state = '' } = JSON.parse(line) as Record<string, string>;
    const token = readFileSync(join(state, 'admin.token'), 'utf8').trim();
    mkdirSync(folder, { recursive: true });
    await takePictures(agent, token, folder);
  } finally {
    sandbox.kill();
    if (sandbox.exitCode === null) await once(sandbox, 'exit');
  }
}

const { values } = parseArgs({ options: { output: { type: 'string' } } });
await makeScreenshots(values.output ?? join(root, 'examples'));
