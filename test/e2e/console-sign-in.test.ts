import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpClient } from '../support/network/raw-http.ts';
import { isBrowserInstalled, startBrowser, type Browser, type Page } from '../support/process/browser.ts';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { hasProgram } from '../support/process/installed.ts';
import { onTerminal, type Terminal } from '../support/process/terminal.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const listen = { tcp: '127.0.0.1:0', socket: false };
const canTest = isBrowserInstalled && hasProgram('script');

const code = 'document.querySelector(".code")?.textContent ?? null';
const text = 'document.body.innerText';

async function codeOn(page: Page): Promise<string> {
  let shown: string | null = null;
  await expect.poll(async () => (shown = await page.evaluate<string | null>(code))).toMatch(/^\w{3}-\w{3}$/);
  return shown ?? '';
}

describe.skipIf(!canTest)('signing in to the console in a real browser', () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  const stateDir = join(directory.path, 'state');
  let daemon: DaemonProcess;
  let browser: Browser;

  beforeAll(async () => {
    daemon = opened.use(await startDaemonProcess(directory.path, { listen }));
    browser = opened.use(await startBrowser());
  });
  afterAll(() => opened.disposeAsync());

  const onConsole = (...argv: string[]): Terminal =>
    onTerminal(['console', '--state-dir', stateDir, ...argv], directory.path);

  test('the command asks for the code that the page shows, and the page is signed in', async () => {
    const page = await browser.newPage();
    await page.goto(`${daemon.tcp}/console`);
    const shown = await codeOn(page);
    expect(await page.evaluate(text)).toContain(`latchkey console ${shown} --`);
    await using terminal = onConsole();
    await terminal.answer(`Open ${daemon.tcp}/console in a browser.`, '');
    await terminal.answer(`The page shows ${shown}. Is this yours?`, 'y');
    expect(await terminal.ended, terminal.screen).toBe(0);
    expect(terminal.screen).toContain('The page is signed in. It can look, and change nothing,');
    await expect.poll(() => page.evaluate(text)).toContain('You can look, and change nothing.');
    expect(await page.evaluate('location.href')).toBe(`${daemon.tcp}/console`);
  });

  test('a page that was refused shows another code, and --admin lets the page change things', async () => {
    const page = await browser.newPage();
    await page.goto(`${daemon.tcp}/console`);
    const first = await codeOn(page);
    await using terminal = onConsole('--admin');
    await terminal.answer(`The page shows ${first}. Is this yours?`, 'n');
    await expect.poll(() => page.evaluate(code)).not.toBe(first);
    await terminal.answer(`The page shows ${await codeOn(page)}. Is this yours?`, 'y');
    expect(await terminal.ended, terminal.screen).toBe(0);
    await expect.poll(() => page.evaluate(text)).toContain('You can change everything.');
  });

  test('a question ends when its page was let in by another command', async () => {
    const page = await browser.newPage();
    await page.goto(`${daemon.tcp}/console`);
    const shown = await codeOn(page);
    await using terminal = onConsole();
    await terminal.answer(`The page shows ${shown}. Is this yours?`, '');
    const lower = shown.toLowerCase().replace('-', '');
    const confirmed = await runProcess(['console', lower, '--state-dir', stateDir]);
    expect(confirmed).toMatchObject({ code: 0, err: '' });
    await expect.poll(() => page.evaluate(text)).toContain('Sign out');
    const other = await browser.newPage();
    await other.goto(`${daemon.tcp}/console`);
    await terminal.answer(`The page shows ${await codeOn(other)}. Is this yours?`, '\u0003');
    expect(await terminal.ended).toBe(1);
    expect(terminal.screen).toContain('latchkey: cancelled');
  });

  test('signing out ends the session at the daemon', async () => {
    const page = await browser.newPage();
    await page.goto(`${daemon.tcp}/console`);
    await runProcess(['console', await codeOn(page), '--state-dir', stateDir]);
    await expect.poll(() => page.evaluate(text)).toContain('Sign out');
    const { token } = JSON.parse(
      await page.evaluate<string>('sessionStorage.getItem("latchkey-session")'),
    ) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    await using http = httpClient({ tcp: daemon.tcp });
    expect((await http.get('/admin/v1/audit', { headers })).status).toBe(200);
    await page.evaluate(
      `[...document.querySelectorAll('button')].find((button) => button.textContent === 'Sign out').click()`,
    );
    await expect.poll(() => page.evaluate(code)).not.toBeNull();
    await expect.poll(async () => (await http.get('/admin/v1/audit', { headers })).status).toBe(401);
    expect(await page.evaluate('sessionStorage.getItem("latchkey-session")')).toBeNull();
  });

  test('no session, secret or code stands in the log', () => {
    const lines = JSON.stringify(daemon.lines);
    expect(lines).toContain('/console/v1/sign-ins');
    expect(lines).not.toMatch(/lks_|[A-HJ-NP-Z2-9]{3}-[A-HJ-NP-Z2-9]{3}"/);
  });
});

describe('latchkey console without a browser', () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  const stateDir = join(directory.path, 'state');
  let daemon: DaemonProcess;
  beforeAll(async () => {
    daemon = opened.use(await startDaemonProcess(directory.path, { listen }));
  });
  afterAll(() => opened.disposeAsync());

  test('--print prints the address of the page alone', async () => {
    expect(await runProcess(['console', '--print', '--state-dir', stateDir])).toEqual({
      code: 0,
      out: `${daemon.tcp}/console\n`,
      err: '',
    });
    const json = await runProcess(['console', '--print', '--json', '--state-dir', stateDir]);
    expect(JSON.parse(json.out)).toEqual({ url: `${daemon.tcp}/console` });
  });

  test('without a terminal and without a code, the error says what to do', async () => {
    const { code: exit, out, err } = await runProcess(['console', '--state-dir', stateDir]);
    expect([exit, out]).toEqual([1, '']);
    expect(err).toBe(
      [
        'latchkey: there is no terminal on which to ask whether the code is yours',
        `Open ${daemon.tcp}/console in a browser, and let the page in: latchkey --state-dir ${stateDir} console CODE`,
        '',
      ].join('\n'),
    );
  });

  test('an unknown code is an error that says where to look', async () => {
    const { code: exit, err } = await runProcess(['console', 'ABC-DEF', '--state-dir', stateDir]);
    expect([exit, err]).toEqual([1, expect.stringContaining('latchkey: There is no such sign-in')]);
  });

  test('--print lets no page in', async () => {
    for (const more of [['--admin'], ['ABC-DEF']]) {
      const { code: exit, err } = await runProcess(['console', '--print', ...more, '--state-dir', stateDir]);
      expect([exit, err]).toEqual([2, expect.stringContaining('--print lets no page in')]);
    }
  });

  test.each([
    ['is switched off', { console: { enabled: false }, listen }],
    ['has no TCP listener', { listen: { tcp: false } }],
    ['listens for other machines', { listen: { tcp: '0.0.0.0:0', allow_remote: true, socket: false } }],
  ])('the command says that there is no console if the daemon %s', async (_, configuration) => {
    await using other = temporaryDirectory();
    await using process_ = await startDaemonProcess(other.path, configuration);
    const { code: exit, err } = await runProcess([
      'console',
      '--print',
      '--state-dir',
      join(other.path, 'state'),
    ]);
    expect([exit, err]).toEqual([1, expect.stringContaining('latchkey: The console is switched off here')]);
    if (!process_.tcp.startsWith('http')) return;
    const port = new URL(process_.tcp).port;
    const page = await fetch(`http://127.0.0.1:${port}/console`);
    expect(page.status).toBe(404);
  });

  test('a session ends with the daemon, and another program on the port gets no session', async () => {
    await using other = temporaryDirectory();
    const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };
    const before = await startDaemonProcess(other.path, configuration);
    const token = await sessionOf(before.tcp, other.path);
    const port = new URL(before.tcp).port;
    await before.kill();
    await using after = await startDaemonProcess(other.path, {
      listen: { ...listen, tcp: `127.0.0.1:${port}` },
    });
    expect(after.tcp).toBe(before.tcp);
    const headers = { authorization: `Bearer ${token}` };
    await using http = httpClient({ tcp: after.tcp });
    expect((await http.get('/admin/v1/audit', { headers })).status).toBe(401);
  });
});

/** Signs in as a page does. */
async function sessionOf(tcp: string, directory: string): Promise<string> {
  await using http = httpClient({ tcp });
  const begun = await http.post('/console/v1/sign-ins', { json: {} });
  const { code: shown, secret } = (begun.body as { data: { code: string; secret: string } }).data;
  const admin = readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${admin}` };
  await http.post(`/admin/v1/console/sign-ins/${shown}/confirm`, { headers, json: {} });
  const answer = await http.post('/console/v1/sessions', { json: { secret } });
  return (answer.body as { data: { session: { token: string } } }).data.session.token;
}
